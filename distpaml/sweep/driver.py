"""Runs a sweep: sends unfinished trials to Tune, and reports to the journal and the screen."""

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from distpaml.config import ExperimentConfig
from distpaml.durable_io import locked, write_durably
from distpaml.errors import UserError
from distpaml.runtime.environment import own_environment
from distpaml.runtime.resources import bundles, refusal
from distpaml.scratch import temporary_folder
from distpaml.sweep.journal import Journal
from distpaml.sweep.load import to_yaml
from distpaml.sweep.progress import SweepProgress
from distpaml.sweep.schema import SweepConfig
from distpaml.sweep.storage import Storage
from distpaml.sweep.trials import Trial, grid_trials, search_corners

SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # rounds are recorded by their runs
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C is ours
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # a trial that fails has no measures
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
}


@dataclass(frozen=True)
class Sweep:
    """A sweep and where it is stored."""

    parts: Sequence[SweepConfig]
    storage: Storage

    @cached_property
    def trials(self) -> list[Trial]:
        """All trials of a grid; for a search, samples that cover every end and every choice of its space."""
        return search_corners(self.parts[0]) if self.parts[0].search else grid_trials(self.parts)

    @property
    def configs(self) -> list[ExperimentConfig]:
        return [config for trial in self.trials for config in trial.runs.values()]


@contextmanager
def opened(sweep: Sweep) -> Iterator[Journal]:
    """Lock the sweep's folder against other drivers and open its journal."""
    from distpaml.sweep.status import check_folder  # it loads torch: a misspelt key should not wait for that

    sweep.storage.pull()
    check_folder(sweep.storage.local)
    with locked(sweep.storage.local, "Another sweep"):
        yield Journal(sweep.storage.local / "events.jsonl")


@own_environment()
def run_sweep(
    sweep: Sweep,
    journal: Journal,
    again: bool,
    verbose: bool,
    say: Callable[[str], None],
    progress: SweepProgress | None = None,
) -> None:
    """Run all trials that are not finished; `again`: failed ones too."""
    os.environ.update({name: value for name, value in SETTINGS.items() if name not in os.environ})
    searcher = _searcher(sweep, journal, again)  # raises if the folder holds another sweep
    write_durably(sweep.storage.local / "sweep.yaml", to_yaml(sweep.parts).encode())
    sweep.storage.push("sweep.yaml")
    if searcher is None:
        return
    from distpaml.runtime.start import can_grow, connected, nodes  # Ray takes a second to import
    from distpaml.sweep.trainable import PamlTrial

    configs = sweep.configs
    with connected(configs, verbose) as joined:
        for config in configs:
            if sentence := refusal(config, nodes()):
                if not can_grow():
                    raise UserError(sentence)
                say(f"warning: {sentence} Waiting for the cluster to grow.")
                break
        if sweep.parts[0].search is None:  # start them together, not one by one
            room = 200 if can_grow() else max(1, min(200, int(sum(node.get("CPU", 0.0) for node in nodes()))))
            os.environ.setdefault("TUNE_MAX_PENDING_TRIALS_PG", str(room))
        with _spread(sweep) if joined else nullcontext():
            journal.add("sweep started")
            try:
                tune_trials(PamlTrial, sweep, searcher, journal, verbose, say, progress)
            except KeyboardInterrupt:
                journal.add("sweep stopped")
                raise
            journal.add("sweep finished")


@contextmanager
def _spread(sweep: Sweep) -> Iterator[None]:
    """What trials on other machines need: the folder and the credentials."""
    from distpaml.sweep.credentials import handed_out
    from distpaml.sweep.storage_check import check_machines

    with handed_out():
        check_machines(Storage(sweep.storage.where, sweep.storage.identify()))
        yield


def _searcher(sweep: Sweep, journal: Journal, again: bool) -> Any:
    from distpaml.sweep.searcher import GridSearcher, SpaceSearcher
    from distpaml.sweep.status import samples_of, unfinished

    first = sweep.parts[0]
    common = {"storage": sweep.storage.where, "id": sweep.storage.identify(), "wandb": first.wandb, "sweep": first.name}
    if first.search is not None:
        ends = ("trial stopped",) if again else ("trial stopped", "trial failed")
        closed = {name: event for name, event in journal.last().items() if event["event"] in ends}
        known = samples_of(sweep.storage.local, first, closed)
        over = len([sample for sample in known.values() if sample.closed]) >= first.search.samples
        return None if over else SpaceSearcher(first, known, common)
    left = unfinished(sweep.storage.local, sweep.trials, again)
    return GridSearcher(left, common) if left else None


def tune_trials(
    trainable: type,
    sweep: Sweep,
    searcher: Any,
    journal: Journal,
    verbose: bool,
    say: Callable[[str], None],
    progress: SweepProgress | None = None,
) -> None:
    """Run every trial of the searcher, as many at once as fit."""
    from ray import tune

    from distpaml.sweep.callbacks import SweepCallback, UntilRefused
    from distpaml.sweep.credentials import keep_off_command_lines
    from distpaml.tracking.weights_and_biases import imported_wandb

    def resources(config: dict[str, Any]) -> tune.PlacementGroupFactory:
        return tune.PlacementGroupFactory(bundles(next(iter(config["runs"].values()))))

    keep_off_command_lines()
    imported_wandb()  # as Ray does in a moment, but with W&B's temporary folders in ours
    first = sweep.parts[0]
    callback = SweepCallback(sweep.storage, journal, say, progress, verbose)
    with temporary_folder() as folder, _quiet(verbose):
        tune.Tuner(
            tune.with_resources(trainable, resources),
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                scheduler=_scheduler(sweep),
                num_samples=-1,
                reuse_actors=True,
                trial_dirname_creator=lambda trial: trial.trial_id,
            ),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=str(folder),
                callbacks=[callback],
                stop=UntilRefused(callback),
                failure_config=tune.FailureConfig(max_failures=first.retries),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                verbose=2 if verbose else 0,
            ),
        ).fit()
    if callback.refused:
        journal.add("sweep stopped", message=callback.refused)
        raise UserError(callback.refused)


def _scheduler(sweep: Sweep) -> Any:
    from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler

    search = sweep.parts[0].search
    if search is None or search.scheduler == "none":
        return FIFOScheduler()
    rounds = max(config.rounds for config in sweep.configs)
    return AsyncHyperBandScheduler(
        time_attr="round", metric=search.objective, mode="min", max_t=max(rounds, 2), grace_period=1
    )


@contextmanager
def _quiet(verbose: bool) -> Iterator[None]:
    """Silence Tune and optuna unless `verbose`."""
    if verbose:
        yield
        return
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    logging.getLogger("optuna").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
