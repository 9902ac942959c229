from copy import deepcopy

import numpy as np
import pytest
import torch
from scipy.stats import qmc
from tiny import rounds_of, tiny

from distpaml import seeds
from distpaml.data.tasks import TaskSet
from distpaml.model.meta_model import MetaModel
from distpaml.select.candidates import descriptor_pool, fine_pool, latent_grid
from distpaml.select.methods import get_method
from distpaml.select.scoring import UtilityScorer

MEAN = np.array([[-1.0, 0.0], [1.0, 0.5], [0.0, -1.0]])
VARIANCE = np.array([[1e-3, 2e-3], [3e-3, 1e-3], [2e-3, 2e-3]])
DESCRIPTORS = np.array([[1.0, 1.0], [4.0, 1.5], [2.0, 0.7]])
LENGTHSCALE, NOISE = np.array([1.5, 2.0]), 1e-3
LOW, HIGH = np.array([0.5, 0.5]), np.array([5.0, 2.0])


@pytest.fixture
def pinned() -> MetaModel:
    """A model whose embeddings and decoder have the values above."""
    model = deepcopy(rounds_of()[0].model)
    with torch.no_grad():
        model.gp.mean.copy_(torch.as_tensor(MEAN))
        model.gp.log_variance.copy_(torch.as_tensor(VARIANCE).log())
        model.gp.decoder.log_lengthscale.copy_(torch.as_tensor(LENGTHSCALE).log())
        model.gp.decoder.log_noise.fill_(np.log(NOISE))
        model.descriptors.copy_(torch.as_tensor(DESCRIPTORS))
    return model


def decoded_by_hand(h: np.ndarray) -> np.ndarray:
    """k(h, H) (k(H, H) + ν I)⁻¹ Ψ: the amplitude cancels."""

    def kernel(a, b):
        return np.exp(-0.5 * (((a[:, None] - b) / LENGTHSCALE) ** 2).sum(-1))

    return kernel(h, MEAN) @ np.linalg.solve(kernel(MEAN, MEAN) + NOISE * np.eye(3), DESCRIPTORS)


def grid_by_hand(slack: float, n: int) -> np.ndarray:
    first, second = (np.linspace(column.min() - slack, column.max() + slack, n) for column in MEAN.T)
    return np.array([[a, b] for a in first for b in second])


def test_the_latent_grid_reaches_beyond_the_embeddings_and_keeps_what_decodes_into_the_box(pinned):
    candidates = latent_grid(pinned, LOW, HIGH, per_dimension=15, slack=3.0)
    points = grid_by_hand(3.0, 15)
    decoded = decoded_by_hand(points)
    valid = ((decoded >= LOW) & (decoded <= HIGH)).all(axis=1)
    assert 0 < valid.sum() < len(points) == candidates.total
    np.testing.assert_allclose(candidates.mean, points[valid], rtol=1e-12)
    np.testing.assert_allclose(candidates.descriptors, decoded[valid], rtol=1e-8)
    assert candidates.fallback is None


def test_literal_paml_picks_what_the_formula_says(pinned):
    config = tiny("method=paml", "selection.per_dimension=40", "selection.slack=10")
    data = rounds_of()[0].data
    selection = get_method(TaskSet(config)).choose(pinned, data, UtilityScorer(config.utility).best)
    points = grid_by_hand(10.0, 40)
    decoded = decoded_by_hand(points)
    valid = ((decoded >= LOW) & (decoded <= HIGH)).all(axis=1)
    exponents = [
        -0.5 * ((points - n) ** 2 / t + np.log(2 * np.pi * t)).sum(axis=1) for n, t in zip(MEAN, VARIANCE, strict=True)
    ]
    utility = np.where(valid, -np.logaddexp.reduce(exponents) + np.log(3), -np.inf)
    best = int(utility.argmax())
    np.testing.assert_allclose(selection.latents, points[[best]], rtol=1e-12)
    np.testing.assert_allclose(selection.descriptors, decoded[[best]], rtol=1e-8)
    np.testing.assert_allclose(selection.utilities, [float(utility[best])], rtol=1e-10)
    assert (selection.counts.valid, selection.counts.total) == (valid.sum(), 1600)


def test_a_grid_that_is_too_coarse_is_narrowed(pinned):
    assert not ((decoded_by_hand(grid_by_hand(40.0, 4)) >= LOW).all(axis=1)).any()
    candidates = latent_grid(pinned, LOW, HIGH, per_dimension=4, slack=40.0)
    assert candidates.fallback.startswith("slack narrowed to ")
    assert len(candidates) >= 1 and candidates.total == 16
    assert ((candidates.descriptors >= LOW) & (candidates.descriptors <= HIGH)).all()


def test_descriptors_are_clipped_if_no_grid_helps(pinned):
    low, high = np.array([6.0, 6.0]), np.array([7.0, 7.0])
    candidates = latent_grid(pinned, low, high, per_dimension=5, slack=10.0)
    assert candidates.fallback == "descriptors clipped to the box"
    assert len(candidates) == 25
    assert ((candidates.descriptors >= low) & (candidates.descriptors <= high)).all()


def test_a_batch_needs_as_many_candidates(pinned):
    few = latent_grid(pinned, LOW, HIGH, per_dimension=15, slack=10.0)
    more = latent_grid(pinned, LOW, HIGH, per_dimension=15, slack=10.0, least=len(few) + 1)
    assert few.fallback is None and more.fallback and len(more) > len(few)


def test_the_fine_set_covers_the_box_evenly():
    points = fine_pool(LOW, HIGH, 300, seeds.rng(0, "candidates"))
    assert points.shape == (300, 2) and ((points >= LOW) & (points <= HIGH)).all()
    unit = (points - LOW) / (HIGH - LOW)
    inside = unit[((unit > 0.0) & (unit < 1.0)).all(1)]
    random = [qmc.discrepancy(np.random.default_rng(i).random(inside.shape)) for i in range(5)]
    assert qmc.discrepancy(inside) < 0.2 * min(random)
    for column in (0, 1):  # every edge, end to end
        for end in (0.0, 1.0):
            along = np.sort(unit[unit[:, column] == end, 1 - column])
            assert along[0] == 0.0 and along[-1] == 1.0 and np.diff(along).max() < 0.15
    assert 0.25 < 1.0 - len(inside) / 300 < 0.37
    np.testing.assert_array_equal(points, fine_pool(LOW, HIGH, 300, seeds.rng(0, "candidates")))


def test_a_descriptor_set_puts_known_descriptors_at_their_embeddings(pinned):
    candidates = descriptor_pool(pinned, LOW, HIGH, np.vstack([DESCRIPTORS, HIGH]))
    assert np.abs(candidates.mean[:3] - MEAN).max() < 0.3
    assert (candidates.variance[3] > candidates.variance[:3]).all()
    assert (len(candidates), candidates.total) == (4, 4)
