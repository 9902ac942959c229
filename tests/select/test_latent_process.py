"""The GP over latent space against conditioning written out, and against samples of uncertain latents."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from known_tasks import candidates, known

from distpaml.model.posterior import Latents
from distpaml.select.context import SelectionContext
from distpaml.select.latent_process import JITTER, integrated_variance, kernel_surprisal, weighted_variance

H = np.array([[0.3, -1.0], [2.0, 2.0], [-4.0, 1.0]])


@pytest.fixture(scope="module")
def context() -> SelectionContext:
    return known()


def kernel(context, a, b):
    rate = context.model.posterior.rate_h.numpy()
    return np.exp(-0.5 * (((a[:, None] - b) * rate) ** 2).sum(-1))


def variances(context, known, points):
    """Of the GP at points [A, Q], given known latents [N, Q]."""
    inverse = np.linalg.inv(kernel(context, known, known) + JITTER * np.eye(len(known)))
    cross = kernel(context, points, known)
    return 1 - ((cross @ inverse) * cross).sum(1)


def falls(context):
    """By how much each candidate of H lowers the variance at each reference [K, R]."""
    exact = replace(context, variance=np.zeros_like(context.mean))
    before = variances(context, context.mean, context.references)
    after = [variances(context, np.vstack([context.mean, c]), context.references) for c in H]
    return exact, before - np.array(after)


def test_integrated_variance_is_the_fall_of_a_gps_variance(context):
    exact, expected = falls(context)
    np.testing.assert_allclose(integrated_variance(candidates(H), exact), expected.mean(1), rtol=1e-5)


def test_integrated_variance_gains_less_from_candidates_whose_latent_is_uncertain(context):
    h = np.random.default_rng(0).normal(size=(9, 2))
    lengthscale = 1.0 / context.model.posterior.rate_h.numpy()
    sure, vague = (
        integrated_variance(replace(candidates(h), variance=np.tile(t * lengthscale**2, (9, 1))), context)
        for t in (0.0, 5.0)
    )
    assert (vague < sure).all()


def with_ratios(context, monkeypatch, ratio):
    embeddings = context.model.embeddings
    changed = Latents(embeddings.mean, embeddings.variance, torch.tensor(ratio, dtype=torch.float64))
    monkeypatch.setattr(type(context.model), "embeddings", property(lambda self: changed))


def test_weighted_variance_counts_references_by_the_noise_around_them(context, monkeypatch):
    log_ratio = np.array([2.0, -1.0, 0.5])
    with_ratios(context, monkeypatch, np.exp(log_ratio))
    exact, expected = falls(context)
    smooth = kernel(context, context.mean, context.mean) + 0.1 * np.eye(3)
    weights = np.exp(kernel(context, context.references, context.mean) @ np.linalg.solve(smooth, log_ratio))
    assert weights.max() > 1.2 * weights.min()
    weighted = (expected * weights).sum(1) / weights.sum()
    np.testing.assert_allclose(weighted_variance(candidates(H), exact), weighted, rtol=1e-5)


def test_weighted_variance_is_the_integrated_one_if_all_tasks_are_as_noisy_as_expected(context, monkeypatch):
    with_ratios(context, monkeypatch, np.ones(3))
    np.testing.assert_allclose(
        weighted_variance(candidates(H), context), integrated_variance(candidates(H), context), rtol=1e-12
    )


def test_kernel_surprisal_is_the_variance_that_the_known_tasks_leave(context):
    exact = replace(context, variance=np.zeros_like(context.mean))
    expected = variances(context, context.mean, H)
    np.testing.assert_allclose(kernel_surprisal(candidates(H), exact), expected, rtol=1e-6, atol=1e-9)


def test_kernel_surprisal_of_uncertain_latents_is_an_expectation(context):
    """Both the candidate's latent and those of the known tasks: a million draws of the candidate's."""
    lengthscale = 1.0 / context.model.posterior.rate_h.numpy()
    vague = replace(context, variance=0.2 * np.tile(lengthscale**2, (3, 1)) * [[1.0], [0.1], [2.0]])
    h, spread = context.mean[:1] + 0.5 * lengthscale, 0.5 * lengthscale**2
    draws = h + np.sqrt(spread) * np.random.default_rng(0).normal(size=(200_000, 2))
    sure = kernel_surprisal(candidates(draws), vague)
    some = replace(candidates(h), variance=spread[None])
    error = sure.std() / np.sqrt(len(sure))
    assert kernel_surprisal(some, vague)[0] == pytest.approx(sure.mean(), abs=5 * error)
    assert error < 1e-3


def test_kernel_surprisal_with_uncertain_known_tasks_uses_their_expected_kernel(context):
    vague = replace(context, variance=np.array([[0.5, 0.1], [2.0, 1.0], [0.1, 3.0]]))
    rng, rate = np.random.default_rng(1), context.model.posterior.rate_h.numpy()
    draws = vague.mean + np.sqrt(vague.variance) * rng.normal(size=(400_000, 3, 2))
    between = np.exp(-0.5 * (((draws[:, :, None] - draws[:, None]) * rate) ** 2).sum(-1)).mean(0)
    cross = np.exp(-0.5 * (((draws[:, None] - H[:, None]) * rate) ** 2).sum(-1)).mean(0)  # [K, N]
    expected = 1 - ((cross @ np.linalg.inv(between + JITTER * np.eye(3))) * cross).sum(1)
    np.testing.assert_allclose(kernel_surprisal(candidates(H), vague), expected, atol=0.01)


def test_kernel_surprisal_is_bounded_and_in_small_tables_the_same(context, monkeypatch):
    far = candidates(np.vstack([context.mean, np.full((1, 2), 1e6)]))
    scores = kernel_surprisal(far, context)
    assert (scores >= 0).all() and (scores[:3] < 1e-2).all() and scores[3] == pytest.approx(1.0)
    monkeypatch.setattr("distpaml.select.latent_process.TABLE", 10)
    np.testing.assert_allclose(kernel_surprisal(far, context), scores, rtol=1e-9, atol=1e-15)
