"""Runs one experiment in its runtime and stores every round on disk."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from distpaml.config import ExperimentConfig
from distpaml.data.tasks import TaskSet
from distpaml.loop import Parts, active_loop
from distpaml.records import RunDirectory
from distpaml.rounds import Record
from distpaml.runtime.local import local_parts
from distpaml.select.methods import get_method


def run_experiment(
    config: ExperimentConfig,
    path: Path,
    watch: Callable[[int, str], None] = lambda round, stage: None,
    patience: float = 0.0,
) -> Generator[Record, None, None]:
    """Yield the records of all rounds, each once its round is safe in `path`; rounds already there come first.

    If another process works in `path`, wait for it, up to `patience` seconds. Damaged files are an error,
    which `distpaml.runtime.repair` mends.
    """
    torch.set_num_threads(config.runtime.threads)
    method, here = get_method(TaskSet(config)), local_parts(config)  # raise errors before writing anything
    with RunDirectory(path, config, patience) as run:
        yield from tuple(run.records)
        if len(run.records) > method.rounds:
            return
        with _parts(config, here) as three:
            for round in active_loop(method, *three, run.state(), watch):
                run.add(round)
                yield round.record


@contextmanager
def _parts(config: ExperimentConfig, here: Parts) -> Iterator[Parts]:
    """Simulator, trainer and scorer of the config's runtime; `here` are those of this process."""
    if config.runtime.kind == "local":
        yield here
    else:
        from distpaml.runtime.parts import ray_parts  # Ray takes a second to import

        with ray_parts(config) as three:
            yield three


def run_to_end(
    config: ExperimentConfig,
    path: Path,
    watch: Callable[[int, str], None] = lambda round, stage: None,
    finished: Callable[[Record], None] = lambda record: None,
) -> list[Record]:
    """Run to the end and return all records; `finished` is called with each."""
    records = []
    for record in run_experiment(config, path, watch):
        finished(record)
        records.append(record)
    return records
