"""Inputs, targets, padding and units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from distpaml.data import Dataset, Divisors, Standardiser, transitions


def dataset(rng: np.random.Generator, tasks: int, length: int) -> Dataset:
    states = rng.normal(size=(tasks, length + 1, 4)).cumsum(axis=1) * [1, 2, 30, 0.1]
    return Dataset.from_trajectories(states, rng.normal(size=(tasks, length, 1)), [1], rng.normal(size=(tasks, 2)))


def test_transitions_by_hand():
    states = np.array([[1.0, np.pi, 3.0, 4.0], [2.0, 1.5 * np.pi, 5.0, 7.0], [0.0, 4 * np.pi, 5.5, 8.0]])
    controls = np.array([[10.0], [-20.0]])
    inputs, targets = transitions(states, controls, angles=[1])
    assert inputs == pytest.approx(np.array([[-1, 0, 1, 3, 4, 10], [0, -1, 2, 5, 7, -20]]), abs=1e-12)
    assert targets == pytest.approx(np.array([[1, np.pi / 2, 2, 3], [-2, 2.5 * np.pi, 0.5, 1]]))


def test_each_angle_has_its_cosine_and_sine_in_order():
    states = np.array([[[0.0, np.pi, 7.0], [0.0, 0.0, 0.0]]])
    inputs, _ = transitions(states, np.array([[[9.0, 8.0]]]), angles=[0, 1])
    assert inputs == pytest.approx(np.array([[[1, 0, -1, 0, 7, 9, 8]]]), abs=1e-12)


def test_without_angles_the_inputs_are_states_and_controls():
    inputs, _ = transitions(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0]]), angles=[])
    assert inputs.tolist() == [[1, 2, 5]]


def test_trajectories_of_many_tasks_are_those_of_each():
    rng = np.random.default_rng(0)
    states, controls = rng.normal(size=(3, 8, 4)), rng.normal(size=(3, 7, 1))
    inputs, targets = transitions(states, controls, [1])
    for i in range(3):
        one_inputs, one_targets = transitions(states[i], controls[i], [1])
        assert np.array_equal(inputs[i], one_inputs) and np.array_equal(targets[i], one_targets)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=5), st.integers(0, 2**32))
@settings(deadline=None)
def test_concatenation_keeps_every_task_and_pads_with_zeros(sizes, seed):
    rng = np.random.default_rng(seed)
    parts = [dataset(rng, *size) for size in sizes]
    whole = Dataset.concatenate(parts)
    assert len(whole) == sum(len(part) for part in parts)
    assert whole.inputs.shape[1] == max(length for _, length in sizes)
    flat = [(part, i) for part in parts for i in range(len(part))]
    for row, (part, i) in enumerate(flat):
        count = part.counts[i]
        assert whole.counts[row] == count
        assert np.array_equal(whole.inputs[row, :count], part.inputs[i])
        assert np.array_equal(whole.targets[row, :count], part.targets[i])
        assert not whole.inputs[row, count:].any() and not whole.targets[row, count:].any()
        assert np.array_equal(whole.descriptors[row], part.descriptors[i])


@given(st.integers(0, 2**32), st.integers(1, 30))
@settings(deadline=None)
def test_padding_changes_neither_the_statistics_nor_the_standardised_data(seed, more):
    rng = np.random.default_rng(seed)
    short, longer = dataset(rng, 3, 5), dataset(rng, 1, 5 + more)
    plain_x, plain_y = (
        Standardiser.fit(short.inputs[short.valid]),
        Standardiser.fit(short.targets[short.valid]),
    )
    both = short.append(longer)
    padded = Dataset(both.inputs[:3], both.targets[:3], both.counts[:3], both.descriptors[:3])
    x, y = Standardiser.fit(padded.inputs[padded.valid]), Standardiser.fit(padded.targets[padded.valid])
    assert np.array_equal(x.scale, plain_x.scale) and np.array_equal(y.mean, plain_y.mean)
    plain, standardised = short.standardised(plain_x, plain_y), padded.standardised(x, y)
    assert np.array_equal(standardised.inputs[:, :5], plain.inputs)
    assert np.array_equal(standardised.targets[:, :5], plain.targets)
    assert not standardised.inputs[:, 5:].any() and not standardised.targets[:, 5:].any()


def test_append_is_concatenation_in_order():
    rng = np.random.default_rng(1)
    first, second = dataset(rng, 2, 3), dataset(rng, 1, 6)
    joined = first.append(second)
    assert joined.counts.tolist() == [3, 3, 6]
    assert np.array_equal(joined.descriptors, np.concatenate([first.descriptors, second.descriptors]))


@given(st.integers(0, 2**32), st.integers(2, 50), st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_standardiser_gives_zero_mean_and_unit_deviation_and_undoes_itself(seed, rows, size):
    values = np.random.default_rng(seed).normal(3 * size, size, size=(rows, 3))
    standardiser = Standardiser.fit(values)
    standard = standardiser.apply(values)
    assert standard.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert standard.std(axis=0) == pytest.approx(1)
    assert standardiser.undo(standard) == pytest.approx(values, rel=1e-9, abs=1e-9 * size)


@pytest.mark.parametrize("constant", [0.0, 0.1, -3.3e8, 1e-9])
def test_a_constant_column_has_scale_one(constant):
    values = np.stack([np.full(7, constant), np.arange(7.0) * 1e-9], axis=1)
    standardiser = Standardiser.fit(values)
    assert standardiser.scale.tolist() == [1.0, pytest.approx(2e-9)]
    assert np.abs(standardiser.apply(values)[:, 0]).max() <= 1e-7


def test_one_row_is_standardised_to_zero():
    standardiser = Standardiser.fit(np.array([[2.0, 3.0]]))
    assert standardiser.apply(np.array([[2.0, 3.0]])).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("rows", [np.empty((0, 2)), np.array([[1.0, np.nan]]), np.array([[np.inf, 1.0]])])
def test_nothing_to_standardise_by(rows):
    with pytest.raises(ValueError, match="cannot standardise"):
        Standardiser.fit(rows)


def test_nll_in_standardised_units_is_a_change_of_variables():
    rng = np.random.default_rng(2)
    standardiser = Standardiser(mean=np.array([1.0, -2.0, 0.5]), scale=np.array([0.01, 3.0, 70.0]))
    factor = rng.normal(size=(3, 3)) * standardiser.scale[:, None]
    mean, covariance = rng.normal(size=3), factor @ factor.T
    points = rng.multivariate_normal(mean, covariance, size=6)
    raw = -multivariate_normal(mean, covariance).logpdf(points)
    inverse = np.diag(1 / standardiser.scale)
    standard = multivariate_normal(standardiser.apply(mean), inverse @ covariance @ inverse)
    assert standardiser.nll(raw) == pytest.approx(-standard.logpdf(standardiser.apply(points)))


def test_errors_in_standardised_units_are_differences_of_standardised_values():
    rng = np.random.default_rng(3)
    standardiser = Standardiser(mean=np.array([1.0, -2.0]), scale=np.array([0.01, 3.0]))
    truth, predicted = rng.normal(size=(2, 5, 2))
    difference = standardiser.apply(predicted) - standardiser.apply(truth)
    assert standardiser.errors(predicted - truth) == pytest.approx(difference)


def test_the_two_divisors_are_those_of_training_and_of_test_outputs():
    rng = np.random.default_rng(4)
    training, test = dataset(rng, 2, 9).append(dataset(rng, 1, 20)), dataset(rng, 5, 9)
    divisors = Divisors.of(training, test)
    rows = np.concatenate([training.targets[i, : training.counts[i]] for i in range(3)])
    assert divisors.paper.scale == pytest.approx(rows.std(axis=0))
    assert divisors.fair.scale == pytest.approx(test.targets.reshape(-1, 4).std(axis=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": np.zeros((2, 4, 4))}, "same tasks"),
        ({"descriptors": np.zeros((3, 2))}, "same tasks"),
        ({"counts": np.array([3, 4])}, "between 0 and 3"),
        ({"counts": np.array([3, -1])}, "between 0 and 3"),
        ({"counts": np.array([3, 2])}, "zero beyond"),
    ],
)
def test_a_dataset_that_does_not_fit_together(change, message):
    good = dataset(np.random.default_rng(5), 2, 3)
    parts = {
        "inputs": good.inputs,
        "targets": good.targets,
        "counts": good.counts,
        "descriptors": good.descriptors,
    }
    with pytest.raises(ValueError, match=message):
        Dataset(**{**parts, **change})
