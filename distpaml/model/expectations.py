"""Exact expectations of the kernel under q(H): the statistics that the bound is made of.

The kernel is a product and one latent h_i ~ N(n_i, diag t_i) is shared by all points of task i, so the expected
features of task i are Psi1_i = Kx_i diag(e1_i) [T, L], and their second moments are an elementwise product [L, L]:

    Psi2_i = (Kx_i' Kx_i) * E2_i = (Psi1_i' Psi1_i) * exp(delta_i)

    e1_i[l]     = E[k(h_i, z_l)]                 = prod_q (1 + t)^(-1/2) exp(-c_l^2 / (2 (1 + t))),   c = z - n
    E2_i[l, l'] = E[k(h_i, z_l) k(h_i, z_l')]    = e1_i[l] e1_i[l'] exp(delta_i[l, l'])
    delta_i     = sum_q  t/(1 + 2t) c_l c_l'  -  t^2/(2 (1 + t)(1 + 2t)) (c_l^2 + c_l'^2)
                         -  log(1 - t^2/(1 + t)^2) / 2

No tensor over points x L^2, and no exponential over points beyond Kx. delta vanishes with t, so the part of Psi2
that is the square of Psi1 can be whitened before it is squared, and only the correction R after: with K_ZZ = C C',

    A = C^-1 Psi2 C^-T = sum_i Phi_i Phi_i' + C^-1 R C^-T,      Phi_i = C^-1 Psi1_i'
    R = sum_i Psi1_i'Psi1_i * expm1(delta_i)

Squaring first loses half of the digits: with noise variances of 1e-5 the bound would be off by whole nats.

Here length-scales and variance are 1: callers divide by length-scales (t by their squares) and scale the results.

Reference: Titsias & Lawrence 2010, Bayesian Gaussian process latent variable model (psi statistics).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor


def rbf(a: Tensor, b: Tensor) -> Tensor:
    """exp(-|a - b|^2 / 2) for all pairs: [..., N, D], [..., M, D] -> [..., N, M]."""
    square_a, square_b = a.square().sum(-1), b.square().sum(-1)
    squares = square_a[..., :, None] + square_b[..., None, :]
    return squares.mul_(-0.5).add_(a @ b.mT).clamp_(max=0.0).exp_()


def expected_kernel(mean: Tensor, variance: Tensor, z: Tensor) -> Tensor:
    """e1 [..., L] under h ~ N(mean, diag variance), both [..., Q]; z [L, Q]."""
    v = 1.0 + variance
    distance = (z - mean.unsqueeze(-2)).square() / v.unsqueeze(-2)
    return torch.exp(-0.5 * (distance.sum(-1) + v.log().sum(-1, keepdim=True)))


def correction_factors(mean: Tensor, variance: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Two tables [..., L, Q + 2] whose product, left right', is delta: one pass over [L, L] instead of three.

    h ~ N(mean, diag variance), both [..., Q]; z [L, Q].
    """
    c, coefficients = z - mean.unsqueeze(-2), Coefficients.of(variance)
    own = 0.5 * coefficients.constant.sum(-1, keepdim=True) - (coefficients.square.unsqueeze(-2) * c.square()).sum(-1)
    own, one = own.unsqueeze(-1), torch.ones_like(c[..., :1])
    return torch.cat([coefficients.cross.unsqueeze(-2) * c, own, one], -1), torch.cat([c, one, own], -1)


def expm1_(delta: Tensor) -> Tensor:
    """expm1(delta), in place. Where it would overflow, e1 e1' vanishes, and their product must not become a NaN."""
    return delta.clamp_(max=0.85 * math.log(torch.finfo(delta.dtype).max)).expm1_()


class Coefficients(NamedTuple):
    """Coefficients of delta as functions of t [..., Q]: delta = cross c c' - square (c^2 + c'^2) + constant."""

    cross: Tensor
    square: Tensor
    constant: Tensor

    @classmethod
    def of(cls, t: Tensor) -> "Coefficients":
        """Without cancellation for small t."""
        one, two = 1.0 + t, 1.0 + 2.0 * t
        return cls(t / two, t.square() / (2.0 * one * two), -0.5 * torch.log1p(-(t / one).square()))

    @classmethod
    def derivative(cls, t: Tensor) -> "Coefficients":
        """Their derivatives in t."""
        one, two = 1.0 + t, 1.0 + 2.0 * t
        return cls(two**-2, (2.0 * t + 3.0 * t.square()) / (2.0 * (one * two).square()), t / (one * two))
