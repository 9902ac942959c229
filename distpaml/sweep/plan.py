"""What a sweep will do and what of it is done, in numbers and in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distpaml.catalogue import planned_rounds
from distpaml.command_line import counted
from distpaml.sweep.trials import Trial

if TYPE_CHECKING:
    from distpaml.sweep.driver import Sweep

TYPICAL = 6.0
"""Seconds of a round of the paper's experiments on one core, until a sweep has rounds of its own to go by."""


@dataclass(frozen=True)
class Plan:
    """Trials and rounds, all and finished. A sample of a search is one trial, whose seeds advance together."""

    thing: str
    trials: int
    finished: int
    failed: int
    rounds: int
    rounds_finished: int
    seconds: float
    """Of all finished rounds."""

    @property
    def per_round(self) -> float:
        return self.seconds / self.rounds_finished if self.seconds else TYPICAL

    def left(self) -> str:
        """What is done and what is left, in one sentence."""
        trials = self.trials - self.finished - self.failed
        failed = f", {self.failed} failed" if self.failed else ""
        rounds = self.rounds - self.rounds_finished
        return (
            f"{self.finished} of {counted(self.trials, self.thing)} done{failed}; {trials} left, with {rounds} of "
            f"{counted(self.rounds, 'round')} to go."
        )


def plan_of(sweep: "Sweep", again: bool) -> Plan:
    """Read from the sweep's folder; failed trials are left if they are run `again`."""
    from distpaml.sweep.journal import Journal
    from distpaml.sweep.status import records_of

    last = Journal(sweep.storage.local / "events.jsonl").last()
    failed = {name for name, event in last.items() if event["event"] == "trial failed" and not again}
    if (search := sweep.parts[0].search) is not None:
        done = sum(event["event"] in ("trial finished", "trial stopped") for event in last.values())
        each = rounds_of(sweep.trials[0])
        return Plan("sample", search.samples, done, len(failed), search.samples * each, done * each, 0.0)
    rounds = finished = complete = 0
    seconds = 0.0
    for trial in sweep.trials:
        ((name, config),) = trial.runs.items()
        records = records_of(sweep.storage.local, name, config)
        rounds += rounds_of(trial)
        finished += len(records)
        complete += len(records) >= rounds_of(trial)
        seconds += sum(sum(record.seconds.values()) for record in records)
    return Plan("trial", len(sweep.trials), complete, len(failed), rounds, finished, seconds)


def rounds_of(trial: Trial) -> int:
    """Rounds of a trial, round 0 included."""
    config = next(iter(trial.runs.values()))
    return planned_rounds(config.method, config.rounds) + 1


def announced(sweep: "Sweep") -> str:
    """The sweep in one line."""
    search = sweep.parts[0].search
    if search is None:
        count = counted(len(sweep.trials), "trial")
    else:
        count = f"{counted(search.samples, 'sample')} of {counted(len(sweep.trials[0].runs), 'run')}"
    return f"{sweep.parts[0].name}: {count} → {sweep.storage.shown}"


def dry_run(sweep: "Sweep", plan: Plan, cpus: int) -> Iterator[str]:
    """The trials, what each needs, and about how long it all takes on so many CPUs."""
    from distpaml.runtime.resources import bundles, total

    needs = [bundles(next(iter(trial.runs.values()))) for trial in sweep.trials]
    if sweep.parts[0].search is None:
        width = max(len(trial.name) for trial in sweep.trials)
        for trial, need in zip(sweep.trials, needs, strict=True):
            yield f"  {trial.name:{width}}  {counted(rounds_of(trial), 'round')}, {total(need)}"
    else:
        keys = ", ".join(sweep.parts[0].search.space)
        yield f"  each sample {counted(rounds_of(sweep.trials[0]), 'round')} and {total(needs[0])}; searched are {keys}"
    yield plan.left()
    largest = max(sum(bundle.get("CPU", 0.0) for bundle in need) for need in needs)
    runs = len(sweep.trials[0].runs)
    at_once = max(1, int(cpus // max(1.0, largest)))
    hours = (plan.rounds - plan.rounds_finished) * runs * plan.per_round / at_once / 3600
    basis = (
        "as its rounds so far took"
        if plan.rounds_finished and plan.seconds
        else "a guess that the first rounds correct"
    )
    about = f"{hours:.1f} hours" if hours >= 1 else counted(round(60 * hours) or 1, "minute")
    yield f"About {about} on {counted(cpus, 'CPU')}, at {plan.per_round:.0f} s a round ({basis})."
    yield "This was a dry run; nothing has been started or written."
