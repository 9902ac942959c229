"""Exact expectations of the kernel under q(H): the statistics that the bound is made of.

The kernel is a product and one latent h_i ~ N(n_i, diag t_i) is shared by all points of task i, so

    Psi1'Y = sum_i diag(e1_i) Kx_i' Y_i             [L, D]
    Psi2   = sum_i (Kx_i' Kx_i) * E2_i              [L, L]

    e1_i[l]     = E[k(h_i, z_l)]            = prod_q (1 + t)^(-1/2) exp(-(n - z)^2 / (2 (1 + t)))
    E2_i[l, l'] = E[k(h_i, z_l) k(h_i, z_l')]
                = prod_q (1 + 2t)^(-1/2) exp(-(z - z')^2 / 4 - (n - (z + z')/2)^2 / (1 + 2t))

with Kx_i [T, L] the RBF between inputs and inducing inputs. Everything here has unit length-scales and unit
variance: callers divide inputs by length-scales (t by their squares) and multiply results by sigma_f^2, sigma_f^4.

log E2_i is bilinear in z, so one small matrix product precedes its exp, and its gradient needs only the row sums
of P = G * Gram_i * E2_i and P z. Tasks are visited one at a time, which keeps an [L, L] table in cache and
memory independent of the number of tasks.

References: Titsias & Lawrence 2010 (psi statistics); Gal, van der Wilk & Rasmussen 2014 (their map-reduce).
"""

from typing import Any

import torch
from torch import Tensor

KEPT_TABLES = 64
"""Tasks whose [L, L] tables are kept between the two passes; those beyond are computed again."""


def rbf(a: Tensor, b: Tensor) -> Tensor:
    """exp(-|a - b|^2 / 2) for all pairs: [..., N, D], [..., M, D] -> [..., N, M]."""
    log_k = a @ b.mT
    log_k -= 0.5 * a.square().sum(-1)[..., :, None]
    log_k -= 0.5 * b.square().sum(-1)[..., None, :]
    return log_k.clamp_(max=0.0).exp_()


def expected_kernel(mean: Tensor, variance: Tensor, z: Tensor) -> Tensor:
    """e1 [..., L] = E[k(h, z_l)] under h ~ N(mean, diag variance), both [..., Q]; z [L, Q]."""
    v = 1.0 + variance
    distance = (mean.unsqueeze(-2) - z).square() / v.unsqueeze(-2)
    return torch.exp(-0.5 * (distance.sum(-1) + v.log().sum(-1, keepdim=True)))


def expected_kernel_product(mean: Tensor, variance: Tensor, z: Tensor) -> Tensor:
    """E2 [..., L, L] = E[k(h, z_l) k(h, z_l')] under h ~ N(mean, diag variance), both [..., Q]; z [L, Q].

    log E2 = a_l + a_l' + sum_q c_q z_lq z_l'q, with c = 1/2 - 1/(2v), v = 1 + 2t, and the rest in a.
    """
    v = 1.0 + 2.0 * variance
    c = 0.5 - 0.5 / v
    centred = z - mean.unsqueeze(-2)
    a = -(centred.square() * (0.25 + 0.25 / v).unsqueeze(-2)).sum(-1) - 0.25 * v.log().sum(-1, keepdim=True)
    log_e2 = (centred * c.unsqueeze(-2)) @ centred.mT
    return (log_e2 + a.unsqueeze(-1) + a.unsqueeze(-2)).exp()


class Statistics(torch.autograd.Function):
    """(x [N, T, dx], y [N, T, D], zx [L, dx], zh [L, Q], mean [N, Q], variance [N, Q], counts) -> Psi1'Y, Psi2.

    `counts` [N] are the valid rows of each task; rows beyond are padding.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, zx: Tensor, zh: Tensor, mean: Tensor, variance: Tensor, counts: list[int]
    ) -> tuple[Tensor, Tensor]:
        e1 = expected_kernel(mean, variance, zh)
        psi1y = torch.zeros(len(zx), y.shape[-1], dtype=x.dtype, device=x.device)
        psi2 = torch.zeros(len(zx), len(zx), dtype=x.dtype, device=x.device)
        kept = []
        for i, count in enumerate(counts):
            kx = rbf(x[i, :count], zx)
            psi1y.addcmul_(e1[i, :, None], kx.T @ y[i, :count])
            e2 = expected_kernel_product(mean[i], variance[i], zh)
            product = (kx.T @ kx).mul_(e2)
            psi2 += product
            if i < KEPT_TABLES:
                kept.append((kx, e2, product))
        ctx.save_for_backward(x, y, zx, zh, mean, variance, e1)
        ctx.counts, ctx.kept = counts, kept
        return psi1y, psi2

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g1, g2 = grads
        g2 = 0.5 * (g2 + g2.T)
        x, y, zx, zh, mean, variance, e1 = ctx.saved_tensors
        need_x = ctx.needs_input_grad[0]
        dx = torch.zeros_like(x) if need_x else None
        dzx, dzh = torch.zeros_like(zx), torch.zeros_like(zh)
        dmean, dvariance = torch.zeros_like(mean), torch.zeros_like(variance)
        ones_zh = torch.cat([torch.ones_like(zh[:, :1]), zh], -1)
        for i, count in enumerate(ctx.counts):
            xi, yi, n, t = x[i, :count], y[i, :count], mean[i], variance[i]
            if i < len(ctx.kept):
                kx, e2, product = ctx.kept[i]
            else:
                kx = rbf(xi, zx)
                e2 = expected_kernel_product(n, t, zh)
                product = (kx.T @ kx).mul_(e2)

            # through Kx: dF/dKx = 2 Kx (G2 * E2) + (Y G1') diag(e1)
            yg = yi @ g1.T
            m = (yg * e1[i]).addmm_(kx, g2 * e2, alpha=2.0).mul_(kx)
            if dx is not None:
                dx[i, :count] = m @ zx - m.sum(1, keepdim=True) * xi
            dzx += m.T @ xi - m.sum(0)[:, None] * zx

            # through e1
            w = (kx * yg).sum(0) * e1[i]
            v = 1.0 + t
            centred = zh - n
            dzh -= w[:, None] * centred / v
            dmean[i] = w @ centred / v
            dvariance[i] = 0.5 * (w @ centred.square() / v.square() - w.sum() / v)

            # through E2: P = G2 * Gram * E2, row sums r and P z
            r_pz = (product * g2) @ ones_zh
            r, pz = r_pz[:, 0], r_pz[:, 1:]
            v = 1.0 + 2.0 * t
            total, rz = r.sum(), r @ zh
            dzh += (pz - r[:, None] * zh) + (2.0 * r[:, None] * n - r[:, None] * zh - pz) / v
            dmean[i] -= 2.0 * (total * n - rz) / v
            spread = total * n.square() - 2.0 * n * rz + 0.5 * (r @ zh.square() + (zh * pz).sum(0))
            dvariance[i] += 2.0 * (spread / v.square() - 0.5 * total / v)
        return dx, None, dzx, dzh, dmean, dvariance, None
