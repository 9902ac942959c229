"""The statistics of all tasks as a sum over shards of tasks, with their backward pass, wherever the shards live.

One evaluation of the bound sends every shard the kernel, the inducing points and the q(H) of its tasks, and brings
back partial sums of the statistics (see `expectations`); the bound's gradients in these go out again, and every shard
finishes its own backward pass. A message is a few [L, L] tables, however many tasks a shard holds.

Task i counts with a weight w_i^2 = 1 / r_i, the inverse of its noise ratio (`latent_gp`): its features Psi1_i and its
targets Y_i are multiplied by w_i, and everything else follows.

Reference: Gal, van der Wilk & Rasmussen 2014, Distributed variational inference in sparse GP regression.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from distpaml.model.expectations import Coefficients, correction_factors, expected_kernel, expm1_, rbf

BLOCK = 16
"""Tasks whose features are whitened in one go."""
PANEL = 150
"""Rows of a symmetric table [L, L] that are made at once, each from the diagonal on: half of the table is enough."""
KEPT_BYTES = 2e9
"""Tables of a shard up to this size are kept for the backward pass; those beyond are computed again."""


class BoundInputs(NamedTuple):
    """What the statistics of a shard are a function of; all in units of the length-scales."""

    rate: Tensor  # [dx], 1 / length-scale of the inputs
    zx: Tensor  # [L, dx]
    zh: Tensor  # [L, Q]
    chol: Tensor  # [L, L], of K_ZZ
    mean: Tensor  # [N, Q]
    variance: Tensor  # [N, Q]
    log_weight: Tensor  # [N], log w
    evaluation: int = 0
    """The number of this evaluation."""
    uncertain: bool = True
    """If not, latents are points (`variance` is zero), R vanishes, and no table of it is made or sent."""


class PartialStatistics(NamedTuple):
    """A shard's part of the statistics."""

    square: Tensor  # [L, L], sum_i Phi_i Phi_i'
    correction: Tensor  # [L, L], R; [0, 0] of points
    target: Tensor  # [L, D], sum_i Phi_i Y_i


class Cotangent(NamedTuple):
    """Gradients of the bound, from which a shard computes its own."""

    features: Tensor  # [L, L], C^-T dF/dA
    correction: Tensor  # [L, L], dF/dR; [0, 0] of points
    target: Tensor  # [L, D], C^-T dF/d(target)


class Gradient(NamedTuple):
    """A shard's part of the gradient, in the shapes of `BoundInputs`; the trainer computes the one in `chol`."""

    rate: Tensor
    zx: Tensor
    zh: Tensor
    mean: Tensor
    variance: Tensor
    log_weight: Tensor


class _Tables(NamedTuple):
    """Of a block of B tasks; the lists have one entry for each group of G tasks and each panel."""

    psi1: Tensor  # [B, T, L]
    phi: Tensor  # [L, B T]
    psi2: list[Tensor]  # Psi2_i [G, P, L - a], rows a to a + P and columns from a on
    correction: list[Tensor]  # expm1(delta_i), likewise

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(table.nbytes for table in (self.psi1, self.phi, *self.psi2, *self.correction))


