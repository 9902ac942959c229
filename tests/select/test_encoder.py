import numpy as np
import pytest

from distpaml.select.encoder import Encoder

LOW, HIGH = np.array([0.5, 10.0]), np.array([5.0, 20.0])


def tasks(n: int, seed: int = 0) -> np.ndarray:
    return LOW + (HIGH - LOW) * np.random.default_rng(seed).random((n, 2))


def unit(descriptors: np.ndarray) -> np.ndarray:
    return 2 * (descriptors - LOW) / (HIGH - LOW) - 1


@pytest.mark.parametrize("n, error", [(4, 0.6), (10, 0.1)])
def test_a_linear_map_is_carried_on_to_the_corners(n, error):
    weights = np.array([[1.0, -0.5], [0.3, 0.8]])
    known, corners = 0.5 * (tasks(n) + (LOW + HIGH) / 2), np.array([LOW, HIGH])
    encoder = Encoder.fit(known, unit(known) @ weights, np.full((n, 2), 1e-4), LOW, HIGH)
    mean, variance = encoder.encode(corners)
    assert np.abs(mean - unit(corners) @ weights).max() < error
    assert (np.abs(mean - unit(corners) @ weights) < 3 * np.sqrt(variance)).all()


def test_known_tasks_keep_their_embeddings_and_distance_makes_uncertain():
    known = 0.5 * (tasks(8) + LOW)
    embeddings = np.stack([np.sin(2 * unit(known)[:, 0]), unit(known)[:, 1] ** 2], axis=1)
    encoder = Encoder.fit(known, embeddings, np.full((8, 2), 1e-6), LOW, HIGH)
    mean, variance = encoder.encode(np.vstack([known, HIGH]))
    np.testing.assert_allclose(mean[:-1], embeddings, atol=0.05)
    assert (variance[-1] > 5 * variance[:-1]).all()


def test_what_a_descriptor_does_not_say_is_uncertainty():
    """Embeddings that vary at the same descriptor, as with a hidden mass, are not interpolated."""
    known = tasks(40)
    hidden = np.random.default_rng(1).normal(0, 0.5, 40)
    embeddings = np.stack([unit(known)[:, 0], hidden], axis=1)
    _, variance = Encoder.fit(known, embeddings, np.full((40, 2), 1e-6), LOW, HIGH).encode(tasks(5, seed=2))
    assert np.sqrt(variance[:, 0]).max() < 0.1
    np.testing.assert_allclose(np.sqrt(variance[:, 1]), 0.5, rtol=0.35)


def test_latents_do_not_depend_on_the_other_descriptors():
    known = tasks(6)
    encoder = Encoder.fit(known, unit(known), np.full((6, 2), 1e-4), LOW, HIGH)
    mean, variance = encoder.encode(tasks(9, seed=3))
    one_mean, one_variance = encoder.encode(tasks(9, seed=3)[4:5])
    np.testing.assert_allclose(one_mean[0], mean[4], rtol=1e-10)
    np.testing.assert_allclose(one_variance[0], variance[4], rtol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_embeddings_far_apart_are_encoded(seed):
    """A line as steep as the embeddings are far may be nearly singular on the way to the best one."""
    rng = np.random.default_rng(seed)
    known = rng.uniform(LOW, HIGH, (4, 2))
    mean, variance = Encoder.fit(known, 1e4 * rng.normal(size=(4, 2)), np.full((4, 2), 1e-4), LOW, HIGH).encode(known)
    assert np.isfinite(mean).all() and (variance > 0).all()
