"""A run in its directory: its config, its records, its model."""

from collections.abc import Callable
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distpaml.catalogue import planned_rounds
from distpaml.config import ExperimentConfig
from distpaml.errors import UserError
from distpaml.records import read_arrays, read_model, read_records
from distpaml.rounds import Record
from distpaml.trained.model import TrainedModel
from distpaml.types import Array

if TYPE_CHECKING:
    from pandas import DataFrame

    from distpaml.trained.environment import LearnedSystem


def load_run(directory: str | PathLike[str]) -> "TrainedRun":
    """The run in a directory: that of `distpaml.run --out`, or one of a sweep's `trials`. Changes nothing there."""
    path = Path(directory)
    try:
        trials = sorted(folder.name for folder in (path / "trials").glob("*/") if (folder / "records.jsonl").exists())
        missing = [name for name in ("config.yaml", "records.jsonl") if not (path / name).exists()]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    if trials:
        raise UserError(
            f"{path} is a sweep of {len(trials)} run{'s' * (len(trials) > 1)}; load one of them, such as "
            f"{path / 'trials' / trials[0]}, or all results with distpaml.results."
        )
    if missing:
        raise UserError(f"{path} has no run with a finished round: it has no {' and no '.join(missing)}.")
    return TrainedRun(path)


class TrainedRun:
    """A run with at least one finished round."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[Record] = read_records(path)
        self.config = ExperimentConfig.from_yaml(path / "config.yaml")  # its checksum was verified with the records
        if not self.records:
            raise UserError(f"{path} has no finished round yet.")

    @cached_property
    def model(self) -> TrainedModel:
        """The model of the newest round."""
        tasks = [added.task for record in self.records for added in record.added]
        return TrainedModel(self.config, read_model(self.path, self.records[-1].round), tasks)

    def results(self, choices: bool = False) -> "DataFrame":
        """A row per round, or per chosen task: `distpaml.results` of this run."""
        from distpaml.results import results

        return results(self.path, choices=choices)

    def arrays(self, round: int = -1) -> dict[str, Array]:
        """What a round kept beside its record: its data, the embeddings, the scores of every test task."""
        count = len(self.records)
        if round not in range(-count, count):
            raise UserError(f"There is no round {round!r}; they are numbered from 0 to {count - 1}.")
        return read_arrays(self.path, range(count)[round])

    def as_env(
        self,
        task: Any,
        reward: Callable[[Array, Array, Array], float] | None = None,
        terminated: Callable[[Array], bool] | None = None,
        sampled: bool = True,
    ) -> "LearnedSystem":
        """One system of the learned family as a `gymnasium.Env`, for planners and reinforcement learning.

        `task` is whatever `model.predict` takes. `reward(state, action, next_state)` is 0 unless given, and
        `terminated(next_state)` False; an episode has as many steps as a trajectory of the experiment.
        With `sampled` a step draws from the prediction, and an episode draws h from q(h); without, both are means.
        """
        try:
            from distpaml.trained.environment import LearnedSystem
        except ModuleNotFoundError as error:
            raise UserError("gymnasium is not installed: pip install 'distpaml[gymnasium]'") from error
        return LearnedSystem(self.model, task, reward, terminated, sampled)

    def __repr__(self) -> str:
        last, config = self.records[-1], self.config
        return (
            f"<TrainedRun {config.name} {config.method} seed {config.seed} in {self.path}: round {last.round} of "
            f"{planned_rounds(config.method, config.rounds)}, {last.tasks} tasks, rmse {last.rmse:.4g}, "
            f"nll {last.nll:.4g}>"
        )
