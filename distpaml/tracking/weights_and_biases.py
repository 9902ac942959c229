"""Logs rounds to Weights & Biases, online or as files that `wandb sync` uploads later.

    folder/wandb/NAME.json            the id of the trial's run and the number of logged rounds
    folder/wandb/run-…-ID             written while online
    folder/wandb/offline-run-…-ID     written while offline

A step is a round. Uploaded rounds are not logged again. Offline rounds that are not uploaded yet are written anew when
the trial continues, so there is one offline run per trial, with every round once.
"""

import atexit
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from distpaml.config import ExperimentConfig
from distpaml.durable_io import write_durably
from distpaml.scratch import temporary_folder
from distpaml.tracking.network import why_offline
from distpaml.tracking.shown import Shown

PROJECT = "distpaml"
"""The default of WANDB_PROJECT."""
QUIET: dict[str, Any] = {
    "console": "off",
    "silent": True,
    "symlink": False,
    "finish_timeout": 20.0,
    "x_service_wait": 60.0,
    "x_transaction_log_flush_interval": 1.0,
}
PATIENCE = {"online": 10.0, "offline": 60.0}
"""Seconds for a run to start; offline, only a busy machine delays it."""
PRIVATE: dict[str, Any] = {
    "host": "",
    "program": "",
    "save_code": False,
    "disable_code": True,
    "disable_git": True,
    "x_disable_meta": True,
    "x_save_requirements": False,
}
"""Send nothing about the machine, its paths or its repositories, save how busy its CPU, GPU, memory and disk are.

Artifacts are sent with the paths of their files, so online they are staged in a temporary folder, which says nothing;
offline they lie beside the run, where `wandb sync` finds them.
"""


class WeightsAndBiases:
    """The W&B run of one trial."""

    label = "W&B"

    def __init__(
        self,
        config: ExperimentConfig,
        folder: Path,
        name: str,
        group: str,
        mode: str,
        say: Callable[[str], None],
        sweep: str,
    ) -> None:
        self.name = name
        if not os.environ.get("WANDB_MODE", "unset"):
            del os.environ["WANDB_MODE"]  # W&B rejects an empty value
        os.environ.pop("WANDB_SERVICE", None)  # another process's service may hold runs of dead processes
        self.folder = folder / "wandb"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state = self.folder / f"{name}.json"
        kept = json.loads(self.state.read_text()) if self.state.exists() else {}
        self.id, self.next = str(kept.get("id") or uuid4().hex[:12]), int(kept.get("rounds", 0))
        self._keep()

        self.replaced = list(self.folder.glob(f"offline-run-*-{self.id}*"))
        waiting = [path for path in self.replaced if not any(path.glob("*.synced"))]
        if len(waiting) < len(self.replaced) or self._online():
            self.replaced = []  # partly uploaded: the rest follows in its own run
        else:
            self.next = 0

        how: dict[str, Any] = {
            "dir": str(folder),
            "project": os.environ.get("WANDB_PROJECT") or PROJECT,
            "id": self.id,
            "name": name,
            "group": group,
            "job_type": config.method,
            "tags": [config.name, config.method, f"seed-{config.seed}", *([sweep[:64]] if sweep else [])],
            "config": {"name": config.name, **config.model_dump(mode="json", exclude={"out"})},
        }
        with _unless_set("WANDB_ERROR_REPORTING", "false"):  # tracebacks have paths
            self.run = self._start(how, _mode(mode, bool(waiting), say), say)
        self.stack = ExitStack()
        self.staging = self.folder if self.run.offline else self.stack.enter_context(temporary_folder())
        if not self.run.offline:
            self.next = self.run.starting_step
        os.environ.pop("WANDB_SERVICE", None)
        self.run.define_metric("tasks", hidden=True)
        self.run.define_metric("*", step_metric="tasks")

    def add(self, shown: Shown) -> None:
        wandb = imported_wandb()
        round = shown.record.round
        if round < self.next:
            return
        columns, rows = shown.choices()
        logged: dict[str, Any] = {**shown.numbers()}
        if shown.image is not None:
            logged["latents"] = wandb.Image(shown.image)
        with _unless_set("WANDB_DATA_DIR", str(self.staging)), _own_temporary_files():
            logged["choices"] = wandb.Table(columns=[*columns], data=rows)
            self.run.log(logged, step=round, commit=True)
            if shown.model is not None:
                artifact = wandb.Artifact(_artifact_name(self.name), type="model")
                policy: Any = "immutable" if self.run.offline else "mutable"  # as it lies, or a staged copy
                artifact.add_file(str(shown.model), policy=policy, skip_cache=True)
                self.run.log_artifact(artifact)
        self.next = round + 1
        self._keep()

    def caught_up(self) -> None:
        for path in self.replaced:
            shutil.rmtree(path)

    def close(self, failed: bool) -> None:
        with self.stack:
            self.run.finish(exit_code=int(failed))

    def _start(self, how: dict[str, Any], mode: str, say: Callable[[str], None]) -> Any:
        wandb = imported_wandb()

        def start(mode: Any) -> Any:
            with _own_temporary_files():
                settings = wandb.Settings(base_url=_server(), init_timeout=PATIENCE[mode], **QUIET, **PRIVATE)
                return wandb.init(**how, mode=mode, resume="allow", reinit="create_new", settings=settings)

        before = self._online()
        try:
            return start(mode)
        except Exception as error:
            if mode == "offline":
                raise
            wandb.teardown()  # its service would keep the failed run's id
            for empty in self._online() - before:
                shutil.rmtree(empty, ignore_errors=True)
            say(f"W&B logs offline: {error}")
            return start("offline")

    def _online(self) -> set[Path]:
        return set(self.folder.glob(f"run-*-{self.id}*"))

    def _keep(self) -> None:
        write_durably(self.state, json.dumps({"id": self.id, "rounds": self.next}).encode())


