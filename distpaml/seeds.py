"""Random streams keyed by purpose and index: the same for every method, worker and order.

    rng(seed, "start", 7)   the start state of task 7 in experiment `seed`

A stream depends on (seed, purpose, indices) alone. Methods of one seed share initial tasks, controls and test data,
and nothing depends on the number of workers or on earlier draws.
"""

from zlib import crc32

import numpy as np


def rng(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """The generator of one purpose; `indices` is usually the task's number."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(purpose.encode()), *indices)))
