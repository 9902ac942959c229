"""All tasks of a batch in one gymnasium environment, where gymnasium has a vectorised one (CartPole-v1 is such).

A vectorised environment computes with arrays, one entry per task; its attributes may be arrays as well. It would begin
anew by itself after the end of an episode, which is undone before every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from distpaml.types import Array


def has_vector_version(make: str) -> bool:
    """Whether gymnasium steps many of these as one, by numpy."""
    import gymnasium

    spec = gymnasium.registry.get(make)
    entry = str(getattr(spec, "vector_entry_point", None) or "")
    numpy_only = entry.startswith("gymnasium.envs.") and "phys2d" not in entry
    return numpy_only and hasattr(gymnasium, "VectorizeMode")  # since gymnasium 1.0


def simulate_together(
    make: str, options: Mapping[str, Any], attributes: Mapping[str, Array], starts: Array, controls: Array
) -> Array:
    """States [N, T, S] from starts [N, S] under controls [N, T - 1, U]; attributes [N] have an entry per task."""
    import gymnasium

    tasks = len(starts)
    batch: Any = gymnasium.make_vec(make, num_envs=tasks, vectorization_mode="vector_entry_point", **options).unwrapped
    batch.reset(seed=0)
    for name, values in attributes.items():
        setattr(batch, name, values)
    batch.state = np.ascontiguousarray(starts.T)  # [S, N]
    whole = np.issubdtype(batch.single_action_space.dtype, np.integer)
    states = [starts]
    for control in controls.swapaxes(0, 1):  # [N, U]
        batch.prev_done[:] = False
        batch.step(control[:, 0].astype(np.int64) if whole else control.reshape(batch.action_space.shape))
        states.append(batch.state.T.copy())
    return np.stack(states, axis=1)
