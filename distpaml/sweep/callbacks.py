"""Tune's callbacks: show progress and keep the journal."""

from collections.abc import Callable, Mapping
from typing import Any

from ray.tune import Callback, Stopper

from distpaml.sweep.journal import Event, Journal
from distpaml.sweep.progress import SweepProgress
from distpaml.sweep.storage import Storage


class SweepCallback(Callback):
    """Counts rounds and journals what happens to trials."""

    def __init__(
        self,
        storage: Storage,
        journal: Journal,
        say: Callable[[str], None],
        progress: SweepProgress | None,
        verbose: bool,
    ) -> None:
        self.storage, self.journal, self.say, self.progress, self.verbose = storage, journal, say, progress, verbose
        self.refused = ""
        """Why the sweep must stop, if it must."""

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **_: Any) -> None:
        name = trial.config["trial"]
        if "refused" in result:
            self.refused = result["refused"]
            return
        if "failed" in result:
            self._note("trial failed", name, result["failed"])
            if self.verbose:
                self.say(result["traceback"])
            return
        for sentence in result.get("said", ()):
            self.say(f"{name}: {sentence}")
        if self.progress is not None:
            self.progress.round(name, result)

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        if self.progress is not None:
            self.progress.started(trial.config["trial"])

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        last = trial.last_result or {}
        if "failed" not in last and not self.refused:
            stopped = last.get("round", 0) < last.get("rounds", 0)
            self._note("trial stopped" if stopped else "trial finished", trial.config["trial"], result=last)

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self._note("trial retried", trial.config["trial"], _why(trial))

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self._note("trial failed", trial.config["trial"], f"{_why(trial)} That was attempt {trial.num_failures}.")

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles callbacks, but we never read that back."""
        return {}

    def _note(self, event: Event, name: str, message: str = "", result: Mapping[str, Any] | None = None) -> None:
        self.journal.add(event, name, message)
        self.storage.push("events.jsonl")
        if self.progress is not None and event != "trial retried":
            self.progress.ended(name, event.removeprefix("trial "), result or {})
        if message:
            self.say(f"{name}: {event.removeprefix('trial ')}. {message}")


class UntilRefused(Stopper):
    """Stops all trials when one finds that the sweep must stop."""

    def __init__(self, callback: SweepCallback) -> None:
        self.callback = callback

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return bool(self.callback.refused)


def _why(trial: Any) -> str:
    """A run's own errors arrive as results, so an error in Tune means a lost process."""
    error = trial.get_error()
    return "Its process or its machine was lost" + (f" ({type(error).__name__})." if error else ".")
