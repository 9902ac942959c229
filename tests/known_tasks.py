"""A selection context after the first round of a tiny experiment, for tests of utilities."""

import numpy as np
from tiny import rounds_of, tiny

from distpaml.data.tasks import TaskSet
from distpaml.select.candidates import Candidates, placing
from distpaml.select.context import SelectionContext
from distpaml.select.references import reference_descriptors


def known(*overrides: str) -> SelectionContext:
    """After three tasks."""
    first, task_set = rounds_of(*overrides)[0], TaskSet(tiny(*overrides))
    low, high = task_set.descriptor.low, task_set.descriptor.high
    references = placing(first.model, low, high)(reference_descriptors(task_set))
    return SelectionContext.of(first.model, first.data, references, low, high)


def candidates(h: np.ndarray, variance: float = 0.0) -> Candidates:
    """At latents [K, Q], with descriptors that go up a diagonal of the box [0.5, 5] × [0.5, 2]."""
    along = np.linspace(0.03, 0.97, len(h))[:, None]
    descriptors = np.array([0.5, 0.5]) + along * np.array([4.5, 1.5])
    return Candidates(descriptors, h, np.full_like(h, variance), len(h))


def known_kernel(context: SelectionContext, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The model's kernel between latents [A, Q] and [B, Q], difference by difference."""
    rate = context.model.posterior.rate_h.numpy()
    return np.exp(-0.5 * (((a[:, None] - b) * rate) ** 2).sum(-1))
