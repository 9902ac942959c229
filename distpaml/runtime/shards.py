"""A sharded fit whose shards live in actors, on one machine or many.

Messages hold NumPy arrays: Ray passes these through shared memory as they are, and copies tensors.
"""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import ray
import torch
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

        self.evaluation, self.sent = -1, list[Any]()

    def forward(self, inputs: Sequence[BoundInputs]) -> list[PartialStatistics]:
        self._send(inputs)
        calls = zip(self.hosts, self.parts, self.sent, strict=True)
        return [unpacked(part) for part in fetch([host.forward.remote(*part, own) for host, part, own in calls])]

    def backward(self, inputs: Sequence[BoundInputs], cotangent: Cotangent) -> list[Gradient]:
        if inputs[0].evaluation != self.evaluation:
            self._send(inputs)
        calls, sent = zip(self.hosts, self.parts, self.sent, strict=True), ray.put(packed(cotangent))
        return [unpacked(part) for part in fetch([host.backward.remote(*part, own, sent) for host, part, own in calls])]

    def _send(self, inputs: Sequence[BoundInputs]) -> None:
        """Put the inputs of an evaluation where both of its passes find them."""
        self.evaluation, self.sent = inputs[0].evaluation, [ray.put(packed(own)) for own in inputs]


def packed(message: Any) -> Any:
    """A named tuple with arrays in the place of its tensors."""
    return message._make(part.detach().numpy() if isinstance(part, Tensor) else part for part in message)


def unpacked(message: Any) -> Any:
    """A named tuple with tensors again, in the memory layout that they had, so that results have the same bits."""
    return message._make(torch.from_numpy(np.array(p)) if isinstance(p, np.ndarray) else p for p in message)
