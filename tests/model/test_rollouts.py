"""Sampled trajectories of learned dynamics."""

import numpy as np
import pytest
import torch
from dense import conditional, double

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.data import Dataset
from distpaml.model.meta_model import MetaModel, fit_model
from distpaml.model.posterior import Latents
from distpaml.model.rollouts import known_latent, rollout


def trajectory(gain: float, start: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """A pushed mass: x += 0.1 v, v += gain u."""
    states = [start]
    for (control,) in controls:
        x, v = states[-1]
        states.append(np.array([x + 0.1 * v, v + gain * control]))
    return np.array(states)


@pytest.fixture(scope="module")
def masses() -> tuple[MetaModel, np.ndarray]:
    """Three masses, well learned."""
    rng, gains = np.random.default_rng(0), np.array([0.1, 0.2, 0.3])
    controls = rng.uniform(-1, 1, size=(3, 40, 1))
    states = np.stack([trajectory(g, rng.normal(size=2), c) for g, c in zip(gains, controls, strict=True)])
    data = Dataset.from_trajectories(states, controls, [], gains[:, None])
    return fit_model(data, ModelConfig(latent=1, inducing=40), FitConfig(evaluations=80, restarts=1), seed=0), gains


def of_task(latents: Latents, i: int) -> Latents:
    return Latents(latents.mean[i : i + 1], latents.variance[i : i + 1])


def test_samples_follow_the_true_trajectory_and_spread(masses):
    model, gains = masses
    rng = np.random.default_rng(5)
    for i, gain in enumerate(gains):
        start, controls = np.array([0.2, -0.1]), rng.uniform(-1, 1, size=(15, 1))
        truth = trajectory(gain, start, controls)
        samples = rollout(model, start, controls, of_task(model.embeddings, i), [], samples=50, seed=1)
        assert samples.shape == (50, 16, 2)
        assert (samples[:, 0] == start).all()
        assert np.abs(samples.mean(axis=0) - truth).max() < 0.05 * np.ptp(truth)
        spread = samples.std(axis=0)
        assert (spread[15] > spread[1]).all() and (spread[1] > 0).all()


def test_the_latent_makes_the_difference(masses):
    model, _ = masses
    start, controls = np.zeros(2), np.full((10, 1), 0.8)
    ends = [rollout(model, start, controls, of_task(model.embeddings, i), [], 20, 0)[:, -1, 1] for i in range(3)]
    assert ends[0].max() < ends[1].min() and ends[1].max() < ends[2].min()


def test_not_knowing_the_latent_spreads_whole_trajectories(masses):
    """With h drawn once per trajectory, velocities of one trajectory stay on the same side."""
    model, _ = masses
    start, controls = np.zeros(2), np.full((10, 1), 0.8)
    samples = rollout(model, start, controls, Latents.prior(1, model.gp.mean.detach()), [], 200, 0)
    known = rollout(model, start, controls, of_task(model.embeddings, 1), [], 200, 0)
    assert (samples.std(axis=0)[1:, 1] > 2 * known.std(axis=0)[1:, 1]).all()
    assert np.corrcoef(samples[:, 3, 1], np.diff(samples[:, 3:7, 1]).sum(-1))[0, 1] > 0.8


def test_the_same_seed_gives_the_same_samples(masses):
    model, _ = masses
    arguments = model, np.zeros(2), np.ones((5, 1)), of_task(model.embeddings, 0), [], 10
    assert np.array_equal(rollout(*arguments, seed=3), rollout(*arguments, seed=3))
    assert not np.array_equal(rollout(*arguments, seed=3), rollout(*arguments, seed=4))


def test_one_step_has_the_moments_of_a_prediction(fitted):
    """With an angle among the states, and without the noise of observations."""
    start, control = np.array([0.1, 3.0, 0.2, -0.3]), np.array([[12.0]])
    latents = of_task(fitted.embeddings, 2)
    inputs = np.array([[[np.cos(3.0), np.sin(3.0), 0.1, 0.2, -0.3, 12.0]]])
    mean, variance = fitted.predict(inputs, latents)
    variance = variance - fitted.posterior.noise.numpy() * fitted.targets.scale**2
    step = rollout(fitted, start, control, latents, [1], samples=20_000, seed=0)[:, 1] - start
    assert (np.abs(step.mean(axis=0) - mean[0, 0]) < 5 * np.sqrt(variance[0, 0] / 20_000)).all()
    assert step.var(axis=0) == pytest.approx(variance[0, 0], rel=0.06)


def test_moments_with_a_known_latent_are_those_of_dense_formulas(fitted):
    generator = torch.Generator().manual_seed(0)
    x, h = double(7, 6, generator=generator), double(7, 2, generator=generator)
    for found, truth in zip(known_latent(fitted.posterior, x, h), conditional(fitted.posterior, x, h), strict=True):
        assert torch.allclose(found, truth, rtol=1e-4, atol=1e-6)


def test_a_rollout_is_of_one_task(masses):
    model, _ = masses
    with pytest.raises(ValueError, match="of one task, but there are latents of 3"):
        rollout(model, np.zeros(2), np.ones((5, 1)), model.embeddings, [], 10, 0)
