"""A sharded fit whose shards live in actors, on one machine or many."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import ray
from torch import Tensor

from distpaml.model.shards import BoundInputs, Cotangent, Gradient, PartialStatistics, split
from distpaml.runtime.futures import fetch


class RayShards:
    """The shards of one fit, one per host."""

    def __init__(self, x: Tensor, y: Tensor, counts: Sequence[int], shards: int, hosts: Sequence[Any]) -> None:
        ranges = split(len(counts), shards)
        self.sizes = [r.stop - r.start for r in ranges]
        self.hosts = hosts[: len(ranges)]
        fit = uuid4().hex
        self.parts = [
            (fit, *(ray.put(part) for part in (x[r].numpy(), y[r].numpy(), np.asarray(counts[r])))) for r in ranges
        ]

    def forward(self, inputs: Sequence[BoundInputs]) -> list[PartialStatistics]:
        calls = zip(self.hosts, self.parts, inputs, strict=True)
        return fetch([host.forward.remote(*part, own) for host, part, own in calls])

    def backward(self, inputs: Sequence[BoundInputs], cotangent: Cotangent) -> list[Gradient]:
        calls, sent = zip(self.hosts, self.parts, inputs, strict=True), ray.put(cotangent)
        return fetch([host.backward.remote(*part, own, sent) for host, part, own in calls])
