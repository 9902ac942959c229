"""The committee against the model's own refits, and conditioning against dense algebra."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from known_tasks import candidates, known

from distpaml.model.latent_gp import TrainingSet
from distpaml.model.posterior import Latents, Posterior
from distpaml.select.context import SelectionContext
from distpaml.select.disagreement import FACTOR, committee, disagreement

H = np.array([[0.3, -1.0], [2.0, 2.0], [-4.0, 1.0]])


@pytest.fixture(scope="module")
def context() -> SelectionContext:
    return known()


def predictions(context: SelectionContext, latents: np.ndarray) -> np.ndarray:
    """Means [G, K, M, D] of models whose kernels have other length-scales, with the posteriors of `Posterior`."""
    model = context.model
    scaled = context.data.standardised(model.inputs, model.targets)
    x, y = torch.as_tensor(scaled.inputs), torch.as_tensor(scaled.targets)
    training = TrainingSet.make(x, y, scaled.counts.tolist(), model.descriptors, x[:0])
    inputs, h = context.inputs / context.posterior.rate_x, torch.as_tensor(latents)
    members = []
    for q, change in [(0, 1.0), (0, FACTOR), (0, 1 / FACTOR), (1, FACTOR), (1, 1 / FACTOR)]:
        gp = deepcopy(model.gp)
        with torch.no_grad():
            gp.kernel.base_kernel.raw_lengthscale[0, x.shape[-1] + q] -= np.log(change)
        posterior = Posterior.collapsed(gp, training)
        mean, _ = posterior.predict(inputs.expand(len(h), -1, -1), Latents(h, torch.zeros_like(h)))
        members.append(mean.numpy())
    return np.array(members)


def test_disagreement_is_the_variance_of_the_members_predictions(context):
    expected = predictions(context, H).var(axis=0).mean(axis=(1, 2))
    np.testing.assert_allclose(disagreement(candidates(H), context), expected, rtol=1e-4)


def test_the_first_member_is_the_fitted_model(context):
    first = next(committee(context))
    torch.testing.assert_close(first.alpha, context.posterior.alpha, rtol=1e-5, atol=1e-6)


def test_members_agree_about_known_tasks(context):
    beyond = candidates(context.mean + 2.0 / context.posterior.rate_h.numpy())
    assert disagreement(context.known, context).max() < 0.1 * disagreement(beyond, context).min()


def test_a_pending_task_lowers_disagreement_as_if_members_were_draws_of_a_gaussian(context):
    pending = np.array([[1.0, 0.5], [-2.0, 0.5]])
    means = predictions(context, np.vstack([H, pending]))
    centred = means - means.mean(axis=0)
    inputs, expected = len(context.inputs), np.zeros(len(H))
    for d, noise in enumerate(context.posterior.noise.numpy()):
        points = centred[..., d].reshape(5, -1)
        covariance, split = points.T @ points / 5, len(H) * inputs
        seen = covariance[split:, split:] + noise * np.eye(len(covariance) - split)
        rest = covariance[:split, :split] - covariance[:split, split:] @ np.linalg.solve(
            seen, covariance[split:, :split]
        )
        expected += np.diag(rest).reshape(len(H), inputs).mean(axis=1) / centred.shape[-1]
    after = disagreement(candidates(H), context.observing(candidates(pending)))
    np.testing.assert_allclose(after, expected, rtol=1e-3, atol=1e-9)
