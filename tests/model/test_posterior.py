"""Predictions under q(h) against samples of h, and with h known against a plain dense GP."""

import pytest
import torch
from dense import conditional, covariance, double, inducing

from distpaml.model.posterior import Latents, Posterior


@pytest.fixture
def posterior(problem) -> Posterior:
    return Posterior.collapsed(*problem)


def test_moments_are_those_of_a_million_samples(posterior):
    """By the laws of total expectation and total variance, within five standard errors."""
    n, t = torch.tensor([0.3, -0.2], dtype=torch.float64), torch.tensor([0.4, 0.9], dtype=torch.float64)
    x = double(3, 2, generator=torch.Generator().manual_seed(1))
    mean, variance = posterior.predict(x[None], Latents(n[None], t[None]))
    generator = torch.Generator().manual_seed(2)
    for i in range(len(x)):
        h = n + t.sqrt() * double(10**6, 2, generator=generator)
        m, v = conditional(posterior, x[i].expand(len(h), -1), h)
        v = v + posterior.noise
        spread = (m - m.mean(0)).square() + v
        assert ((mean[0, i] - m.mean(0)).abs() < 5 * m.std(0) / 1e3).all()
        assert ((variance[0, i] - spread.mean(0)).abs() < 5 * spread.std(0) / 1e3).all()
        assert (spread.std(0) / 1e3 < 0.01 * variance[0, i]).all(), "the samples could not tell a wrong value"


def test_known_latents_give_the_sparse_gp_of_titsias(problem, posterior):
    """mean = k' (K + Kzx Kxz / s)^-1 Kzx y / s and variance a - k'K^-1k + k'(K + Kzx Kxz / s)^-1 k + r s at t = 0.

    Points count with the weight 1 / r of their task; the new task has r = 3.
    """
    gp, data = problem
    with torch.no_grad():
        gp.log_variance.fill_(-80.0)
    posterior = Posterior.collapsed(gp, data)
    rows = [torch.cat([data.x[i, :c], gp.mean.detach()[i].expand(c, -1)], -1) for i, c in enumerate(data.counts)]
    weight = (-gp.log_ratio.detach()).exp().repeat_interleave(torch.tensor(data.counts))
    y = torch.cat([data.y[i, :c] for i, c in enumerate(data.counts)]) * weight.sqrt()[:, None]
    z, k_zz = inducing(gp)
    k_zx = covariance(gp, z, torch.cat(rows)) * weight.sqrt()
    new, h = double(4, 2), double(2)
    k = covariance(gp, z, torch.cat([new, h.expand(4, -1)], -1))
    mean, variance = posterior.predict(new[None], Latents(h[None], torch.zeros_like(h)[None], torch.tensor([3.0])))
    for d, noise in enumerate(gp.noise.detach()):
        precision = k_zz + k_zx @ k_zx.T / noise
        assert torch.allclose(mean[0, :, d], k.T @ torch.linalg.solve(precision, k_zx @ y[:, d]) / noise, rtol=1e-6)
        removed = (k * torch.linalg.solve(k_zz, k)).sum(0) - (k * torch.linalg.solve(precision, k)).sum(0)
        truth = gp.kernel.outputscale.detach() - removed + 3.0 * noise
        assert torch.allclose(variance[0, :, d], truth, rtol=1e-6)


def test_far_from_the_data_it_is_the_prior(posterior):
    far = torch.full((1, 2, 2), 100.0, dtype=torch.float64)
    mean, variance = posterior.predict(far, Latents.prior(1, posterior.zh))
    assert torch.allclose(mean, torch.zeros_like(mean))
    assert torch.allclose(variance, (posterior.amplitude + posterior.noise).expand_as(variance))


def test_tasks_are_predicted_each_by_itself(posterior):
    x, latents = double(3, 4, 2), Latents(double(3, 2), double(3, 2).exp())
    mean, variance = posterior.predict(x, latents)
    for i in range(3):
        alone = posterior.predict(x[i : i + 1], Latents(latents.mean[i : i + 1], latents.variance[i : i + 1]))
        assert torch.equal(mean[i], alone[0][0]) and torch.equal(variance[i], alone[1][0])


def test_divergence_is_that_of_two_normals(posterior):
    eye = torch.eye(6, dtype=torch.float64)
    p = torch.distributions.MultivariateNormal(torch.zeros(6, dtype=torch.float64), eye)
    for d, divergence in enumerate(posterior.divergence()):
        q = torch.distributions.MultivariateNormal(
            posterior.w[d], precision_matrix=posterior.root[d] @ posterior.root[d].T
        )
        assert divergence.item() == pytest.approx(torch.distributions.kl_divergence(q, p).item(), rel=1e-9)


def test_information_and_q_by_their_definition(posterior):
    """Q_d = K^-1 (K - S_d) K^-1 a^2 in the units of psi1, that is a C^-T (I - P_d) C^-1; alpha_d = a K^-1 m_d."""
    inverse = torch.linalg.inv(posterior.chol)
    explained = torch.einsum("d,dij->ij", 1.0 / posterior.noise, posterior.q)
    assert torch.allclose(inverse.T @ posterior.back, explained, rtol=1e-7)
    for d, root in enumerate(posterior.root):
        gap = torch.eye(6, dtype=torch.float64) - torch.linalg.inv(root @ root.T)
        assert torch.allclose(posterior.q[d], posterior.amplitude * inverse.T @ gap @ inverse, rtol=1e-7)
        alpha = posterior.amplitude.sqrt() * inverse.T @ posterior.w[d]
        assert torch.allclose(posterior.alpha[:, d], alpha, rtol=1e-9)
