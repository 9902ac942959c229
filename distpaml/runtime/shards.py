"""A sharded fit whose shards live in actors of their own, on one machine or on many."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import ray
from torch import Tensor

from distpaml.model.shards import Cotangent, Gradient, Query, Share, split
from distpaml.runtime.futures import fetch


class RayShards:
    """The shards of one fit, one in each of the first hosts."""

    def __init__(self, x: Tensor, y: Tensor, counts: Sequence[int], shards: int, hosts: Sequence[Any]) -> None:
        ranges = split(len(counts), shards)
        self.sizes = [r.stop - r.start for r in ranges]
        self.hosts = hosts[: len(ranges)]
        fit = uuid4().hex
        self.parts = [
            (fit, *(ray.put(part) for part in (x[r].numpy(), y[r].numpy(), np.asarray(counts[r])))) for r in ranges
        ]

    def forward(self, queries: Sequence[Query]) -> list[Share]:
        calls = zip(self.hosts, self.parts, queries, strict=True)
        return fetch([host.forward.remote(*part, query) for host, part, query in calls])

    def backward(self, queries: Sequence[Query], cotangent: Cotangent) -> list[Gradient]:
        calls, sent = zip(self.hosts, self.parts, queries, strict=True), ray.put(cotangent)
        return fetch([host.backward.remote(*part, query, sent) for host, part, query in calls])
