from itertools import accumulate

import numpy as np
import pytest
from tiny import rounds_of, run_loop, tiny

from distpaml.catalogue import DEFAULT, METHODS
from distpaml.data import Dataset, designs
from distpaml.data.tasks import TaskSet
from distpaml.domains.box import bounds
from distpaml.errors import UserError
from distpaml.runtime.local import local_parts
from distpaml.select.candidates import placing
from distpaml.select.context import Embedded
from distpaml.select.methods import get_method
from distpaml.select.surprisal import surprisal
from distpaml.select.utilities import UTILITIES

CHOICES = [[m, length] for m in (0.6, 1.5, 3.0, 4.5) for length in (0.6, 1.2, 1.9)]


@pytest.mark.parametrize("experiment", ["cartpole", "cartpole_partial", "cartpole_noisy"])
def test_methods_of_a_seed_share_initial_tasks_controls_and_test_data(experiment):
    seen = {}
    for method in METHODS:
        config = tiny(f"method={method}", "seed=5", experiment=experiment)
        simulator, task_set = local_parts(config)[0], TaskSet(config)
        initial, test = simulator.simulate(task_set.initial()).result(), simulator.simulate(task_set.test()).result()
        seen[method] = [initial.inputs, initial.targets, initial.descriptors, test.inputs, test.targets]
    assert not set(map(tuple, task_set.initial().starts)) & set(map(tuple, task_set.test().starts))
    for arrays in seen.values():
        for mine, paml in zip(arrays, seen["paml"], strict=True):
            np.testing.assert_array_equal(mine, paml)
    another = tiny("seed=6", experiment=experiment)
    other = local_parts(another)[0].simulate(TaskSet(another).test()).result()
    assert not np.array_equal(other.inputs, seen["paml"][3])


def test_initial_tasks_are_the_first_rows_of_the_design_and_lhs_goes_on_along_it():
    config = tiny("method=lhs")
    design = designs.design(*bounds(config.domain.box), 5, config.seed)
    chosen = [added.descriptor for round in rounds_of("method=lhs") for added in round.record.added]
    np.testing.assert_array_equal(chosen, design)


def test_uni_draws_by_the_number_of_the_task():
    low, high = bounds(tiny().domain.box)
    for round in rounds_of("method=uni")[1:]:
        expected = designs.uniform_choice(low, high, 0, round.record.tasks - 1)
        np.testing.assert_array_equal(round.record.added[0].descriptor, expected)


@pytest.mark.parametrize(
    "overrides",
    [
        ("method=paml",),
        ("method=paml-pool",),
        ("method=uni",),
        ("method=lhs",),
        *(("method=paml-pool", "selection.batch=2", f"selection.utility={name}") for name in UTILITIES),
    ],
    ids=" ".join,
)
def test_choices_can_be_made_again_from_what_a_round_leaves(overrides):
    rounds = rounds_of(*overrides)
    config = tiny(*overrides)
    method, scorer = get_method(TaskSet(config)), local_parts(config)[2]
    so_far = accumulate((round.data for round in rounds), Dataset.append)
    for before, data, after in zip(rounds, so_far, rounds[1:], strict=False):
        again = method.choose(before.model, data, scorer.best)
        assert again.descriptors.tolist() == [list(added.descriptor) for added in after.record.added]
        if again.latents is not None:
            assert again.latents.tolist() == [list(added.latent) for added in after.record.added]
            assert again.utilities.tolist() == [added.utility for added in after.record.added]


def candidates_of(method, round):
    shown = method.task_set.descriptor
    return method.candidates(round.model, round.data, placing(round.model, shown.low, shown.high))


def known_by(model):
    return Embedded(model.embeddings.mean.numpy(), model.embeddings.variance.numpy())


def test_paml_set_takes_the_most_surprising_descriptor():
    before, after = rounds_of("method=paml-pool")[:2]
    method = get_method(TaskSet(tiny("method=paml-pool")))
    candidates = candidates_of(method, before)
    scores = surprisal(candidates, known_by(before.model))
    np.testing.assert_array_equal(after.record.added[0].descriptor, candidates.descriptors[scores.argmax()])
    assert after.record.added[0].utility == scores.max()
    assert after.record.candidates.valid == after.record.candidates.total == 64


