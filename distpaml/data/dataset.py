"""Trajectories as the model sees them: inputs, targets, standardisation and the two divisors of errors.

Shapes: N tasks, at most T transitions each, dx inputs, D outputs (one per state), E descriptor dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from distpaml.types import Array


def transitions(states: Array, controls: Array, angles: Sequence[int]) -> tuple[Array, Array]:
    """Inputs [..., T, dx] and targets [..., T, D] of trajectories [..., T + 1, D] under controls [..., T, U].

    target_t = state_{t+1} - state_t          raw states; angles are unwrapped, so their changes are small
    """
    return model_inputs(states[..., :-1, :], controls, angles), np.diff(states, axis=-2)


def model_inputs(states: Array, controls: Array, angles: Sequence[int]) -> Array:
    """(cos, sin of each angle, the other states in order, controls) [..., dx] of states [..., D], controls [..., U]."""
    others = [index for index in range(states.shape[-1]) if index not in angles]
    circle = [f(states[..., index]) for index in angles for f in (np.cos, np.sin)]
    return np.concatenate([*(c[..., None] for c in circle), states[..., others], controls], axis=-1)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Transitions of N tasks, zero-padded beyond the `counts` of each, so tasks may differ in length.

    Arrays are always writable and in C order: the last bits of a sum depend on the memory order.
    """

    inputs: Array  # [N, T, dx]
    targets: Array  # [N, T, D]
    counts: NDArray[np.int64]  # [N], valid transitions of each task
    descriptors: Array  # [N, E]

    def __post_init__(self) -> None:
        for name in ("inputs", "targets", "counts", "descriptors"):
            object.__setattr__(self, name, np.require(getattr(self, name), requirements=["C", "W"]))
        tasks = {len(part) for part in (self.inputs, self.targets, self.counts, self.descriptors)}
        if len(tasks) != 1 or self.inputs.shape[:2] != self.targets.shape[:2]:
            raise ValueError(
                f"inputs {self.inputs.shape}, targets {self.targets.shape}, counts {self.counts.shape} and "
                f"descriptors {self.descriptors.shape} are not of the same tasks"
            )
        if np.any(self.counts < 0) or np.any(self.counts > self.inputs.shape[1]):
            raise ValueError(f"counts {self.counts} should lie between 0 and {self.inputs.shape[1]}")
        padding = ~self.valid
        if np.any(self.inputs[padding]) or np.any(self.targets[padding]):
            raise ValueError("inputs and targets should be zero beyond the counts")

    @classmethod
    def from_trajectories(cls, states: Array, controls: Array, angles: Sequence[int], descriptors: Array) -> Self:
        """One trajectory [T + 1, D] per task, under controls [T, U]."""
        inputs, targets = transitions(states, controls, angles)
        return cls(inputs, targets, np.full(len(inputs), inputs.shape[1]), descriptors)

    @classmethod
    def concatenate(cls, parts: Sequence["Dataset"]) -> Self:
        """The tasks of all parts in order, padded to the longest."""
        longest = max(part.inputs.shape[1] for part in parts)
        return cls(
            np.concatenate([_padded(part.inputs, longest) for part in parts]),
            np.concatenate([_padded(part.targets, longest) for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.descriptors for part in parts]),
        )

    def append(self, other: "Dataset") -> "Dataset":
        """These tasks, then those of `other`."""
        return Dataset.concatenate([self, other])

    def tasks(self, which: slice | list[int]) -> "Dataset":
        """The tasks in these rows."""
        return Dataset(self.inputs[which], self.targets[which], self.counts[which], self.descriptors[which])

    def first(self, shots: int) -> "Dataset":
        """The first `shots` transitions of every task, for few-shot inference."""
        counts = np.minimum(self.counts, shots)
        kept = (np.arange(self.inputs.shape[1]) < counts[:, None])[..., None]
        return replace(self, inputs=self.inputs * kept, targets=self.targets * kept, counts=counts)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Mask of the transitions that exist [N, T]."""
        return np.arange(self.inputs.shape[1]) < self.counts[:, None]

    def standardised(self, inputs: "Standardiser", targets: "Standardiser") -> "Dataset":
        """The same tasks in standardised units; padding stays zero."""
        mask = self.valid[..., None]
        return replace(
            self,
            inputs=np.where(mask, inputs.apply(self.inputs), 0.0),
            targets=np.where(mask, targets.apply(self.targets), 0.0),
        )


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of K tasks, identified by their labels."""

    images: Array  # [K, H, W], grey values in [0, 1]
    labels: Array  # [K, E]


@dataclass(frozen=True, eq=False)
class Standardiser:
    """y ↔ (y − mean) / scale, column by column.

    A column that does not vary (its standard deviation is below 1e-12 of its largest magnitude) has scale 1.
    """

    mean: Array  # [D]
    scale: Array  # [D]

    @classmethod
    def fit(cls, rows: Array) -> Self:
        """Mean and standard deviation of rows [M, D]; for a dataset, `data.targets[data.valid]`."""
        if len(rows) == 0 or not np.isfinite(rows).all():
            raise ValueError(f"cannot standardise by {len(rows)} rows that are empty or not finite")
        deviation = rows.std(axis=0)
        varies = deviation > 1e-12 * np.abs(rows).max(axis=0)
        return cls(rows.mean(axis=0), np.where(varies, deviation, 1.0))

    def apply(self, values: Array) -> Array:
        """Raw values [..., D] in standardised units."""
        return (values - self.mean) / self.scale

    def undo(self, values: Array) -> Array:
        """Standardised values [..., D] in raw units."""
        return values * self.scale + self.mean

    def errors(self, raw: Array) -> Array:
        """Raw errors [..., D] in standardised units; the mean cancels."""
        return raw / self.scale

    def nll(self, raw: Array) -> Array:
        """Negative log densities [...] of standardised points from those of raw points y [..., D].

        z = (y − mean) / scale has p_z(z) = p_y(y) Π_d scale_d, so −log p_z = −log p_y − Σ_d log scale_d.
        """
        return raw - np.log(self.scale).sum()


class Divisors(NamedTuple):
    """The units in which errors on test outputs are reported."""

    paper: Standardiser
    """From the training outputs: `rmse_paper`, `nll_paper`. Violent training tasks make errors look small."""
    fair: Standardiser
    """From the test outputs: `rmse`, `nll`. The same for every round and method of a seed."""

    @classmethod
    def of(cls, training: Dataset, test: Dataset) -> Self:
        """Both divisors, from data in raw units."""
        return cls(*(Standardiser.fit(data.targets[data.valid]) for data in (training, test)))


def _padded(values: Array, length: int) -> Array:
    return np.pad(values, ((0, 0), (0, length - values.shape[1]), (0, 0)))
