"""Tune's callbacks: print a line for every finished round and keep the journal."""

from collections.abc import Callable
from typing import Any

from ray.tune import Callback, Stopper

from distpaml.catalogue import HEADLINES
from distpaml.sweep.journal import Event, Journal
from distpaml.sweep.storage import Storage

HEADER = (
    f"{'trial':34} {'round':>7} {'tasks':>5} "
    + " ".join(f"{measure:>10}" for measure in HEADLINES)
    + f" {'seconds':>8}"
)


class SweepCallback(Callback):
    """Prints rounds and journals what happens to trials."""

    def __init__(self, storage: Storage, journal: Journal, say: Callable[[str], None]) -> None:
        self.storage, self.journal, self.say = storage, journal, say
        self.header_printed = False
        self.refused = ""
        """Why the sweep must stop, if it must."""

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **_: Any) -> None:
        name = trial.config["trial"]
        if "refused" in result:
            self.refused = result["refused"]
            return
        if "failed" in result:
            self._note("trial failed", name, result["failed"])
            return
        for sentence in result.get("said", ()):
            self.say(f"{name}: {sentence}")
        if result.get("replayed"):
            return
        if not self.header_printed:
            self.say(HEADER)
            self.header_printed = True
        measures = " ".join(f"{result[measure]:10.4f}" for measure in HEADLINES)
        rounds = f"{result['round']}/{result['rounds']}"
        self.say(f"{name:34} {rounds:>7} {result['tasks']:5} {measures} {result['seconds']:8.1f}")

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        last = trial.last_result or {}
        if "failed" not in last and not self.refused:
            stopped = last.get("round", 0) < last.get("rounds", 0)
            self._note("trial stopped" if stopped else "trial finished", trial.config["trial"])

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self._note("trial retried", trial.config["trial"], _why(trial))

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self._note("trial failed", trial.config["trial"], f"{_why(trial)} That was attempt {trial.num_failures}.")

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles callbacks, but we never read that back."""
        return {}

    def _note(self, event: Event, name: str, message: str = "") -> None:
        self.journal.add(event, name, message)
        self.storage.push("events.jsonl")
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
