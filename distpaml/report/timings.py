"""Where the time went: seconds by stage, throughput, failures and retries."""

from collections import Counter
from datetime import datetime
from typing import Any

from distpaml.report.collect import Collection, Sweep
from distpaml.report.groups import Group
from distpaml.report.packing import rounded

STAGES = ("choose", "simulate", "fit", "evaluate")


def stages(group: Group) -> dict[str, Any]:
    """Mean seconds per stage in a run of the group, and rounds per hour of work."""
    totals: Counter[str] = Counter()
    rounds = 0
    for run in group.runs:
        for record in run.records:
            totals.update(record.seconds)
            rounds += 1
    names = [*STAGES, *sorted(set(totals) - set(STAGES))]
    seconds = sum(totals.values())
    return {
        "stages": {name: rounded(totals[name] / len(group.runs)) for name in names if name in totals},
        "rounds_per_hour": rounded(3600.0 * rounds / seconds, 4) if seconds else None,
    }


def reliability(found: Collection) -> list[dict[str, Any]]:
    """For each sweep: counts of events, wall time, and every failure and retry."""
    return [_sweep(sweep, found) for sweep in found.sweeps]


def _sweep(sweep: Sweep, found: Collection) -> dict[str, Any]:
    runs = [run for run in found.runs if run.sweep is sweep]
    work = sum(sum(record.seconds.values()) for run in runs for record in run.records)
    counts = Counter(str(event["event"]) for event in sweep.events)
    wall = _wall(sweep)
    complete = sum(run.complete for run in runs)
    troubles = [event for event in sweep.events if "fail" in str(event["event"]) or "retr" in str(event["event"])]
    return {
        "name": str(sweep.asked.get("name") or sweep.path.name),
        "path": str(sweep.path),
        "trials": len(runs),
        "complete": complete,
        "work": rounded(work),
        "wall": None if wall is None else rounded(wall),
        "trials_per_hour": rounded(3600.0 * complete / wall, 4) if wall else None,
        "at_once": rounded(work / wall, 3) if wall else None,
        "counts": dict(counts),
        "troubles": [{key: "" if value is None else str(value) for key, value in event.items()} for event in troubles],
    }


def _wall(sweep: Sweep) -> float | None:
    """Seconds that the sweep worked: from each start to the last event before the next start."""
    total, first, last = 0.0, None, None
    for event in sweep.events:
        time = _time(event["time"])
        if time is None:
            continue
        if event["event"] == "sweep started" and first is not None and last is not None:
            total += (last - first).total_seconds()
            first = time
        first, last = first or time, time
    if first is not None and last is not None:
        total += (last - first).total_seconds()
    return total or None


def _time(text: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return time.astimezone()
