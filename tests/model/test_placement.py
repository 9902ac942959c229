"""Where inducing points and embeddings start."""

import pytest
import torch
from dense import double, kernel

from distpaml.model.placement import descriptor_embedding, greedy_variance


def ones(points: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(points[:, 0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_point_has_the_largest_conditional_variance(seed, weighted):
    generator = torch.Generator().manual_seed(seed)
    points = 1.5 * double(30, 2, generator=generator)
    weights = double(30, generator=generator).exp() if weighted else ones(points)
    chosen = greedy_variance(points, weights, 8).tolist()
    k = kernel(points, points)
    assert len(set(chosen)) == 8
    for step in range(1, 8):
        before = chosen[:step]
        known = k[before].T @ torch.linalg.solve(k[before][:, before], k[before])
        variance = weights * (k - known).diagonal()
        assert variance[chosen[step]].item() == pytest.approx(variance.max().item(), abs=1e-10)


def test_never_more_points_than_there_are_and_none_twice():
    few = double(5, 2)
    assert sorted(greedy_variance(few, ones(few), 9).tolist()) == list(range(5))
    doubled = double(4, 2).repeat(3, 1)
    assert sorted(greedy_variance(doubled, ones(doubled), 12).tolist()) == list(range(12))
    assert {index % 4 for index in greedy_variance(doubled, ones(doubled), 4).tolist()} == set(range(4))


def test_ends_when_the_weighted_variance_that_is_left_is_small():
    points = double(200, 2)
    weights = ones(points)
    weights[100:] = 1e-6
    chosen = greedy_variance(points, weights, 200, enough=1e-3)
    k = kernel(points, points)

    def left(some: torch.Tensor) -> float:
        return (weights * (k - k[some].T @ torch.linalg.solve(k[some][:, some], k[some])).diagonal()).mean().item()

    assert left(chosen) < 1e-3 < left(chosen[:-1])
    assert (chosen < 100).all()


def test_embedding_follows_the_principal_components():
    generator = torch.Generator().manual_seed(0)
    main = double(40, 1, generator=generator)
    descriptors = torch.cat([main, -2.0 * main + 0.01 * double(40, 1, generator=generator)], -1) * 1e3 + 7.0
    embedding = descriptor_embedding(descriptors, 2, generator)
    correlation = torch.corrcoef(torch.stack([embedding[:, 0], main[:, 0]]))[0, 1]
    assert correlation.abs() > 0.98
    assert embedding.std(0) == pytest.approx([1.0, 1.0], abs=0.2)


def test_embedding_has_noise_alone_where_descriptors_say_nothing():
    embedding = descriptor_embedding(torch.ones(50, 2, dtype=torch.float64), 3, torch.Generator().manual_seed(0))
    assert embedding.shape == (50, 3)
    assert embedding.std() == pytest.approx(0.1, rel=0.2)
