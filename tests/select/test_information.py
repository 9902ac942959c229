"""Utilities of the model's posterior against its covariances written out and conditioned on densely."""

import numpy as np
import pytest
import torch
from known_tasks import candidates, known

from distpaml.model.posterior import Latents
from distpaml.select.context import SelectionContext
from distpaml.select.information import information_gain, predictive_variance

PENDING = [[], [[0.5, 0.5]], [[0.5, 0.5], [-1.0, 2.0]]]


@pytest.fixture(scope="module")
def context() -> SelectionContext:
    return known()


def dense_covariance(context: SelectionContext, output: int, points: np.ndarray) -> np.ndarray:
    """a k(p, p') − k_pZ Q k_Zp' of points (x, h) in units of the length-scales, straight from the formula."""
    posterior = context.posterior
    z = torch.cat([posterior.zx, posterior.zh], -1).numpy()

    def k(a, b):
        return np.exp(-0.5 * ((a[:, None] - b) ** 2).sum(-1))

    q = posterior.q[output].numpy()
    return posterior.amplitude.item() * k(points, points) - k(points, z) @ q @ k(z, points)


def trajectories(context: SelectionContext, latents) -> np.ndarray:
    x = np.tile(context.inputs.numpy(), (len(latents), 1))
    h = np.reshape(latents, (-1, 2)) * context.posterior.rate_h.numpy()
    return np.hstack([x, np.repeat(h, len(context.inputs), axis=0)])


def conditioned(context: SelectionContext, output: int, latents, observed) -> np.ndarray:
    """The covariance of trajectories at `latents`, given noisy trajectories at `observed`."""
    both = trajectories(context, [*latents, *observed])
    covariance, split = dense_covariance(context, output, both), len(latents) * len(context.inputs)
    noise = context.posterior.noise[output].item() * np.eye(len(covariance) - split)
    gain = covariance[:split, split:] @ np.linalg.solve(covariance[split:, split:] + noise, covariance[split:, :split])
    return covariance[:split, :split] - gain


def asked(context, pending):
    h = np.array([[0.3, -1.0], [2.0, 2.0], context.mean[0]])
    return h, context.observing(candidates(np.reshape(pending, (-1, 2))))


@pytest.mark.parametrize("pending", PENDING)
def test_predictive_variance_is_the_fall_of_the_models_variance(context, pending):
    h, given = asked(context, pending)

    def total(output, observed):
        return np.diag(conditioned(context, output, context.references.mean, observed)).mean()

    outputs = range(len(context.posterior.noise))
    expected = [np.mean([total(d, pending) - total(d, [*pending, c]) for d in outputs]) for c in h]
    fall = predictive_variance(candidates(h), given)
    np.testing.assert_allclose(fall, expected, rtol=5e-3, atol=1e-4 * max(expected))


@pytest.mark.parametrize("pending", PENDING)
def test_information_gain_is_the_fall_of_the_entropy_of_a_trajectory(context, pending):
    h, given = asked(context, pending)

    def entropy(output, reference, observed):
        covariance = conditioned(context, output, [reference], observed)
        return 0.5 * np.linalg.slogdet(covariance + context.posterior.noise[output].item() * np.eye(len(covariance)))[1]

    outputs = range(len(context.posterior.noise))
    expected = [
        np.mean(
            [
                sum(entropy(d, r, pending) - entropy(d, r, [*pending, c]) for d in outputs)
                for r in context.references.mean
            ]
        )
        for c in h
    ]
    np.testing.assert_allclose(information_gain(candidates(h), given), expected, rtol=1e-3, atol=1e-6)


def test_the_covariances_are_those_of_the_models_predictions(context):
    h = torch.tensor([[0.3, -1.0]], dtype=torch.float64)
    x = context.inputs / context.posterior.rate_x
    _, variance = context.posterior.predict(x[None], Latents(h, torch.zeros_like(h)))
    for d, noise in enumerate(context.posterior.noise):
        own = np.diag(dense_covariance(context, d, trajectories(context, h.numpy()))) + noise.item()
        np.testing.assert_allclose(variance[0, :, d].numpy(), own, rtol=1e-4)
