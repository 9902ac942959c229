"""The tasks that count: the domain's, not the candidates'."""

import numpy as np
import pytest
from tiny import rounds_of, tiny

from distpaml.data.tasks import TaskSet
from distpaml.errors import UserError
from distpaml.runtime.local import local_parts
from distpaml.select.methods import get_method
from distpaml.select.references import REFERENCES, reference_descriptors

CHOICES = [[m, length] for m in (0.6, 1.5, 3.0, 4.5) for length in (0.6, 1.2, 1.9)]


def references(*overrides: str, experiment: str = "cartpole") -> np.ndarray:
    return reference_descriptors(TaskSet(tiny(*overrides, experiment=experiment)))


def test_references_fill_the_box_and_depend_on_neither_seed_nor_candidates():
    found = references()
    assert found.shape == (REFERENCES, 2)
    scaled = (found - [0.5, 0.5]) / [4.5, 1.5]
    assert scaled.min() == 0.0 and scaled.max() == 1.0  # faces and corners included
    counts, _, _ = np.histogram2d(*scaled.T, bins=3, range=[[0, 1], [0, 1]])
    assert counts.min() >= 3
    for override in ("seed=7", "selection.pool_size=100", "method=uni"):
        np.testing.assert_array_equal(references(override), found)
    assert references(experiment="cartpole_noisy").shape == (REFERENCES, 3)


def test_a_target_narrows_them():
    found = references("selection.target.pole_mass=[1, 2]")
    assert found.shape == (REFERENCES, 2)
    assert (found[:, 0].min(), found[:, 0].max()) == (1.0, 2.0)
    assert (found[:, 1].min(), found[:, 1].max()) == (0.5, 2.0)


def test_a_target_may_be_the_tasks_themselves():
    rows = [[1.0, 1.0], [1.0, 1.0], [4.0, 0.7]]
    assert sorted(references(f"selection.target={rows}").tolist()) == rows
    many = [[0.5 + 0.01 * i, 1.0] for i in range(200)]
    sample = references(f"selection.target={many}")
    assert len(np.unique(sample[:, 0])) == len(sample) == REFERENCES


def test_of_choices_they_are_those_in_the_target():
    everything = references(f"selection.choices={CHOICES}")
    assert sorted(map(tuple, everything)) == sorted(map(tuple, CHOICES))
    some = references(f"selection.choices={CHOICES}", "selection.target={pole_mass: [1, 2], pole_length: [1, 2]}")
    assert sorted(map(tuple, some)) == [(1.5, 1.2), (1.5, 1.9)]
    many = [[0.5 + 0.01 * i, 1.0] for i in range(200)]
    sample = references(f"selection.choices={many}")
    assert len(sample) == REFERENCES and len(np.unique(sample[:, 0])) == REFERENCES


def test_a_target_moves_the_choice_of_utilities_that_average_over_the_domain():
    first = rounds_of()[0]
    chosen = {}
    for target in ("[0.5, 1]", "[4.5, 5]"):
        config = tiny("selection.utility=predictive_variance", f"selection.target.pole_mass={target}")
        selection = get_method(TaskSet(config)).choose(first.model, first.data, local_parts(config)[2].best)
        chosen[target] = selection.descriptors[0]
    assert not np.array_equal(*chosen.values())


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        (["selection.target.pole_mas=[1, 2]"], "'pole_mas', which no descriptor has; the nearest is pole_mass"),
        (["selection.target.pole_mass=[1, 9]"], r"pole_mass in \[1, 9\], but descriptors have it in \[0.5, 5\]"),
        (["selection.target.pole_mass=[2, 1]"], "low < high"),
        (
            ["selection.target=[[1, 1], [1, 7]]"],
            r"\[1.0, 7.0\] \(pole_mass, pole_length\), which lies outside of the box",
        ),
        (["selection.target=[[1, 1, 1]]"], "rows of 3 numbers, but a descriptor is pole_mass, pole_length"),
        (["selection.target=[[1, 1], [1]]"], "all equally long"),
        (
            [f"selection.choices={CHOICES}", "selection.target.pole_mass=[1, 1.2]"],
            "leaves none of the 12 descriptors that can be chosen",
        ),
    ],
)
@pytest.mark.parametrize("method", ["paml-pool", "uni"])
def test_a_wrong_target_is_a_sentence(method, overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        get_method(TaskSet(tiny(f"method={method}", *overrides)))
