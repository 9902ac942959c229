from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from scipy.stats import norm
from tiny import rounds_of, tiny

from distpaml.catalogue import MEASURES
from distpaml.data import Dataset, Divisors, Standardiser
from distpaml.data.tasks import TaskSet
from distpaml.evaluate import evaluate, score
from distpaml.model.posterior import Latents
from distpaml.rounds import Record
from distpaml.runtime.local import local_parts


@pytest.fixture(scope="module")
def model():
    return rounds_of()[0].model


@pytest.fixture(scope="module")
def test() -> Dataset:
    return local_parts(tiny())[0].simulate(TaskSet(tiny()).test()).result()


@pytest.fixture(scope="module")
def divisors(test) -> Divisors:
    return Divisors.of(rounds_of()[0].data, test)


def ones(outputs: int) -> Standardiser:
    return Standardiser(np.zeros(outputs), np.ones(outputs))


def one_task(targets: list[list[float]]) -> Dataset:
    values = np.array([targets])
    return Dataset(np.zeros((1, len(targets), 1)), values, np.array([len(targets)]), np.zeros((1, 1)))


def test_measures_by_hand():
    """Two points, two outputs, divisors 2 and 4 (test) and 1 and 0.5 (training)."""
    task = one_task([[1.0, 2.0], [0.0, -2.0]])
    mean, variance = np.array([[[0.0, 2.0], [0.0, 2.0]]]), np.array([[[1.0, 4.0], [0.25, 16.0]]])
    fair = Standardiser(np.array([7.0, 7.0]), np.array([2.0, 4.0]))
    paper = Standardiser(np.zeros(2), np.array([1.0, 0.5]))
    scores = score(mean, variance, task, Divisors(paper, fair))
    assert scores.rmse[0] == pytest.approx(np.sqrt((0.5**2 + 0 + 0 + 1.0**2) / 4))
    assert scores.rmse_paper[0] == pytest.approx(np.sqrt((1.0**2 + 0 + 0 + 8.0**2) / 4))
    for nll, scale in ((scores.nll, fair.scale), (scores.nll_paper, paper.scale)):
        expected = -norm.logpdf(task.targets / scale, mean / scale, np.sqrt(variance) / scale).mean()
        assert nll[0] == pytest.approx(expected)


def test_the_measures_differ_by_the_divisor_alone(model, test, divisors):
    both = evaluate(model, divisors, test, 10).scores
    swapped = evaluate(model, Divisors(divisors.fair, divisors.paper), test, 10).scores
    np.testing.assert_array_equal(both.rmse, swapped.rmse_paper)
    np.testing.assert_array_equal(both.nll_paper, swapped.nll)
    shift = np.log(divisors.fair.scale).mean() - np.log(divisors.paper.scale).mean()
    np.testing.assert_allclose(both.nll_paper - both.nll, shift, rtol=1e-9)
    twice = Standardiser(divisors.fair.mean, 2 * divisors.fair.scale)
    scaled = evaluate(model, Divisors(twice, divisors.fair), test, 10).scores
    np.testing.assert_allclose(scaled.rmse_paper, 0.5 * scaled.rmse, rtol=1e-12)
    np.testing.assert_allclose(scaled.nll_paper, scaled.nll - np.log(2), rtol=1e-9)


def test_nll_is_the_predictive_density_not_the_expected_log_likelihood():
    """y = 0 under f ~ N(0, 1) with noise 0.01: −log N(0; 0, 1.01) is 0.92, but −E_f[log N(0; f, 0.01)] is 48.6."""
    function, noise = 1.0, 0.01
    variance = np.full((1, 1, 1), function + noise)
    (nll,) = score(np.zeros((1, 1, 1)), variance, one_task([[0.0]]), Divisors(ones(1), ones(1))).nll
    assert nll == pytest.approx(-norm.logpdf(0.0, scale=np.sqrt(function + noise)))
    assert nll < -norm(scale=np.sqrt(function)).expect(lambda f: norm.logpdf(0.0, f, np.sqrt(noise))) - 40


