"""Simulator, Trainer and Scorer of the loop, spread over a trainer actor and a pool of workers.

Tasks and candidates are split at the boundaries of the blocks that one process would compute together anyway, so every
number comes from the same sequence of operations wherever it is computed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import ray

from distpaml.config import ExperimentConfig
from distpaml.data import Dataset, Divisors
from distpaml.data.tasks import Tasks
from distpaml.evaluate import Evaluation
from distpaml.futures import Future
from distpaml.loop import Parts
from distpaml.model.inference import BLOCK as INFERRED_TOGETHER
from distpaml.model.meta_model import MetaModel
from distpaml.model.shards import split
from distpaml.runtime.actors import ShardActor, TrainerActor, WorkerActor
from distpaml.runtime.futures import Gathered, fetch
from distpaml.runtime.resources import actor_options, shard_hosts
from distpaml.runtime.start import ray_is_there
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.select.scoring import BLOCK, Best
from distpaml.types import Array


class RaySimulator:
    """Spreads tasks over the workers."""

    def __init__(self, workers: Sequence[Any]) -> None:
        self.workers = workers

    def simulate(self, tasks: Tasks) -> Future[Dataset]:
        pieces = [tasks.take(part) for part in split(len(tasks), len(self.workers))]
        calls = zip(self.workers, pieces, strict=False)
        return Gathered([worker.simulate.remote(piece) for worker, piece in calls], Dataset.concatenate)


class RayTrainer:
    """The trainer fits; the evaluators, of which it is one, evaluate the test tasks while the loop continues."""

    def __init__(self, trainer: Any, evaluators: Sequence[Any], hosts: Sequence[Any]) -> None:
        self.trainer, self.evaluators, self.hosts = trainer, evaluators, hosts

    def fit(self, data: Dataset, round: int, last: MetaModel | None, latents: Array | None) -> MetaModel:
        (model,) = fetch([self.trainer.fit.remote(data, round, last, latents, self.hosts)])
        return model

    def evaluate(self, model: MetaModel, data: Dataset, test: Future[Dataset]) -> Future[Evaluation]:
        tasks = test.result()
        sent, divisors = ray.put(model), Divisors.of(data, tasks)
        pieces = [tasks.tasks(part) for part in _between_blocks(len(tasks), INFERRED_TOGETHER, len(self.evaluators))]
        calls = zip(self.evaluators, pieces, strict=False)
        return Gathered(
            [actor.evaluate_tasks.remote(sent, divisors, piece) for actor, piece in calls], Evaluation.joined
        )


class RayScorer:
    """Every actor ranks its part and returns its best."""

    def __init__(self, workers: Sequence[Any]) -> None:
        self.workers = workers

    def best(self, candidates: Candidates, context: SelectionContext) -> Best:
        parts, sent = _between_blocks(len(candidates), BLOCK, len(self.workers)), ray.put(context)
        calls = zip(self.workers, parts, strict=False)
        found = fetch([worker.best.remote(candidates.take(part), sent) for worker, part in calls])
        rows = [Best(part.start + best.row, best.utility) for part, best in zip(parts, found, strict=True)]
        return max(rows, key=lambda best: best.utility)  # the first one if several tie


@contextmanager
def ray_parts(config: ExperimentConfig) -> Iterator[Parts]:
    """The three parts on new actors, which end with the context."""
    with ray_is_there(config):
        plain, threads = actor_options(config), config.runtime.threads
        trainer = _start(
            TrainerActor, actor_options(config, config.runtime.gpus), config
        )  # first, before others take its place on a GPU machine
        workers = [_start(WorkerActor, plain, config) for _ in range(config.runtime.workers)]
        hosts = [_start(ShardActor, plain, threads) for _ in range(shard_hosts(config))]
        try:
            evaluators, scorers = who_computes(config, trainer, workers)
            yield RaySimulator(workers), RayTrainer(trainer, evaluators, hosts), RayScorer(scorers)
        finally:
            for actor in (*workers, *hosts, trainer):
                ray.kill(actor)


def who_computes(config: ExperimentConfig, trainer: Any, workers: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Which actors evaluate the model and which score candidates: where the trainer has a GPU, it does both alone."""
    return ([trainer], [trainer]) if config.runtime.gpus else ([trainer, *workers], list(workers))


def _start(actor: type, options: dict[str, Any], *arguments: Any) -> Any:
    return ray.remote(**options)(actor).remote(*arguments)


def _between_blocks(rows: int, block: int, parts: int) -> list[slice]:
    """At most `parts` slices of the rows, each starting at the start of a block."""
    blocks = split(int(np.ceil(rows / block)), parts)
    return [slice(part.start * block, min(part.stop * block, rows)) for part in blocks]
