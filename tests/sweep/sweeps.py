"""Real sweeps, and runs, in processes of their own, small enough for tests."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
from tiny import SIZE, tiny

from distpaml.records import read_records
from distpaml.runtime.run_experiment import run_to_end

MARK = "DISTPAML_TEST_MARK"
TESTS = str(Path(__file__).parent.parent)


class SweepProcess:
    """`python -m distpaml.sweep WORDS` with a mark that all its descendants carry, orphans too."""

    module = "distpaml.sweep"

    def __init__(self, *words: str, cwd: Path, **env: str) -> None:
        self.mark = uuid.uuid4().hex
        paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), TESTS]))
        surroundings = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "WANDB_"))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module, *words],
            cwd=cwd,
            env=surroundings | {MARK: self.mark, "PYTHONPATH": paths} | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self, seconds: float = 300.0) -> "SweepProcess":
        self.out, self.err = self.process.communicate(timeout=seconds)
        self.code = self.process.returncode
        return self

    def alive(self) -> list[psutil.Process]:
        """Every process that this sweep has left."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found


class RunProcess(SweepProcess):
    """`python -m distpaml.run WORDS`, likewise."""

    module = "distpaml.run"


def small(*overrides: str) -> list[str]:
    """The words of a tiny sweep."""
    given = {word.partition("=")[0] for word in overrides}
    return ["quickstart", *(word for word in SIZE if word.partition("=")[0] not in given), "wandb=off", *overrides]


def results(folder: Path) -> dict[str, list[dict]]:
    """What the runs of a sweep recorded, by name."""
    paths = sorted(path.parent for path in (folder / "trials").glob("*/records.jsonl"))
    return {path.name: [record.result() for record in read_records(path)] for path in paths}


def in_process(folder: Path, runs: dict[str, tuple[str, ...]]) -> dict[str, list[dict]]:
    """The same experiments in this process, by name."""
    return {
        name: [record.result() for record in run_to_end(tiny(*overrides), folder / name)]
        for name, overrides in runs.items()
    }
