"""Designs fill their strata, stay in their box and are keyed by the seed alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distpaml import seeds
from distpaml.config import load
from distpaml.data import designs
from distpaml.domains.box import bounds

corners = st.lists(
    st.tuples(st.floats(-1e3, 1e3), st.floats(1e-2, 1e3)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    min_size=1,
    max_size=4,
).map(lambda pairs: tuple(np.array(pairs).T))


@given(corners, st.integers(1, 40), st.integers(0, 2**32))
@settings(deadline=None)
def test_latin_hypercube_fills_every_stratum_of_every_dimension_once(corners, n, seed):
    low, high = corners
    points = designs.latin_hypercube(low, high, n, np.random.default_rng(seed))
    assert points.shape == (n, len(low))
    assert np.all(points >= low) and np.all(points <= high)
    strata = np.floor((points - low) / (high - low) * n * (1 - 1e-9)).astype(int)
    assert np.array_equal(np.sort(strata, axis=0), np.tile(np.arange(n)[:, None], len(low)))


@given(corners, st.integers(1, 50), st.integers(0, 2**32))
def test_uniform_stays_in_the_box(corners, n, seed):
    low, high = corners
    points = designs.uniform(low, high, n, np.random.default_rng(seed))
    assert points.shape == (n, len(low))
    assert np.all(points >= low) and np.all(points <= high)


def test_uniform_is_uniform():
    points = designs.uniform(np.array([1.0, -2.0]), np.array([3.0, 6.0]), 20_000, np.random.default_rng(0))
    assert points.mean(axis=0) == pytest.approx([2, 2], abs=0.06)
    assert points.std(axis=0) == pytest.approx([2 / 12**0.5, 8 / 12**0.5], rel=0.02)


def test_grid_by_hand():
    points = designs.grid(np.array([0.0, 10.0]), np.array([1.0, 30.0]), 3)
    assert points.tolist() == [
        [0.0, 10], [0.0, 20], [0.0, 30],
        [0.5, 10], [0.5, 20], [0.5, 30],
        [1.0, 10], [1.0, 20], [1.0, 30],
    ]  # fmt: skip


def test_the_papers_test_grid_has_a_hundred_tasks_and_the_corners_of_the_box():
    experiment = load("cartpole_partial")
    tasks = designs.grid(*bounds(experiment.domain.box), experiment.evaluation.grid)
    assert tasks.shape == (100, 2)
    for corner in ([0.4, 0.4], [0.4, 3.0], [3.0, 0.4], [3.0, 3.0]):
        assert corner in tasks.tolist()


def test_bounds_keep_the_order_of_the_box():
    low, high = bounds({"b": (1.0, 2.0), "a": (3.0, 4.0)})
    assert (low.tolist(), high.tolist()) == ([1, 3], [2, 4])


def test_a_design_depends_on_the_seed_alone():
    low, high = np.array([0.5, 0.5]), np.array([5.0, 2.0])
    first = designs.design(low, high, 18, seed=1)
    np.random.seed(0)
    seeds.rng(1, "uniform", 3).random()
    assert np.array_equal(designs.design(low, high, 18, seed=1), first)
    assert not np.isclose(designs.design(low, high, 18, seed=2), first).any()


def test_uniform_choices_are_keyed_by_the_tasks_index():
    low, high = np.array([0.5, 0.5]), np.array([5.0, 2.0])
    forward = [designs.uniform_choice(low, high, 4, index) for index in range(3, 10)]
    backward = [designs.uniform_choice(low, high, 4, index) for index in reversed(range(3, 10))]
    assert np.array_equal(forward, backward[::-1])
    assert len({tuple(choice) for choice in forward}) == 7


def test_rows_of_a_grid_are_those_of_the_whole():
    low, high = np.array([0.0, -1.0, 3.0]), np.array([1.0, 4.0, 7.0])
    whole = designs.grid(low, high, 7)
    axes = [np.linspace(a, b, 7) for a, b in zip(low, high, strict=True)]
    np.testing.assert_array_equal(whole, [[a, b, c] for a in axes[0] for b in axes[1] for c in axes[2]])
    np.testing.assert_array_equal(designs.grid(low, high, 7, range(40, 120)), whole[40:120])