class Shard:
    """Some tasks: x [N, T, dx], y [N, T, D] and the valid rows of each, `counts` [N].

    Tables [L, L] are made for `group` tasks at a time: one on a CPU, whose cache holds no more; a block on a GPU. They
    are symmetric, and made in panels of rows from the diagonal on.
    """

    def __init__(self, x: Tensor, y: Tensor, counts: Sequence[int], group: int | None = None) -> None:
        self.group = group or (1 if x.device.type == "cpu" else BLOCK)
        self.blocks = [slice(i, min(i + BLOCK, len(counts))) for i in range(0, len(counts), BLOCK)]
        self.x, self.y, self.valid = [], list[Tensor](), list[Tensor]()
        for block in self.blocks:
            count = torch.tensor([int(c) for c in counts[block]], device=x.device)
            longest = max(int(c) for c in counts[block])
            valid = (torch.arange(longest, device=x.device) < count[:, None]).unsqueeze(-1)  # [B, T, 1]
            self.x.append(torch.where(valid, x[block, :longest], 0.0))
            self.y.append(torch.where(valid, y[block, :longest], 0.0))
            self.valid.append(valid)
        self.evaluation, self.kept = -1, list[_Tables]()

    def _parts(self, b: int, inputs: BoundInputs) -> Iterator[tuple[slice, slice]]:
        """The groups of a block, and for each of them the panels of R; none if latents are points."""
        tasks, size = len(self.x[b]) if inputs.uncertain else 0, len(inputs.zx)
        groups = (slice(i, min(i + self.group, tasks)) for i in range(0, tasks, self.group))
        return product(groups, panels(size))

    def _tables(self, inputs: BoundInputs, b: int, correction_sum: Tensor | None = None) -> _Tables:
        """The tables of a block; its part of R is added to the upper panels of `correction_sum` [L, L]."""
        block, x = self.blocks[b], self.x[b]
        mean, variance, weight = inputs.mean[block], inputs.variance[block], inputs.log_weight[block].exp()
        e1 = weight[:, None] * expected_kernel(mean, variance, inputs.zh)  # [B, L]
        psi1 = rbf((x * inputs.rate).flatten(0, 1), inputs.zx).view(*x.shape[:2], -1)
        psi1.mul_(e1.unsqueeze(1)).mul_(self.valid[b])
        phi = torch.linalg.solve_triangular(inputs.chol, psi1.flatten(0, 1).T, upper=False)
        tables = _Tables(psi1, phi, [], [])
        left, right = correction_factors(mean, variance, inputs.zh)
        for g, p in self._parts(b, inputs):
            gram = psi1[g, :, p].mT @ psi1[g, :, p.start :]
            correction = expm1_(left[g, p] @ right[g, p.start :].mT)
            excess = gram * correction
            if correction_sum is not None:
                correction_sum[p, p.start :].add_(excess[0] if len(excess) == 1 else excess.sum(0))
            tables.psi2.append(gram.add_(excess))
            tables.correction.append(correction)
        return tables

    def forward(self, inputs: BoundInputs) -> PartialStatistics:
        """This shard's part of the statistics."""
        self.evaluation, self.kept = inputs.evaluation, []
        size, outputs = len(inputs.zx), self.y[0].shape[-1]
        zeros = inputs.zx.new_zeros
        rows = size if inputs.uncertain else 0
        statistics = PartialStatistics(zeros(size, size), zeros(rows, rows), zeros(size, outputs))
        kept = 0
        for b in range(len(self.blocks)):
            tables = self._tables(inputs, b, statistics.correction)
            for p in panels(size):
                statistics.square[p, p.start :].addmm_(tables.phi[p], tables.phi[p.start :].T)
            statistics.target.addmm_(tables.phi, self._weighted(inputs, b))
            kept += tables.size
            if kept <= KEPT_BYTES:
                self.kept.append(tables)
        for table in (statistics.square, statistics.correction):
            for p in panels(len(table)):
                table[p.stop :, p] = table[p, p.stop :].T
        return statistics

    def backward(self, inputs: BoundInputs, cotangent: Cotangent) -> Gradient:
        """This shard's gradient; the tables of the last `forward` serve again if it was for the same inputs."""
        kept = self.kept if inputs.evaluation == self.evaluation else []
        gradient = Gradient(*(torch.zeros_like(getattr(inputs, name)) for name in Gradient._fields))
        for b, block in enumerate(self.blocks):
            tables = kept[b] if b < len(kept) else self._tables(inputs, b)
            x, y = self.x[b], self._weighted(inputs, b)
            # dF/d(log Psi1) [B, T, L]: through Phi, then through R
            m = (y @ cotangent.target.T).addmm_(tables.phi.T, cotangent.features.T, alpha=2.0).view_as(tables.psi1)
            c = inputs.zh - inputs.mean[block].unsqueeze(1)  # [B, L, Q]
            with_one = torch.cat([torch.ones_like(c[..., :1]), c], -1)
            sums = torch.zeros_like(with_one)  # of dF/d(delta) [L, L], times 1 and c
            for (g, p), psi2, correction in zip(self._parts(b, inputs), tables.psi2, tables.correction, strict=True):
                upper, below, own = cotangent.correction[p, p.start :], slice(p.stop, None), p.stop - p.start
                through = upper * correction
                m[g, :, p].baddbmm_(tables.psi1[g, :, p.start :], through.mT, alpha=2.0)
                m[g, :, below].baddbmm_(tables.psi1[g, :, p], through[..., own:], alpha=2.0)
                g_delta = torch.mul(upper, psi2, out=through)
                sums[g, p].baddbmm_(g_delta, with_one[g, p.start :])
                sums[g, below].baddbmm_(g_delta[..., own:].mT, with_one[g, p])
            m.mul_(tables.psi1)
            self._latent_gradient(inputs, block, c, m.sum(1), sums, gradient)
            through_targets = (tables.psi1.flatten(0, 1) @ cotangent.target) * y
            gradient.log_weight[block] = m.sum((1, 2)) + through_targets.view(*x.shape[:2], -1).sum((1, 2))
            m, x = m.flatten(0, 1), x.flatten(0, 1)
            scaled = x * inputs.rate
            gradient.rate.add_(((m @ inputs.zx - m.sum(1, keepdim=True) * scaled) * x).sum(0))
            gradient.zx.add_(m.T @ scaled - m.sum(0)[:, None] * inputs.zx)
        return gradient

    def _weighted(self, inputs: BoundInputs, b: int) -> Tensor:
        """w_i Y_i [B T, D]."""
        return (self.y[b] * inputs.log_weight[self.blocks[b]].exp()[:, None, None]).flatten(0, 1)

    @staticmethod
    def _latent_gradient(
        inputs: BoundInputs, block: slice, c: Tensor, g_e1: Tensor, sums: Tensor, gradient: Gradient
    ) -> None:
        """Add the gradient of B tasks in (zh, mean, variance), given c [B, L, Q], that in log e1 [B, L] and `sums`."""
        t = inputs.variance[block].unsqueeze(1)  # [B, 1, Q]
        v, k, dk = 1.0 + t, Coefficients.of(t), Coefficients.derivative(t)
        row, moment, g_e1 = sums[..., :1], sums[..., 1:], g_e1.unsqueeze(-1)
        g_c = 2.0 * k.cross * moment - (4.0 * k.square * row + g_e1 / v) * c
        gradient.zh.add_(g_c.sum(0))
        gradient.mean[block] = -g_c.sum(1)
        g_t = 0.5 * g_e1 * (c.square() / v - 1.0) / v
        g_t = g_t + dk.cross * moment * c - 2.0 * dk.square * row * c.square() + dk.constant * row
        gradient.variance[block] = g_t.sum(1)


