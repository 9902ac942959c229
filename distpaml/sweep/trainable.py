"""A trial as Tune sees it: one step is one round of each of its runs.

All that matters is in the runs' directories. A trial that is begun again, after its process or machine was lost or in
a later sweep, goes on from there, so Tune keeps no checkpoints and nothing is unpickled from disk.
"""

import time
from collections.abc import Generator
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
from ray import tune
from ray.exceptions import RayError

from distpaml.config import Experiment
from distpaml.files import BusyError
from distpaml.play import play
from distpaml.rounds import Record
from distpaml.sweep.folder import Folder
from distpaml.sweep.schema import MEASURES
from distpaml.tracking import Tracker

PATIENCE = 60.0
"""Seconds to wait for a lost process to let go of its run."""


class RunInSweep:
    """One run of a trial, with its trackers."""

    def __init__(self, name: str, config: Experiment, folder: Folder, wandb: str) -> None:
        self.name, self.config, self.folder = name, config, folder
        self.tracking = config, self.path, folder.local, name, config.name, wandb

    @property
    def path(self) -> Any:
        return self.folder.local / "trials" / self.name

    def records(self) -> Generator[Record, None, None]:
        """All rounds, those of before first; each is stored when it comes."""
        stored = f"trials/{self.name}"
        self.folder.pull(stored)
        with Tracker(*self.tracking) as tracker, closing(self._played()) as played:
            for record in played:
                self.folder.push(
                    f"{stored}/round-{record.round:02d}", f"{stored}/config.yaml", f"{stored}/records.jsonl"
                )
                self.folder.drop(f"{stored}/round-{record.round - 1:02d}/model.safetensors")
                tracker.add(record)
                yield record

    def _played(self) -> Generator[Record, None, None]:
        begin = time.monotonic()
        while True:
            try:
                yield from play(self.config, self.path)
                return
            except BusyError:
                if time.monotonic() - begin > PATIENCE:
                    raise
                time.sleep(1.0)


class PamlTrial(tune.Trainable):
    """Runs in step with each other; what is reported is their mean."""

    def setup(self, config: dict[str, Any]) -> None:
        folder = Folder(config["folder"])
        self.stack = ExitStack()
        self.runs = []
        self.rounds = 0
        for name, text in config["runs"].items():
            experiment = Experiment.from_yaml(text)
            run = RunInSweep(name, experiment, folder, config["wandb"])
            self.runs.append(self.stack.enter_context(closing(run.records())))
            self.rounds = 0 if experiment.method == "oracle" else experiment.rounds

    def step(self) -> dict[str, Any]:
        begin = time.monotonic()
        try:
            records = [next(run) for run in self.runs]
        except RayError:
            raise  # a lost process: Tune begins the trial again
        except Exception as error:
            return {"done": True, "failed": " ".join((str(error) or type(error).__name__).split())}
        means = {measure: float(np.mean([getattr(record, measure) for record in records])) for measure in MEASURES}
        last = records[0].round >= self.rounds
        if last:
            self.cleanup()
        return {
            "round": records[0].round,
            "rounds": self.rounds,
            "tasks": records[0].tasks,
            **means,
            "seconds": round(time.monotonic() - begin, 2),
            "done": last,
        }

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()
        self.setup(new_config)
        return True

    def cleanup(self) -> None:
        self.stack.close()
