import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distpaml.report.statistics import (
    COVERAGE,
    Curves,
    area,
    interval,
    middle,
    needed,
    on_common_seeds,
    paired,
    redrawn,
)


def curves(values, seeds=None, added=None) -> Curves:
    values = np.asarray(values, float)
    added = np.arange(values.shape[1]) if added is None else added
    return Curves(tuple(seeds or range(len(values))), np.asarray(added, float), {"rmse": values})


def test_mean_and_standard_error_are_those_of_the_standard_library():
    values = [[1.0, 2.0], [4.0, np.nan], [2.5, 7.0]]
    mean, error, count = curves(values).mean("rmse")
    assert mean.tolist() == pytest.approx([statistics.mean([1.0, 4.0, 2.5]), statistics.mean([2.0, 7.0])])
    expected = [statistics.stdev([1.0, 4.0, 2.5]) / 3**0.5, statistics.stdev([2.0, 7.0]) / 2**0.5]
    assert error.tolist() == pytest.approx(expected)
    assert count.tolist() == [3, 2]
    assert curves(values).finished() == {0: 0, 2: 2}


def test_the_area_of_a_line_is_its_middle():
    added = np.array([0.0, 1.0, 4.0, 9.0])
    assert area(added, 3.0 - 0.25 * added) == pytest.approx(3.0 - 0.25 * 4.5)
    assert area(np.zeros(1), np.array([[2.0], [5.0]])).tolist() == [2.0, 5.0]


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=6), st.floats(-2, 2), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=25)
def test_what_a_seed_adds_to_both_methods_does_not_count(effects, gap, random):
    """Paired: the difference is the gap between methods exactly, however much seeds differ."""
    shape = np.array([random.random() for _ in range(4)])
    base = np.array(effects)[:, None] + shape
    difference = paired(curves(base + gap), curves(base), "rmse")
    assert difference.mean == pytest.approx(gap, abs=1e-9)
    assert difference.low == pytest.approx(gap, abs=1e-9) and difference.high == pytest.approx(gap, abs=1e-9)
    at_end = paired(curves(base + gap), curves(base), "rmse", at=-1)
    assert at_end.mean == pytest.approx(gap, abs=1e-9)


def test_only_seeds_and_rounds_that_both_have_are_compared():
    mine = curves([[9, 1, 1], [9, 3, np.nan], [9, 5, 5]], seeds=(0, 1, 2))
    theirs = curves([[9, 2], [9, 2], [9, 4]], seeds=(0, 1, 7), added=[0, 2])
    difference = paired(mine, theirs, "rmse", at=-1)
    assert (difference.seeds, difference.mean, difference.wins) == (1, -1.0, 1)  # seed 0, after two added tasks
    assert difference.low is None and difference.relative == pytest.approx(-0.5)
    assert paired(mine, curves([[1, 2]], seeds=(9,)), "rmse") is None
    assert paired(mine, replace(theirs, added=np.array([5.0, 6.0])), "rmse") is None


@pytest.mark.parametrize("seeds", COVERAGE)
def test_intervals_hold_the_truth_as_often_as_the_page_says(seeds):
    """Far from their nominal 95 % with few seeds; four standard deviations of 300 draws are allowed."""
    rng = np.random.default_rng(1)
    found = [interval(rng.normal(0.3, 1.0, seeds)) for _ in range(300)]
    share = np.mean([low <= 0.3 <= high for low, high in found])
    said = COVERAGE[seeds]
    assert abs(share - said) < 4.0 * (said * (1.0 - said) / 300) ** 0.5


def test_intervals_need_three_values():
    assert interval(np.array([1.0, 2.0])) == (None, None)
    assert interval(np.full(5, 2.0)) == (2.0, 2.0)


def test_tasks_needed_are_counted_to_the_first_passage():
    added = np.array([0.0, 2.0, 4.0])
    assert needed(added, np.array([3.0, 1.0, 2.0]), 1.5) == 2.0
    assert needed(added, np.array([3.0, 2.0, 1.6]), 1.5) == np.inf
    assert needed(added, np.array([1.0, 2.0, 1.6]), 1.5) == 0.0
    several = needed(added, np.array([[3.0, 1.0, 2.0], [3.0, 2.0, 1.6]]), np.array([1.5, 2.5]))
    assert several.tolist() == [2.0, 2.0]


def test_common_seeds_are_those_that_all_have_finished():
    mine = curves([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0], [7.0, 8.0]], seeds=(0, 1, 2, 3))
    theirs = curves([[9.0, 9.5], [8.0, 8.5], [7.0, 7.5]], seeds=(3, 1, 0))
    a, b = on_common_seeds(mine, theirs)
    assert a.seeds == b.seeds == (0, 3)
    assert a.values["rmse"].tolist() == [[1.0, 2.0], [7.0, 8.0]]
    assert b.values["rmse"].tolist() == [[7.0, 7.5], [9.0, 9.5]]
    (none, _) = on_common_seeds(mine, curves([[1.0, 1.0]], seeds=(7,)))
    assert none.seeds == () and none.values["rmse"].shape == (0, 2)


def test_seeds_are_drawn_together_for_all_methods():
    values = np.arange(8.0).reshape(4, 2)
    a, b = redrawn(values, values + 100.0)
    assert np.array_equal(a + 100.0, b) and a.shape[1:] == (4, 2)
    spread = a.mean(axis=(1, 2)).std()  # of a mean of four: the standard error
    assert spread == pytest.approx(values.mean(axis=1).std() / 2, rel=0.05)


def test_the_middle_leaves_out_a_fortieth_on_either_side_and_what_is_undefined():
    values = np.concatenate([np.arange(1.0, 101.0), [np.nan]])
    assert middle(values) == (3.0, 98.0)
    assert middle(np.array([1.0, np.inf, np.inf])) == (1.0, np.inf)
    assert np.isnan(middle(np.full(3, np.nan))).all()
