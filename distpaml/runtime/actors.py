"""Ray actors. Every call depends on its arguments and the config alone, so Ray may repeat it."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from distpaml.config import ExperimentConfig
from distpaml.data import Dataset, Divisors
from distpaml.data.tasks import Tasks
from distpaml.evaluate import Evaluation
from distpaml.model.meta_model import MetaModel
from distpaml.model.shards import BoundInputs, Cotangent, Gradient, LocalShards, PartialStatistics, Shard
from distpaml.runtime.lifeline import die_with_raylet
from distpaml.runtime.local import LocalTrainer, local_parts
from distpaml.runtime.shards import RayShards, packed, unpacked
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.select.scoring import Best
from distpaml.types import Array


class WorkerActor:
    """Simulates, scores and evaluates its share of the tasks or candidates."""

    def __init__(self, config: ExperimentConfig) -> None:
        die_with_raylet()
        torch.set_num_threads(config.runtime.threads)
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")  # we never write to it
        self.config = config
        self.simulator, self.trainer, self.scorer = local_parts(config)

    def simulate(self, tasks: Tasks) -> Dataset:
        return self.simulator.simulate(tasks).result()

    def evaluate_tasks(self, model: MetaModel, divisors: Divisors, test: Dataset) -> Evaluation:
        return self.trainer.evaluate_tasks(model, divisors, test)

    def best(self, candidates: Candidates, context: SelectionContext) -> Best:
        return self.scorer.best(candidates, context)


class TrainerActor(WorkerActor):
    """Fits the model; the model to start from comes with every call."""

    def fit(
        self, data: Dataset, round: int, last: MetaModel | None, latents: Array | None, hosts: Sequence[Any]
    ) -> MetaModel:
        """Fit, sharded over the hosts if there are any."""
        pool = partial(RayShards, hosts=hosts) if hosts else LocalShards
        return LocalTrainer(self.config, pool).fit(data, round, last, latents)


class ShardActor:
    """Holds one shard of a fit's tasks. Its data come with every call, so a restarted actor can continue."""

    def __init__(self, threads: int) -> None:
        die_with_raylet()
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.fit, self.shard = "", Shard(torch.zeros(0, 0, 0), torch.zeros(0, 0, 0), [])

    def forward(self, fit: str, x: Array, y: Array, counts: Array, inputs: BoundInputs) -> PartialStatistics:
        return packed(self._shard(fit, x, y, counts).forward(unpacked(inputs)))

    def backward(
        self, fit: str, x: Array, y: Array, counts: Array, inputs: BoundInputs, cotangent: Cotangent
    ) -> Gradient:
        return packed(self._shard(fit, x, y, counts).backward(unpacked(inputs), unpacked(cotangent)))

    def _shard(self, fit: str, x: Array, y: Array, counts: Array) -> Shard:
        if self.fit != fit:
            self.fit, self.shard = fit, Shard(torch.tensor(x), torch.tensor(y), np.asarray(counts).tolist())
        return self.shard
