"""How far one driver reaches: Tune with all that a sweep adds to it, on trials that do nothing.

Tiny actors run trials whose rounds take no time. What the driver itself spends on a trial (Tune's event loop, the
searcher, the journal with its fsyncs, a line per round) is measured in CPU seconds of its process: the actors here
compete with it for cores and on a cluster they do not. From that, and from the seconds of a round, follows the table:
one core per trial, 64 cores per machine.
"""

import logging
from argparse import Namespace
from collections.abc import Iterable
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import ray
from ray import tune

from distpaml.bench import Result
from distpaml.catalogue import HEADLINES
from distpaml.config import load
from distpaml.runtime.environment import own_environment
from distpaml.sweep.driver import Sweep, tune_trials
from distpaml.sweep.journal import Journal
from distpaml.sweep.schema import SweepConfig
from distpaml.sweep.searcher import GridSearcher
from distpaml.sweep.storage import Storage
from distpaml.sweep.trials import Trial

ROUNDS, CORES, SECONDS_PER_ROUND = 16, 64, 5.0
SIZES = ((50, 1), (280, 1), (280, 5), (1_000, 16), (10_000, 16), (10_000, 157), (100_000, 157))
"""Trials and machines of the table."""


class InstantTrial(tune.Trainable):
    """Rounds that take no time."""

    def setup(self, config: dict[str, Any]) -> None:
        self.round = -1

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.round = -1
        return True

    def step(self) -> dict[str, Any]:
        self.round += 1
        numbers = {"round": self.round, "rounds": ROUNDS - 1, "tasks": self.round, "seconds": 0.0}
        return numbers | dict.fromkeys(HEADLINES, 0.0) | {"done": self.round == ROUNDS - 1}


def run(options: Namespace, trials: int = 100, actors: int = 8) -> Iterable[Result]:
    with (
        own_environment(),
        ray.init("local", num_cpus=actors, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR),
    ):
        warm, seconds = _seconds(actors), _seconds(trials)
    each = (seconds - warm) / (trials - actors)
    limit = 1.0 / each
    print(f"one driver: {limit:.1f} trials/s, {ROUNDS * limit:.0f} rounds/s", flush=True)
    print(f"{'trials':>8} {'machines':>8} {'hours':>8}  limited by", flush=True)
    for count, machines in SIZES:
        computing = ceil(count / (machines * CORES)) * ROUNDS * SECONDS_PER_ROUND
        driving = count * each
        limited = "the cores" if computing > driving else "the driver"
        print(f"{count:8} {machines:8} {max(computing, driving) / 3600:8.2f}  {limited}", flush=True)
    full = ROUNDS * SECONDS_PER_ROUND * limit
    print(
        f"the driver is the first bottleneck beyond {full:.0f} trials at once ({full / CORES:.0f} machines)", flush=True
    )
    needed = ROUNDS * SECONDS_PER_ROUND
    yield Result(
        "scale", needed / each, each, needed, "s", "a trial of 16 rounds of 5 s: trials one driver can keep busy"
    )


def _seconds(trials: int) -> float:
    config = load("cartpole")
    searcher = GridSearcher(
        [Trial(f"t{i}", {f"t{i}": config}, {}) for i in range(trials)], {"storage": "", "wandb": "off"}
    )
    with TemporaryDirectory() as folder:
        sweep = Sweep([SweepConfig()], Storage(folder))
        begin = process_time()
        tune_trials(InstantTrial, sweep, searcher, Journal(Path(folder) / "events.jsonl"), False, lambda line: None)
        return process_time() - begin
