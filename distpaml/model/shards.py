"""The statistics of all tasks as a sum over shards of tasks, with their backward pass, wherever the shards live.

One evaluation of the bound sends every shard the kernel, the inducing points and the q(H) of its tasks, and brings
back its share of the statistics (see `expectations`); the bound's gradients in these go out again, and every shard
finishes its own backward pass. A message is a few [L, L] tables, however many tasks a shard holds.

Reference: Gal, van der Wilk & Rasmussen 2014, Distributed variational inference in sparse GP regression.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from distpaml.model.expectations import Excess, excess, expected_kernel, rbf

BLOCK = 16
"""Tasks whose features are whitened in one go."""
KEPT_BLOCKS = 4
"""Blocks of a shard whose tables are kept for the backward pass; those beyond are computed again."""


class Query(NamedTuple):
    """What a shard is asked with; all in units of the length-scales."""

    rate: Tensor  # [dx], 1 / length-scale of the inputs
    zx: Tensor  # [L, dx]
    zh: Tensor  # [L, Q]
    chol: Tensor  # [L, L], of K_ZZ
    mean: Tensor  # [N, Q]
    variance: Tensor  # [N, Q]
    ticket: int = 0
    """The number of this evaluation."""


class Share(NamedTuple):
    """A shard's part of the statistics."""

    square: Tensor  # [L, L], sum_i Phi_i Phi_i'
    excess: Tensor  # [L, L], R
    target: Tensor  # [L, D], sum_i Phi_i Y_i


class Cotangent(NamedTuple):
    """Gradients of the bound, from which a shard computes its own."""

    features: Tensor  # [L, L], C^-T dF/dA
    excess: Tensor  # [L, L], dF/dR
    target: Tensor  # [L, D], C^-T dF/d(target)


class Gradient(NamedTuple):
    """A shard's part of the gradient; that in `chol` is the trainer's business."""

    rate: Tensor
    zx: Tensor
    zh: Tensor
    mean: Tensor
    variance: Tensor


class _Tables(NamedTuple):
    psi1: Tensor  # [B T, L]
    phi: Tensor  # [L, B T]
    grams: list[Tensor]  # Psi1_i' Psi1_i [L, L] of each task
    deltas: list[Tensor]  # expm1(delta_i) [L, L] of each task


