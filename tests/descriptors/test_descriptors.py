"""What is shown of a task, and what becomes of a chosen descriptor."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distpaml.config import load
from distpaml.descriptors import KINDS, Descriptor, get_descriptor
from distpaml.domains.box import bounds, uniform
from distpaml.errors import UserError

SHIPPED = ["cartpole", "cartpole_partial", "cartpole_noisy", "cartpole_images"]


def descriptor_of(name: str, *overrides: str) -> Descriptor:
    experiment = load(name, overrides)
    return get_descriptor(experiment.descriptor, experiment.domain.box)


@given(st.sampled_from(SHIPPED), st.integers(0, 2**32), st.integers(1, 20))
@settings(deadline=None)
def test_a_chosen_descriptor_becomes_a_task_of_the_box_that_looks_like_it(name, seed, n):
    descriptor = descriptor_of(name)
    chosen = uniform(descriptor.low, descriptor.high, n, np.random.default_rng(seed))
    tasks = descriptor.resolve(chosen, seed, range(n))
    low, high = bounds(descriptor.task_box)
    assert tasks.shape == (n, len(descriptor.task_box)) and np.all(tasks >= low) and np.all(tasks <= high)
    again = descriptor.describe(tasks)
    shown = [name in descriptor.task_box for name in descriptor.names]  # all but what has no effect
    assert again.shape == chosen.shape
    assert np.array_equal(again[:, shown], chosen[:, shown])
    assert not np.shares_memory(tasks, chosen) and not np.shares_memory(again, tasks)


def test_full_shows_everything():
    descriptor = descriptor_of("cartpole")
    assert descriptor.names == ("pole_mass", "pole_length")
    assert descriptor.describe(np.array([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]


def test_partial_shows_the_length_and_hides_the_mass():
    descriptor = descriptor_of("cartpole_partial")
    assert (descriptor.names, descriptor.low.tolist(), descriptor.high.tolist()) == (
        ("pole_length",),
        [0.4],
        [3.0],
    )
    assert descriptor.describe(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[2.0], [4.0]]


def test_hidden_parameters_are_drawn_anew_for_every_task_and_keyed_by_seed_and_index():
    descriptor = descriptor_of("cartpole_partial")
    lengths = np.full((2000, 1), 0.7)
    masses = descriptor.resolve(lengths, 5, range(2000))[:, 0]
    assert len(set(masses)) == 2000
    assert masses.mean() == pytest.approx(1.7, abs=0.06) and masses.std() == pytest.approx(2.6 / 12**0.5, rel=0.05)
    assert descriptor.resolve(np.array([[2.0]]), 5, [17])[0].tolist() == [masses[17], 2.0]
    assert descriptor.resolve(np.array([[2.0]]), 6, [17])[0, 0] != masses[17]


def test_noisy_adds_a_dimension_that_the_task_does_not_have():
    descriptor = descriptor_of("cartpole_noisy")
    assert descriptor.names == ("pole_mass", "pole_length", "epsilon")
    assert (descriptor.low.tolist(), descriptor.high.tolist()) == ([0.5, 0.5, 0.5], [5.0, 2.0, 5.0])
    assert descriptor.resolve(np.array([[1.0, 1.5, 4.0]]), 0, [3]).tolist() == [[1.0, 1.5]]
    assert descriptor.describe(np.array([[1.0, 1.5]])).tolist() == [[1.0, 1.5, 1.0]]


@pytest.mark.parametrize(
    ("chosen", "fragments"),
    [
        ([[1.0, 1.0], [1.0, 2.5]], ["Descriptor 1", "pole_length = 2.5", "[0.5, 2]"]),
        ([[0.4, 1.0]], ["Descriptor 0", "pole_mass = 0.4", "[0.5, 5]"]),
        ([[np.nan, 1.0]], ["pole_mass = nan"]),
        ([[1.0, np.inf]], ["pole_length = inf"]),
        ([[1.0]], ["(1, 1)", "rows of 2 numbers: pole_mass, pole_length"]),
        ([1.0, 1.0], ["(2,)", "rows of 2 numbers"]),
    ],
)
def test_what_cannot_be_chosen_is_said(chosen, fragments):
    with pytest.raises(UserError) as caught:
        descriptor_of("cartpole").resolve(np.array(chosen), 0, range(len(chosen)))
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_kind_refuses_what_is_outside(name):
    descriptor = descriptor_of(name)
    with pytest.raises(UserError, match="outside"):
        descriptor.resolve(descriptor.high[None] + 1, 0, [0])


def test_one_needs_as_many_indices_as_choices():
    with pytest.raises(ValueError):
        descriptor_of("cartpole_partial").resolve(np.array([[1.0], [2.0]]), 0, [0])


def test_a_descriptor_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "my_descriptor.py").write_text(
        "from distpaml.descriptors.full import Full\n"
        "class Doubled(Full):\n"
        "    def describe(self, tasks):\n"
        "        return 2 * tasks\n"
        "number = 3\n"
    )
    (tmp_path / "my_broken_descriptor.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.chdir(tmp_path)
    descriptor = descriptor_of("cartpole", "descriptor.kind=my_descriptor:Doubled")
    assert descriptor.describe(np.array([[1.0, 2.0]])).tolist() == [[2.0, 4.0]]
    for reference, fragment in [
        ("my_descriptor:number", "not a subclass"),
        ("my_descriptor:Missing", "Missing"),
        ("my_descriptor:", "should be module:Name"),
        (":Doubled", "should be module:Name"),
        ("my_absent_module:Doubled", "my_absent_module"),
        ("my_broken_descriptor:Doubled", "ZeroDivisionError"),
    ]:
        with pytest.raises(UserError, match=fragment) as caught:
            descriptor_of("cartpole", f"descriptor.kind='{reference}'")
        assert "descriptor.kind" in str(caught.value) and reference in str(caught.value)
    sys.modules.pop("my_descriptor")


def test_the_config_accepts_every_kind_and_no_other():
    assert {load(name).descriptor.kind for name in SHIPPED} == set(KINDS)
    with pytest.raises(UserError, match=f"should be {', '.join(KINDS)} or module:Class"):
        load("cartpole", ["descriptor.kind=other"])