@pytest.mark.parametrize(
    ("overrides", "utility"),
    [
        ((), DEFAULT.utility),
        (("method=paml",), "surprisal"),
        (("method=paml-pool",), "surprisal"),
        (("method=paml", "selection.utility=latent_maximin"), "latent_maximin"),
    ],
)
def test_a_method_ranks_by_its_own_utility_unless_another_is_named(overrides, utility):
    config = tiny(*overrides)
    assert config.utility == local_parts(config)[2].name == utility


def test_selection_candidates_wins_over_the_method():
    swapped = get_method(TaskSet(tiny("method=paml", "selection.candidates=descriptor-pool")))
    before, after = rounds_of("method=paml-pool")[:2]
    selection = swapped.choose(before.model, before.data, local_parts(tiny("method=paml"))[2].best)
    np.testing.assert_array_equal(selection.descriptors[0], after.record.added[0].descriptor)


def test_the_second_of_a_batch_knows_of_the_first():
    config = tiny("method=paml-pool", "selection.batch=3")
    first = run_loop(config)[0]
    method = get_method(TaskSet(config))
    selection = method.choose(first.model, first.data, local_parts(config)[2].best)
    candidates = candidates_of(method, first)
    context = known_by(first.model)
    for descriptor, latent, utility in zip(selection.descriptors, selection.latents, selection.utilities, strict=True):
        scores = surprisal(candidates, context)
        np.testing.assert_array_equal(candidates.descriptors[scores.argmax()], descriptor)
        assert utility == scores.max()
        typical = np.median(context.variance[:3], axis=0)
        context = Embedded(np.vstack([context.mean, latent]), np.vstack([context.variance, typical]))
    alone = surprisal(candidates, known_by(first.model))
    best_alone = candidates.descriptors[np.argsort(-alone)[:3]]
    assert set(map(tuple, best_alone)) != set(map(tuple, selection.descriptors))


def test_the_oracle_is_trained_on_the_test_tasks_and_chooses_nothing():
    (only,) = rounds_of("method=oracle")
    config = tiny("method=oracle")
    test = local_parts(config)[0].simulate(TaskSet(config).test()).result()
    np.testing.assert_array_equal(only.data.targets, test.targets)
    assert (only.record.round, only.record.tasks) == (0, 4)
    assert only.record.rmse == pytest.approx(only.record.rmse_paper)


def test_hidden_parameters_are_drawn_anew_and_never_shown():
    for method in ("paml", "uni"):
        rounds = rounds_of(f"method={method}", "rounds=3", experiment="cartpole_partial")
        masses = [added.task[0] for round in rounds for added in round.record.added]
        assert len(set(masses)) == 6 and all(0.4 <= mass <= 3.0 for mass in masses)
        assert all(added.descriptor == added.task[1:] for round in rounds for added in round.record.added)
        if method == "paml":
            first = masses
    assert masses == first  # drawn by the number of the task, whatever the method


@pytest.mark.parametrize("method", ["paml-pool", "uni", "lhs"])
def test_ones_own_choices_are_used_and_none_twice(method):
    rounds = rounds_of(f"method={method}", f"selection.choices={CHOICES}", "selection.batch=4")
    taken = [list(added.descriptor) for round in rounds for added in round.record.added]
    assert len(taken) == 11
    assert all(row in CHOICES for row in taken)
    assert len({tuple(row) for row in taken}) == 11


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        ([f"selection.choices={CHOICES}", "method=paml"], "a latent grid makes its own; set method=paml-plus"),
        ([f"selection.choices={CHOICES[:4]}", "method=uni"], "has 4 different descriptors, .* need 5"),
        (
            ["selection.choices=[[9, 1]]", "method=uni"],
            "selection.choices cannot be used: Descriptor 0 has pole_mass = 9",
        ),
        (["selection.utility=surprise"], "no such utility; the nearest is surprisal"),
    ],
)
def test_what_cannot_be_chosen_from_is_a_sentence(overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        get_method(TaskSet(tiny(*overrides)))
