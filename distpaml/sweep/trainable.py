"""A trial as Tune sees it: one step is one round of each of its runs.

All state is in the runs' directories. A trial that restarts, because its process or machine was lost or in a later
sweep, continues from there, so Tune keeps no checkpoints and nothing is unpickled from disk.
"""

import json
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from ray import tune
from ray.exceptions import RayError

from distpaml.catalogue import HEADLINES, planned_rounds
from distpaml.config import ExperimentConfig
from distpaml.domains import SimulationError
from distpaml.errors import UserError
from distpaml.failures import FILE, by_sigterm, described, keep, text_of
from distpaml.rounds import Record
from distpaml.runtime.lifeline import die_with_raylet
from distpaml.runtime.run_experiment import run_experiment
from distpaml.sweep.credentials import take_over
from distpaml.sweep.storage import Storage
from distpaml.sweep.storage_check import trouble
from distpaml.tracking import Tracker

PATIENCE = 150.0
"""Seconds to wait for a lost process to release its run; a file server may hold a lost machine's locks for 90."""


class RunInSweep:
    """One run of a trial, with its trackers."""

    def __init__(self, name: str, config: ExperimentConfig, storage: Storage, wandb: str, sweep: str) -> None:
        self.name, self.config, self.storage, self.wandb, self.sweep = name, config, storage, wandb, sweep
        self.said = list[str]()
        self.known = 0
        """Rounds that were finished before this process."""

    @property
    def path(self) -> Path:
        return self.storage.local / "trials" / self.name

    def records(self) -> Generator[Record, None, None]:
        """All rounds, finished ones first; each is stored before it is yielded."""
        stored = f"trials/{self.name}"
        self.storage.pull(stored)
        self.storage.pull(f"wandb/{self.name}.json")
        lines = self.path / "records.jsonl"
        self.known = len(lines.read_bytes().splitlines()) if lines.exists() else 0
        (self.path / FILE).unlink(missing_ok=True)  # of an earlier attempt
        self.storage.drop(f"{stored}/{FILE}")
        tracked = self.config, self.path, self.storage.local, self.name, self.config.name, self.wandb
        try:
            with closing(run_experiment(self.config, self.path, patience=PATIENCE)) as records, ExitStack() as stack:
                tracker = None
                for record in records:
                    self.storage.push_longer(
                        f"{stored}/config.yaml", f"{stored}/round-{record.round:02d}", f"{stored}/records.jsonl"
                    )
                    self.storage.drop(f"{stored}/round-{record.round - 1:02d}/model.safetensors")
                    if tracker is None:  # once the run is locked: a lost process may still be writing
                        tracker = stack.enter_context(Tracker(*tracked, self.said.append, self.sweep))
                    tracker.add(record)
                    self.storage.push(f"wandb/{self.name}.json")
                    yield record
        finally:
            self.storage.push(*self._shown())

    def keep(self, error: BaseException) -> str:
        """What went wrong, in one sentence; the traceback of an error that is not one is kept beside the run."""
        if isinstance(error, UserError | SimulationError):
            return " ".join(str(error).split())
        if not keep(error, self.path):
            return f"{described(error)}."
        self.storage.push(f"trials/{self.name}/{FILE}")
        return f"{described(error)}; the traceback is in trials/{self.name}/{FILE}."

    def _shown(self) -> list[str]:
        """The trackers' files of this run, online and offline."""
        state = self.storage.local / "wandb" / f"{self.name}.json"
        own = json.loads(state.read_text())["id"] if state.exists() else "none"
        runs = (self.storage.local / "wandb").glob(f"*run-*-{own}")
        return [f"tensorboard/{self.name}", f"wandb/{self.name}.json", *(f"wandb/{path.name}" for path in runs)]


class PamlTrial(tune.Trainable):
    """Runs in lockstep; reports their mean."""

    def setup(self, config: dict[str, Any]) -> None:
        die_with_raylet()
        take_over()
        storage = Storage(config["storage"], config["id"])
        self.stack = ExitStack()
        self.runs, self.records = list[RunInSweep](), list[Iterator[Record]]()
        self.rounds = 0
        self.trouble = trouble(storage)
        if self.trouble:
            return
        for name, experiment in config["runs"].items():
            run = RunInSweep(name, experiment, storage, config["wandb"], config["sweep"])
            self.runs.append(run)
            self.records.append(self.stack.enter_context(closing(run.records())))
            self.rounds = planned_rounds(experiment.method, experiment.rounds)

    def step(self) -> dict[str, Any]:
        if self.trouble:
            return {"done": True, "refused": self.trouble}
        begin = time.monotonic()
        records = list[Record]()
        try:
            for run in self.records:
                records.append(next(run))
        except RayError:
            raise  # a lost process: Tune restarts the trial
        except (Exception, SystemExit) as error:
            if by_sigterm(error):
                raise
            self.cleanup()
            return {"done": True, "failed": self.runs[len(records)].keep(error), "traceback": text_of(error)}
        means = {measure: float(np.mean([getattr(record, measure) for record in records])) for measure in HEADLINES}
        last = records[0].round >= self.rounds
        if last:
            for run in self.records:
                next(run, None)  # run to its end, which closes the trackers
        return {
            "round": records[0].round,
            "rounds": self.rounds,
            "tasks": records[0].tasks,
            **means,
            "repeats": sum(added.repeats is not None for record in records for added in record.added),
            "seconds": round(time.monotonic() - begin, 2),
            "replayed": all(record.round < run.known for record, run in zip(records, self.runs, strict=True)),
            "said": [run.said.pop(0) for run in self.runs if run.said],
            "done": last,
        }

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()
        self.setup(new_config)
        return True

    def cleanup(self) -> None:
        self.stack.close()