class Shard:
    """Some tasks: x [N, T, dx], y [N, T, D] and the valid rows of each, `counts` [N]."""

    def __init__(self, x: Tensor, y: Tensor, counts: Sequence[int]) -> None:
        self.blocks = [range(i, min(i + BLOCK, len(counts))) for i in range(0, len(counts), BLOCK)]
        self.x = [torch.cat([x[i, : counts[i]] for i in block]) for block in self.blocks]
        self.y = [torch.cat([y[i, : counts[i]] for i in block]) for block in self.blocks]
        self.counts = [[int(counts[i]) for i in block] for block in self.blocks]
        self.ticket, self.kept = -1, list[_Tables]()

    def _tables(self, query: Query, b: int) -> _Tables:
        block, counts = self.blocks[b], self.counts[b]
        tasks = slice(block.start, block.stop)
        e1 = expected_kernel(query.mean[tasks], query.variance[tasks], query.zh)  # [B, L]
        psi1 = rbf(self.x[b] * query.rate, query.zx)
        for rows, row_e1 in zip(psi1.split(counts), e1, strict=True):
            rows *= row_e1
        phi = torch.linalg.solve_triangular(query.chol, psi1.T, upper=False)
        grams = [rows.T @ rows for rows in psi1.split(counts)]
        deltas = [excess(query.mean[i], query.variance[i], query.zh) for i in block]
        return _Tables(psi1, phi, grams, deltas)

    def forward(self, query: Query) -> Share:
        """This shard's share of the statistics."""
        self.ticket, self.kept = query.ticket, []
        size = len(query.zx)
        share = Share(query.zx.new_zeros(size, size), query.zx.new_zeros(size, size), query.zx.new_zeros(size, 0))
        target = query.zx.new_zeros(size, self.y[0].shape[-1])
        for b in range(len(self.blocks)):
            tables = self._tables(query, b)
            share.square.addmm_(tables.phi, tables.phi.T)
            target.addmm_(tables.phi, self.y[b])
            for gram, delta in zip(tables.grams, tables.deltas, strict=True):
                share.excess.addcmul_(gram, delta)
            if b < KEPT_BLOCKS:
                self.kept.append(tables)
        return share._replace(target=target)

    def backward(self, query: Query, cotangent: Cotangent) -> Gradient:
        """This shard's gradient at a query; if it is that of the last `forward`, its tables are there already."""
        kept = self.kept if query.ticket == self.ticket else []
        gradient = Gradient(*(torch.zeros_like(getattr(query, name)) for name in Gradient._fields))
        for b, block in enumerate(self.blocks):
            tables = kept[b] if b < len(kept) else self._tables(query, b)
            # dF/d(log Psi1) [B T, L]: through Phi, then through R
            m = self.y[b] @ cotangent.target.T
            m.addmm_(tables.phi.T, cotangent.features.T, alpha=2.0)
            counts = self.counts[b]
            rows = zip(m.split(counts), tables.psi1.split(counts), strict=True)
            for (mi, psi1), gram, delta, i in zip(rows, tables.grams, tables.deltas, block, strict=True):
                mi.addmm_(psi1, cotangent.excess * delta, alpha=2.0)
                mi *= psi1
                self._latent_gradient(query, i, mi.sum(0), cotangent.excess * gram * (delta + 1.0), gradient)
            x = self.x[b]
            scaled = x * query.rate
            gradient.rate.add_(((m @ query.zx - m.sum(1, keepdim=True) * scaled) * x).sum(0))
            gradient.zx.add_(m.T @ scaled - m.sum(0)[:, None] * query.zx)
        return gradient

    @staticmethod
    def _latent_gradient(query: Query, i: int, g_e1: Tensor, g_delta: Tensor, gradient: Gradient) -> None:
        """Add task i's gradient in (zh, mean, variance), given those in log e1 [L] and delta [L, L]."""
        t = query.variance[i]
        c = query.zh - query.mean[i]
        v, k, dk = 1.0 + t, Excess.of(t), Excess.derivative(t)
        sums = g_delta @ torch.cat([torch.ones_like(c[:, :1]), c], -1)  # [L, 1 + Q]
        row, moment = sums[:, :1], sums[:, 1:]
        g_c = 2.0 * k.cross * moment - 4.0 * k.square * row * c - g_e1[:, None] * c / v
        gradient.zh.add_(g_c)
        gradient.mean[i] = -g_c.sum(0)
        gradient.variance[i] = (
            0.5 * (g_e1 @ c.square() / v.square() - g_e1.sum() / v)
            + dk.cross * (moment * c).sum(0)
            - 2.0 * dk.square * (row * c.square()).sum(0)
            + dk.constant * row.sum()
        )


class ShardPool(Protocol):
    """Shards that are asked together: in this process, or each on a machine of its own."""

    @property
    def sizes(self) -> Sequence[int]:
        """Tasks of each shard, in order."""

    def forward(self, queries: Sequence[Query]) -> list[Share]:
        """`Shard.forward` of every shard."""

    def backward(self, queries: Sequence[Query], cotangent: Cotangent) -> list[Gradient]:
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

    def forward(self, queries: Sequence[Query]) -> list[Share]:
        return [shard.forward(query) for shard, query in zip(self.shards, queries, strict=True)]

    def backward(self, queries: Sequence[Query], cotangent: Cotangent) -> list[Gradient]:
        return [shard.backward(query, cotangent) for shard, query in zip(self.shards, queries, strict=True)]