def test_the_models_density_counts_all_that_it_does_not_know(model, test, divisors):
    """With h unknown (no shots) the variance has the noise, the functions' and the latents' share."""
    found = evaluate(model, divisors, test, 10, shots=(0,)).shots[0]
    prior = Latents.prior(len(test), model.embeddings.mean)
    mean, variance = model.predict(test.inputs, prior)
    scale = divisors.fair.scale
    expected = -norm.logpdf(test.targets / scale, mean / scale, np.sqrt(variance) / scale).mean(axis=(1, 2))
    np.testing.assert_allclose(found.nll, expected, rtol=1e-9)
    sure = Latents(prior.mean, torch.zeros_like(prior.variance))
    assert (variance > model.predict(test.inputs, sure)[1] * 1.001).any()


def test_evaluation_leaves_the_model_untouched_to_the_bit(model, test, divisors):
    def everything():
        tensors = [*model.gp.state_dict().values(), model.descriptors]
        tensors += [getattr(model.posterior, field.name) for field in fields(model.posterior)]
        arrays = [*(t.numpy() for t in tensors), model.inputs.mean, model.targets.scale]
        return [array.tobytes() for array in arrays], dict(model.terms)

    before = everything()
    first = evaluate(model, divisors, test, 10, shots=(0, 5))
    assert everything() == before
    again = evaluate(model, divisors, test, 10, shots=(0, 5))
    np.testing.assert_array_equal(first.scores.nll, again.scores.nll)


def test_few_shots_infer_from_the_first_transitions_and_score_the_others(model, test, divisors):
    scores = evaluate(model, divisors, test, 10, shots=(4,)).shots[4]
    mean, _ = model.predict(test.inputs, model.infer(test.first(4), 10))
    errors = ((test.targets - mean) / divisors.fair.scale)[:, 4:]
    np.testing.assert_allclose(scores.rmse, np.sqrt((errors**2).mean(axis=(1, 2))), rtol=1e-9)

    targets = test.targets.copy()
    targets[:, 4:] += divisors.fair.scale  # what comes later cannot change what was inferred
    moved = evaluate(model, divisors, replace(test, targets=targets), 10, shots=(4,)).shots[4]
    np.testing.assert_allclose(moved.rmse, np.sqrt(((errors + 1.0) ** 2).mean(axis=(1, 2))), rtol=1e-9)


def test_tasks_may_differ_in_length(model, test, divisors):
    short = Dataset.concatenate([test.tasks(slice(0, 1)).first(7), test.tasks(slice(1, None))])
    ragged = evaluate(model, divisors, short, 10).scores
    alone = test.tasks(slice(0, 1)).first(7)
    cut = Dataset(alone.inputs[:, :7], alone.targets[:, :7], alone.counts, alone.descriptors)
    np.testing.assert_allclose(ragged.rmse[0], evaluate(model, divisors, cut, 10).scores.rmse[0], rtol=1e-6)


def test_the_summary_has_means_and_medians(model, test, divisors):
    scores = evaluate(model, divisors, test, 10).scores
    summary = scores.summary()
    assert summary.keys() == MEASURES.keys() <= Record.model_fields.keys()
    assert summary["nll_paper"] == pytest.approx(scores.nll_paper.mean())
    assert summary["rmse_median"] == pytest.approx(np.median(scores.rmse))


def test_coverage_is_the_share_of_outputs_within_their_interval(test, divisors):
    """Predictions that are off by exactly their own standard deviation, and by three of them in one task."""
    deviation = 0.3 * np.ones_like(test.targets)
    away = np.ones(len(test))
    away[1] = 3.0
    scores = score(test.targets + away[:, None, None] * deviation, deviation**2, test, divisors)
    assert scores.coverage.tolist() == [0.0 if i == 1 else 1.0 for i in range(len(test))]
    assert scores.summary()["coverage_worst"] == 0.0