def _artifact_name(trial: str) -> str:
    """W&B takes letters, digits, dashes, underscores and dots."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", f"{trial}-model")[:128]


@cache
def imported_wandb() -> Any:
    with _own_temporary_files():
        import wandb.sdk.artifacts.artifact
        import wandb.sdk.data_types._private
    return wandb


@contextmanager
def _own_temporary_files() -> Iterator[None]:
    """What W&B puts into the folder for temporary files, when it is imported, for its service and for every table that
    it logs, lies in one of ours, which goes even if we are killed."""
    before, tempfile.tempdir = tempfile.tempdir, _own_folder()
    try:
        with _set("TMPDIR", tempfile.tempdir):
            yield
    finally:
        tempfile.tempdir = before


@cache
def _own_folder() -> str:
    """For as long as this process lives."""
    folder = ExitStack()
    atexit.register(folder.close)
    return str(folder.enter_context(temporary_folder()))


def _server() -> str:
    """The server's address. W&B reads the variable only once per process."""
    with _own_temporary_files():
        return os.environ.get("WANDB_BASE_URL") or str(imported_wandb().setup().settings.base_url)


def _mode(mode: str, unsynced: bool, say: Callable[[str], None]) -> str:
    """`online` or `offline`. If a trial with offline rounds continued online, they would be uploaded twice."""
    if mode == "offline" or (mode == "auto" and os.environ.get("WANDB_MODE") in ("offline", "dryrun")):
        return "offline"
    if unsynced:
        why: str | None = "the trial started offline; `wandb sync` uploads all of it"
    else:
        why = why_offline(_server())
    if why and mode == "online":
        say(f"W&B logs offline: {why}")
    return "offline" if why else "online"


@contextmanager
def _unless_set(variable: str, value: str) -> Iterator[None]:
    """Set an environment variable for a while, unless the user has set it."""
    with _set(variable, os.environ.get(variable, value)):
        yield


@contextmanager
def _set(variable: str, value: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
