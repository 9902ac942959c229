"""What is known when candidates are ranked: everything that a utility may use."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from distpaml.data import Dataset
from distpaml.model.device import CPU
from distpaml.model.meta_model import MetaModel
from distpaml.model.posterior import Posterior
from distpaml.select.candidates import Candidates
from distpaml.types import Array

INPUTS = 6
"""Inputs that represent an imagined trajectory."""
GOLDEN = 0.618034 * INPUTS
"""Times are multiples of the golden ratio, so that they are spread evenly and do not go with the number of tasks."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """N tasks in latent space."""

    mean: Array  # [N, Q], of q(h)
    variance: Array  # [N, Q]

    @cached_property
    def exponents(self) -> tuple[Array, Array, Array]:
        """The parts of −log N(h; n, diag t) that all candidates share, tasks within dimensions.

        A matrix [Q N, Q + 1] that maps (h, 1) to h_q − n_iq; 1/2t_iq [Q N, 1]; and ½ Σ_q log 2πt_iq [N, 1].
        """
        tasks, latent = self.mean.shape
        minus = np.hstack([np.repeat(np.eye(latent), tasks, axis=0), -self.mean.T.reshape(-1, 1)])
        offset = 0.5 * np.log(2.0 * np.pi * self.variance).sum(axis=1, keepdims=True)
        return minus, 0.5 / self.variance.T.reshape(-1, 1), offset


@dataclass(frozen=True, eq=False)
class SelectionContext(Embedded):
    """N known tasks, the fitted model, and the task domain.

    A chosen task that is not observed yet counts as observed: it is among the N, but the model has not seen it.
    """

    descriptors: Array  # [N, E]
    low: Array  # [E], of the box of descriptors, as high
    high: Array
    references: Candidates  # R tasks that represent the task domain
    model: MetaModel
    data: Dataset
    """What the model was fitted to."""
    pending: tuple[Candidates, ...] = ()
    """The chosen tasks that are not observed yet, as they were foreseen."""
    device: torch.device = CPU  # where utilities that use the model compute

    @classmethod
    def of(cls, model: MetaModel, data: Dataset, references: Candidates, low: Array, high: Array) -> "SelectionContext":
        """After `model` was fitted to `data`; `references` stand for the tasks that count."""
        latents = model.embeddings
        mean, variance = (tensor.double().numpy().copy() for tensor in (latents.mean, latents.variance))
        return cls(mean, variance, data.descriptors, low, high, references, model, data)

    def observing(self, chosen: Candidates) -> "SelectionContext":
        """The context after choosing these tasks, to be known as precisely as the others."""
        typical = np.median(self.variance[: self.fitted], axis=0)
        return replace(
            self,
            mean=np.vstack([self.mean, chosen.mean]),
            variance=np.vstack([self.variance, np.tile(typical, (len(chosen), 1))]),
            descriptors=np.vstack([self.descriptors, chosen.descriptors]),
            pending=(*self.pending, chosen),
        )

    @property
    def known(self) -> Candidates:
        """The N known tasks, as if they were candidates."""
        return Candidates(self.descriptors, self.mean, self.variance, len(self.mean))

    @property
    def fitted(self) -> int:
        """How many of the N the model has seen."""
        return len(self.model.embeddings)

    @cached_property
    def posterior(self) -> Posterior:
        """The model's posterior on `device`, in float64."""
        own = self.model.posterior
        same = own.zx.device == self.device and own.zx.dtype == torch.float64
        return own if same else own.to(self.device, torch.float64)

    @cached_property
    def inputs(self) -> Tensor:
        """M inputs [M, dx] that represent a trajectory, in units of the length-scales: from all tasks and all times."""
        place = (np.arange(INPUTS) + 0.5) / INPUTS
        tasks = (place * len(self.data)).astype(int)
        times = (place * GOLDEN % 1.0 * self.data.counts[tasks]).astype(int)
        return self.tensor(self.model.inputs.apply(self.data.inputs[tasks, times])) * self.posterior.rate_x

    def tensor(self, values: Array) -> Tensor:
        """On `device`, in float64."""
        return torch.as_tensor(values, dtype=torch.float64).to(self.device)
