"""The GP over tasks against conditioning written out, and its kernel against draws of all latents together."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from known_tasks import candidates, known, known_kernel

from distpaml.model.posterior import Latents
from distpaml.select.candidates import Candidates, fine_pool, placing
from distpaml.select.context import SelectionContext
from distpaml.select.latent_process import JITTER
from distpaml.select.task_process import (
    TaskProcess,
    integrated_variance,
    kernel,
    task_information,
    weighted_variance,
)

H = np.array([[0.3, -1.0], [2.0, 2.0], [-4.0, 1.0]])


@pytest.fixture(scope="module")
def context() -> SelectionContext:
    return known()


@pytest.fixture(scope="module")
def exact(context) -> SelectionContext:
    """All latents known exactly, those of the references too."""
    references = Candidates.at(context.references.mean)
    return replace(context, variance=np.zeros_like(context.mean), references=references)


def variances(context, known, points):
    """Of the GP at points [A, Q], given known latents [N, Q]."""
    inverse = np.linalg.inv(known_kernel(context, known, known) + JITTER * np.eye(len(known)))
    cross = known_kernel(context, points, known)
    return 1 - ((cross @ inverse) * cross).sum(1)


def before_and_after(exact):
    """The variances at each reference [R], and after observing each candidate of H [K, R]."""
    points = exact.references.mean
    after = [variances(exact, np.vstack([exact.mean, c]), points) for c in H]
    return variances(exact, exact.mean, points), np.array(after)


def test_integrated_variance_is_the_fall_of_a_gps_variance(exact):
    before, after = before_and_after(exact)
    found = integrated_variance(candidates(H), exact)
    np.testing.assert_allclose(found, (before - after).mean(1), rtol=1e-5)


def test_task_information_is_the_fall_of_a_gps_entropy(exact):
    before, after = before_and_after(exact)
    posterior = exact.model.posterior
    noise = (posterior.noise / posterior.amplitude).mean().item()
    expected = 0.5 * np.log((before + noise) / (after + noise)).mean(1)
    np.testing.assert_allclose(task_information(candidates(H), exact), expected, rtol=1e-4)


def with_ratios(context, monkeypatch, ratio):
    embeddings = context.model.embeddings
    changed = Latents(embeddings.mean, embeddings.variance, torch.tensor(ratio, dtype=torch.float64))
    monkeypatch.setattr(type(context.model), "embeddings", property(lambda self: changed))


def test_weighted_variance_counts_references_by_the_noise_around_them(exact, monkeypatch):
    log_ratio = np.array([2.0, -1.0, 0.5])
    with_ratios(exact, monkeypatch, np.exp(log_ratio))
    before, after = before_and_after(exact)
    smooth = known_kernel(exact, exact.mean, exact.mean) + 0.1 * np.eye(3)
    carried = known_kernel(exact, exact.references.mean, exact.mean) @ np.linalg.solve(smooth, log_ratio)
    weights = np.exp(carried)
    assert weights.max() > 1.2 * weights.min()
    weighted = ((before - after) * weights).sum(1) / weights.sum()
    np.testing.assert_allclose(weighted_variance(candidates(H), exact), weighted, rtol=1e-5)


def test_weighted_variance_is_the_integrated_one_if_all_tasks_are_as_noisy_as_expected(context, monkeypatch):
    with_ratios(context, monkeypatch, np.ones(3))
    np.testing.assert_allclose(
        weighted_variance(candidates(H), context), integrated_variance(candidates(H), context), rtol=1e-12
    )


def test_the_kernel_is_that_of_the_model_averaged_over_the_latents_that_the_encoder_thinks_possible(context):
    """Latents of all tasks are drawn together from the encoder; those of one task share what its descriptor hides."""
    descriptors = fine_pool(context.low, context.high, 8, np.random.default_rng(0))
    tasks = placing(context.model, context.low, context.high)(descriptors)
    encoder = tasks.encoder
    assert encoder is not None
    covariance = encoder.covariance(descriptors, descriptors).permute(2, 0, 1).numpy()  # [Q, 8, 8]
    for q in range(covariance.shape[0]):
        np.fill_diagonal(covariance[q], tasks.variance[:, q])
    rng, draws = np.random.default_rng(1), 200_000
    latents = np.stack(
        [rng.multivariate_normal(tasks.mean[:, q], covariance[q], draws) for q in range(len(covariance))], -1
    )
    rate = context.model.posterior.rate_h.numpy()
    other = [1, 2, 3, 4, 5, 6, 7, 0]
    sampled = np.exp(-0.5 * (((latents - latents[:, other]) * rate) ** 2).sum(-1))
    found = kernel(tasks, tasks.take(np.array(other)), context).diagonal()
    error = sampled.std(0) / np.sqrt(draws)
    assert (np.abs(found.numpy() - sampled.mean(0)) < 5 * error + 1e-9).all()
    apart = kernel(replace(tasks, encoder=None), tasks.take(np.array(other)), context).diagonal()
    assert (np.abs(apart.numpy() - sampled.mean(0)) > 20 * error).any(), "draws could not tell a missing covariance"


def test_a_task_is_close_to_those_with_like_descriptors_however_little_is_known_of_their_latents(context):
    middle = 0.5 * (context.low + context.high)
    place = placing(context.model, context.low, context.high)
    tasks = place(np.stack([middle, middle + 1e-4 * (context.high - context.low)]))
    assert tasks.encoder is not None
    vague = replace(tasks.encoder, parameters=tasks.encoder.parameters.clone())
    vague.parameters[:, 0] += 4.0  # the line may be steep
    vague.parameters[:, 2] = -20.0  # and descriptors say all
    mean, variance = vague.encode(tasks.descriptors)
    tasks = replace(tasks, mean=mean, variance=variance, encoder=vague)
    assert kernel(tasks.take(slice(1)), tasks.take(slice(1, 2)), context).item() > 0.99


def test_a_pending_task_teaches_what_an_observed_one_would(context):
    """So the next of a batch is not its neighbour."""
    pool = placing(context.model, context.low, context.high)(
        fine_pool(context.low, context.high, 500, np.random.default_rng(0))
    )
    for utility in (integrated_variance, task_information, weighted_variance):
        first = int(utility(pool, context).argmax())
        later = context.observing(pool.take(slice(first, first + 1)))
        then = utility(pool, later)
        distance = np.abs((pool.descriptors - pool.descriptors[first]) / (context.high - context.low)).max(1)
        assert distance[then.argmax()] > 0.1
        assert then[first] < 0.2 * utility(pool, context)[first]


def test_variances_are_between_none_and_the_priors(context):
    pool = placing(context.model, context.low, context.high)(
        fine_pool(context.low, context.high, 200, np.random.default_rng(0))
    )
    found = TaskProcess.of(context).variances(pool)
    assert ((found > 0.0) & (found <= 1.0 + JITTER)).all()
