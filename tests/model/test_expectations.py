"""Expected kernels against quadrature, and the correction of Psi2 where it nearly vanishes against many digits."""

from decimal import Decimal, localcontext

import pytest
import torch
from dense import double, expected_kernel_product, hermite, kernel, log_correction

from distpaml.model.expectations import Coefficients, expected_kernel, rbf


def latent_problem(latent: int, size: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(latent)
    mean, z = double(latent, generator=generator), double(4, latent, generator=generator)
    return mean, size * (1.0 + torch.rand(latent, generator=generator, dtype=torch.float64)), z


def test_rbf_by_differences():
    a, b = double(5, 3, generator=torch.Generator().manual_seed(0)), double(2, 4, 3)
    assert torch.allclose(rbf(a, b[0]), kernel(a, b[0]), rtol=1e-14)
    assert torch.allclose(rbf(a.expand(2, 5, 3), b)[1], rbf(a, b[1]), rtol=1e-14)


def test_rbf_of_a_point_with_itself_is_never_above_one():
    points = 1e3 + double(50, 3)
    assert rbf(points, points).max() <= 1.0


@pytest.mark.parametrize("size", [1e-6, 1e-2, 0.3, 2.0])
@pytest.mark.parametrize("latent", [1, 2, 3])
def test_expectations_are_those_of_quadrature(latent, size):
    mean, variance, z = latent_problem(latent, size)
    nodes, weights = hermite(mean, variance, {1: 150, 2: 110, 3: 110}[latent])
    features = kernel(nodes, z)  # [K, L]
    assert torch.allclose(expected_kernel(mean, variance, z), weights @ features, rtol=1e-8, atol=1e-10)
    product = features.T @ (weights[:, None] * features)
    assert torch.allclose(expected_kernel_product(mean, variance, z), product, rtol=1e-8, atol=1e-10)


def test_a_batch_is_each_of_its_members():
    mean, variance, z = double(3, 2), double(3, 2).exp(), double(4, 2)
    for function in (expected_kernel, log_correction, expected_kernel_product):
        together = function(mean, variance, z)
        for i in range(3):
            assert torch.allclose(together[i], function(mean[i], variance[i], z), rtol=1e-12)


@pytest.mark.parametrize("t", [1e-12, 1e-8, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("z", [(1.7, -0.4), (0.3, 0.3)])
def test_the_correction_keeps_its_digits(t, z):
    """Relative to log E2 - log e1 - log e1' in 60 digits; on the mean it is of order t^2."""
    n = 0.3
    with localcontext(prec=60):
        tt, nn, a, b = (Decimal(v) for v in (t, n, *z))
        e1 = [-(1 + tt).ln() / 2 - (v - nn) ** 2 / (2 * (1 + tt)) for v in (a, b)]
        e2 = -(1 + 2 * tt).ln() / 2 - (a - b) ** 2 / 4 - (nn - (a + b) / 2) ** 2 / (1 + 2 * tt)
        truth = float(e2 - e1[0] - e1[1])
    given = [torch.tensor([v], dtype=torch.float64) for v in (n, t)]
    found = log_correction(*given, torch.tensor(z, dtype=torch.float64)[:, None])
    assert found[0, 1].item() == pytest.approx(truth, rel=1e-13, abs=0.0)


@pytest.mark.parametrize("t", [1e-9, 1e-2, 0.7, 30.0])
def test_derivatives_of_the_coefficients(t):
    value = torch.tensor(t, dtype=torch.float64, requires_grad=True)
    for coefficient, derivative in zip(Coefficients.of(value), Coefficients.derivative(value), strict=True):
        (truth,) = torch.autograd.grad(coefficient, value, retain_graph=True)
        assert derivative.item() == pytest.approx(truth.item(), rel=1e-9)
