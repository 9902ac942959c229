"""The GP over latent space against conditioning written out, and against samples of uncertain latents."""

from dataclasses import replace

import numpy as np
import pytest
from known_tasks import candidates, known, known_kernel

from distpaml.select.context import SelectionContext
from distpaml.select.latent_process import JITTER, kernel_surprisal

H = np.array([[0.3, -1.0], [2.0, 2.0], [-4.0, 1.0]])


@pytest.fixture(scope="module")
def context() -> SelectionContext:
    return known()


def variances(context, known, points):
    """Of the GP at points [A, Q], given known latents [N, Q]."""
    inverse = np.linalg.inv(known_kernel(context, known, known) + JITTER * np.eye(len(known)))
    cross = known_kernel(context, points, known)
    return 1 - ((cross @ inverse) * cross).sum(1)


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
