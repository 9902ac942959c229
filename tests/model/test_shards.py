"""A shard's statistics against dense sums, and shards against one another."""

from copy import deepcopy

import pytest
import torch
from dense import double, expected_kernel_product, kernel

from distpaml.model import shards
from distpaml.model.collapsed import CollapsedBound, safe_cholesky
from distpaml.model.shards import BoundInputs, Cotangent, LocalShards, Shard

COUNTS = [3, 1, 5, 2, 4]


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs [5, 6, 2] and targets [5, 6, 3] with rubbish beyond the counts."""
    generator = torch.Generator().manual_seed(3)
    return double(5, 6, 2, generator=generator), double(5, 6, 3, generator=generator)


def arguments() -> list[torch.Tensor]:
    """(k, rate, zx, zh, mean, variance, log_weight, amplitude, noise, squares, mass) of a bound with L = 4, Q = 2."""
    generator = torch.Generator().manual_seed(4)
    zx, zh = double(4, 2, generator=generator), double(4, 2, generator=generator)
    z = torch.cat([zx, zh], -1)
    mean, variance = double(5, 2, generator=generator), (double(5, 2, generator=generator) - 1.0).exp()
    _, y = data()
    log_weight = 0.3 * double(5, generator=generator)
    weight = (2.0 * log_weight).exp()
    squares = torch.stack([weight[i] * y[i, :c].square().sum(0) for i, c in enumerate(COUNTS)]).sum(0)
    mass = weight @ torch.tensor(COUNTS, dtype=torch.float64)
    rate, amplitude, noise = (torch.tensor(v, dtype=torch.float64) for v in ([0.8, 1.3], 1.7, [0.2, 0.5, 0.9]))
    k = kernel(z, z) + 0.1 * torch.eye(4, dtype=torch.float64)
    return [k, rate, zx, zh, mean, variance, log_weight, amplitude, noise, squares, mass]


def bound(values: list[torch.Tensor], pool: LocalShards, uncertain: bool = True) -> torch.Tensor:
    return CollapsedBound.apply(*values, sum(COUNTS), pool, uncertain)


def test_statistics_are_dense_sums_over_valid_rows():
    k, rate, zx, zh, mean, variance, log_weight, *_ = arguments()
    chol = safe_cholesky(k, "k")
    x, y = data()
    inputs = BoundInputs(rate, zx, zh, chol, mean, variance, log_weight)
    statistics = Shard(x, y, COUNTS).forward(inputs)
    inverse = torch.linalg.inv(chol)
    psi2, target = torch.zeros(4, 4, dtype=torch.float64), torch.zeros(4, 3, dtype=torch.float64)
    for i, count in enumerate(COUNTS):
        kx = kernel(x[i, :count] * rate, zx)
        v = 1.0 + variance[i]
        e1 = torch.exp(-0.5 * ((zh - mean[i]).square() / v).sum(-1)) / v.prod().sqrt()
        weight = (2.0 * log_weight[i]).exp()
        psi2 += weight * kx.T @ kx * expected_kernel_product(mean[i], variance[i], zh)
        target += weight * inverse @ (kx * e1).T @ y[i, :count]
    whitened = statistics.square + inverse @ statistics.correction @ inverse.T
    assert torch.allclose(whitened, inverse @ psi2 @ inverse.T, rtol=1e-12, atol=1e-13)
    assert torch.allclose(statistics.target, target, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("block", "kept", "panel"), [(16, 1e6, 100), (2, 1e6, 2), (2, 3e3, 3), (1, 0, 1)])
def test_gradient_of_the_bound_in_everything(monkeypatch, block, kept, panel):
    """Whatever is made at once and kept: blocks of tasks, tables in bytes, rows of a table."""
    monkeypatch.setattr(shards, "BLOCK", block)
    monkeypatch.setattr(shards, "KEPT_BYTES", kept)
    monkeypatch.setattr(shards, "PANEL", panel)
    pool = LocalShards(*data(), COUNTS)
    values = [value.requires_grad_() for value in arguments()]

    def of_symmetric(k: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        return bound([0.5 * (k + k.T), *rest], pool)

    assert torch.autograd.gradcheck(of_symmetric, values, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("uncertain", [True, False])
@pytest.mark.parametrize("count", [2, 3, 5, 9])
@pytest.mark.parametrize(("block", "kept"), [(16, 1e6), (1, 1e3)])
def test_any_number_of_shards_is_one_shard(monkeypatch, count, block, kept, uncertain):
    x, y = data()
    whole = arguments()
    one = bound([v.requires_grad_() for v in whole], LocalShards(x, y, COUNTS), uncertain)
    one.backward()
    monkeypatch.setattr(shards, "BLOCK", block)
    monkeypatch.setattr(shards, "KEPT_BYTES", kept)
    split = arguments()
    many = bound([v.requires_grad_() for v in split], LocalShards(x, y, COUNTS, count), uncertain)
    many.backward()
    assert many.item() == pytest.approx(one.item(), rel=1e-10)
    for a, b in zip(whole, split, strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-8, atol=1e-8 * a.grad.abs().max().item())


def test_rows_beyond_the_counts_do_not_matter():
    x, y = data()
    valid = (torch.arange(6) < torch.tensor(COUNTS)[:, None]).unsqueeze(-1)
    values = [value.detach() for value in arguments()]
    clean = LocalShards(x * valid, y * valid, COUNTS)
    assert torch.equal(bound(values, LocalShards(x, y, COUNTS)), bound(values, clean))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_latents_many_length_scales_apart_give_no_nan(dtype):
    """e1 vanishes there while exp(delta) overflows; their product is nothing."""
    x, y = torch.randn(2, 5, 1, dtype=dtype), torch.randn(2, 5, 1, dtype=dtype)
    eye, one = torch.eye(3, dtype=dtype), torch.ones(3, 1, dtype=dtype)
    zh = torch.tensor([[-90.0], [0.0], [90.0]], dtype=dtype)
    variance = torch.tensor([[0.5], [3.0]], dtype=dtype)
    shard = Shard(x, y, [5, 5])
    inputs = BoundInputs(one[:1, 0], 0.0 * one, zh, eye, zh[:2], variance, torch.zeros(2, dtype=dtype))
    statistics, gradient = shard.forward(inputs), shard.backward(inputs, Cotangent(eye, eye, one))
    assert all(torch.isfinite(part).all() for part in (*statistics, *gradient))
    assert statistics.correction[1, 1] > 0


@pytest.mark.parametrize("group", [2, 16])
def test_tables_of_several_tasks_at_once_are_those_of_each(group):
    """What a GPU does in one go, in the same numbers."""
    k, rate, zx, zh, mean, variance, log_weight, *_ = arguments()
    inputs = BoundInputs(rate, zx, zh, safe_cholesky(k, "k"), mean, variance, log_weight)
    alone, together = (Shard(*data(), COUNTS, size) for size in (1, group))
    cotangent = Cotangent(*(double(4, size) for size in (4, 4, 3)))
    for a, b in zip(alone.forward(inputs), together.forward(inputs), strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)
    for a, b in zip(alone.backward(inputs, cotangent), together.backward(inputs, cotangent), strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_gradient_belongs_to_its_own_evaluation(problem):
    """Also when the same shards were asked something else in between."""
    gp, data = problem
    gp.terms(data).total.backward()
    expected = gp.zx.grad.clone()
    gp.zero_grad()
    first, other = gp.terms(data).total, deepcopy(gp)
    with torch.no_grad():
        other.zx += 1.0
    other.terms(data)
    first.backward()
    assert torch.allclose(gp.zx.grad, expected, rtol=1e-12)
