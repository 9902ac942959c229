"""The paper's control signal: ramps of alternating sign plus noise, one signal per seed for all tasks."""

import numpy as np

from distpaml.types import Array


def alternating_ramp(limit: float, alternations: int, length: int) -> Array:
    """Ramps C/2 … C, −C/2 … −C, C/2 … in turn, [length], with C = `limit`.

    Every ramp has length / alternations points; when that is no whole number, the first ones have one more.
    """
    if not 1 <= alternations <= length:
        raise ValueError(f"{alternations} alternations do not fit into a signal of length {length}.")
    pieces = np.array_split(np.arange(length), alternations)
    return np.concatenate([(-1) ** i * np.linspace(limit / 2, limit, len(piece)) for i, piece in enumerate(pieces)])


def control_signal(limit: float, alternations: int, steps: int, rng: np.random.Generator) -> Array:
    """The control of a trajectory of `steps` states, [steps − 1, 1]: ramp + N(0, 1), clipped to ±limit.

    The ramp runs over `steps` points and its last one, which no transition would see, is dropped.
    """
    noisy = alternating_ramp(limit, alternations, steps) + rng.standard_normal(steps)
    return np.clip(noisy, -limit, limit)[:-1, None]
