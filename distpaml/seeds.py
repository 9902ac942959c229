"""Random streams keyed by purpose and index: the same for every method, whatever the worker or the order.

    rng(seed, "start", 7)   the start state of task 7 in experiment `seed`

A stream depends on (seed, purpose, indices) alone, so methods of one seed share initial tasks, controls and
test data, and nothing depends on how many workers there are or on what was drawn before.
"""

from zlib import crc32

import numpy as np


def rng(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """The generator of one purpose; `indices` is usually the task's number."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(purpose.encode()), *indices)))
