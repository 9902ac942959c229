"""What a search tries next: a function of its seed, the sample's number and the results so far."""

import pytest

from distpaml.sweep.load import load_sweep
from distpaml.sweep.searcher import GridSearcher, SpaceSearcher
from distpaml.sweep.trials import Sample, grid_trials

COMMON = {"storage": "/nowhere", "wandb": "off"}


def search(algorithm="random", samples=6):
    (sweep,) = load_sweep("search_model", [f"search.algorithm={algorithm}", f"search.samples={samples}"])
    return sweep


def drawn(searcher, objective=None):
    """The values of all samples by name; each is told its objective before the next is asked for."""
    found = {}
    while isinstance(suggested := searcher.suggest(str(len(found))), dict):
        trial = searcher.running[str(len(found))]
        found[suggested["trial"]] = dict(trial.values)
        result = {"rmse": objective(trial.values), "round": 8, "rounds": 8} if objective else None
        searcher.on_trial_complete(str(len(found) - 1), result)
    return found


def test_a_grid_is_suggested_in_order_and_ends():
    trials = grid_trials(load_sweep("quickstart"))
    searcher = GridSearcher(trials, COMMON)
    assert [searcher.suggest(str(i))["trial"] for i in range(len(trials))] == [trial.name for trial in trials]
    assert searcher.suggest(str(len(trials))) == GridSearcher.FINISHED


@pytest.mark.parametrize("algorithm", ["random", "optuna"])
def test_a_search_draws_as_many_samples_as_asked_within_its_space(algorithm):
    found = drawn(SpaceSearcher(search(algorithm), {}, COMMON), lambda values: values["model.inducing"])
    assert list(found) == [f"sample{i:03d}" for i in range(6)]
    assert len({tuple(values.items()) for values in found.values()}) == 6
    assert all(50 <= values["model.inducing"] <= 400 for values in found.values())
    again = drawn(SpaceSearcher(search(algorithm), {}, COMMON), lambda values: values["model.inducing"])
    assert again == found


def test_an_interrupted_random_search_draws_what_it_would_have_drawn():
    whole = drawn(SpaceSearcher(search(), {}, COMMON))
    known = {i: Sample(whole[f"sample{i:03d}"], 0.1, None, closed=True) for i in (0, 1, 3)}
    rest = drawn(SpaceSearcher(search(), known, COMMON))
    assert rest == {name: values for name, values in whole.items() if int(name[-3:]) not in known}


def test_an_unfinished_sample_goes_on_with_its_own_values():
    own = {"model.inducing": 123, "model.decoder_samples": 8, "fit.evaluations": 77}
    own["selection.utility"] = "task_information"
    found = drawn(SpaceSearcher(search("optuna"), {1: Sample(own, None, None, closed=False)}, COMMON))
    assert found["sample001"] == own and len(found) == 6


def test_optuna_learns_from_samples_of_before():
    values = drawn(SpaceSearcher(search("random", 40), {}, COMMON))
    best = 60
    known = {
        i: Sample(value, abs(value["model.inducing"] - best) / 100, None, closed=True)
        for i, value in enumerate(values.values())
    }
    searcher = SpaceSearcher(search("optuna", 60), known, COMMON)
    found = drawn(searcher, lambda value: abs(value["model.inducing"] - best) / 100)
    distance = [abs(value["model.inducing"] - best) for value in found.values()]
    unlearned = [abs(value["model.inducing"] - best) for value in values.values()]
    assert len(found) == 20 and sorted(distance)[10] < 0.5 * sorted(unlearned)[20]


def test_a_sample_that_failed_teaches_nothing():
    searcher = SpaceSearcher(search("optuna", 2), {}, COMMON)
    searcher.suggest("a")
    searcher.on_trial_complete("a", {"failed": "it diverged", "done": True})
    searcher.suggest("b")
    searcher.on_trial_complete("b", None, error=True)
    assert [trial.state.name for trial in searcher.study.trials] == ["FAIL", "FAIL"]


def test_a_sample_that_was_stopped_early_is_not_taken_for_a_finished_one():
    searcher = SpaceSearcher(search("optuna", 2), {}, COMMON)
    searcher.suggest("a")
    searcher.on_trial_complete("a", {"rmse": 0.01, "round": 1, "rounds": 8})
    (told,) = searcher.study.trials
    assert told.state.name == "PRUNED" and told.intermediate_values == {1: 0.01}
    again = SpaceSearcher(search("optuna", 2), {0: Sample(told.params, 0.01, 1, closed=True)}, COMMON)
    (known,) = again.study.trials
    assert (known.state, known.params, known.intermediate_values) == (told.state, told.params, told.intermediate_values)