def panels(size: int) -> list[slice]:
    """Rows of a symmetric table in panels of nearly equal height, about `PANEL`."""
    count = max(1, round(size / PANEL))
    edges = [size * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


class ShardPool(Protocol):
    """Shards that are evaluated together: in this process, or each on a machine of its own."""

    @property
    def sizes(self) -> Sequence[int]:
        """Tasks of each shard, in order."""

    def forward(self, inputs: Sequence[BoundInputs]) -> list[PartialStatistics]:
        """`Shard.forward` of every shard."""

    def backward(self, inputs: Sequence[BoundInputs], cotangent: Cotangent) -> list[Gradient]:
        """`Shard.backward` of every shard."""


def split(tasks: int, shards: int) -> list[slice]:
    """At most so many shards of nearly equal size, none empty."""
    parts = [part for part in np.array_split(np.arange(tasks), shards) if len(part)]
    return [slice(int(part[0]), int(part[-1]) + 1) for part in parts]


MakePool = Callable[[Tensor, Tensor, Sequence[int], int], ShardPool]
"""(x, y, counts, shards) → a pool of at most so many shards."""


class LocalShards:
    """Shards in this process, one after the other."""

    def __init__(self, x: Tensor, y: Tensor, counts: Sequence[int], shards: int = 1) -> None:
        ranges = split(len(counts), shards)
        self.shards = [Shard(x[r], y[r], counts[r]) for r in ranges]
        self.sizes = [r.stop - r.start for r in ranges]

    def forward(self, inputs: Sequence[BoundInputs]) -> list[PartialStatistics]:
        return [shard.forward(part) for shard, part in zip(self.shards, inputs, strict=True)]

    def backward(self, inputs: Sequence[BoundInputs], cotangent: Cotangent) -> list[Gradient]:
        return [shard.backward(part, cotangent) for shard, part in zip(self.shards, inputs, strict=True)]
