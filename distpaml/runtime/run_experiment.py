"""One experiment from its first round to its last, kept on disk round by round, in whichever runtime it asks for."""

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
    """The records of all rounds; a record comes when its round is safe in `path`, at once if it was there before.

    Another process that is at work in `path` is waited for, `patience` seconds.
    """
    torch.set_num_threads(config.runtime.threads)
    method, here = get_method(TaskSet(config)), local_parts(config)  # what is wrong is said before anything is written
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
    """Simulator, trainer and scorer of the runtime that the config names; `here` are those of this process."""
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
    """All records of an experiment, kept in `path`; `finished` hears of each."""
    records = []
    for record in run_experiment(config, path, watch):
        finished(record)
        records.append(record)
    return records
