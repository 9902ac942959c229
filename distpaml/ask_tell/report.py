"""The page about an experiment: `distpaml report DIR`. Everything that it shows, as one tree of plain values.

What would be asked next and why, how well left-out tasks are predicted and whether more tasks pay, the latents of the
tasks, and every recording with what was said of it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from distpaml.ask_tell.dimensions import Named
from distpaml.ask_tell.experiment import Experiment
from distpaml.ask_tell.journal import Ask, Attach, Tell
from distpaml.ask_tell.learning import SIZES, LearningCurve
from distpaml.ask_tell.ranking import Preview
from distpaml.ask_tell.space import worded
from distpaml.ask_tell.state import Task
from distpaml.catalogue import DEFAULT
from distpaml.durable_io import write_durably
from distpaml.errors import UserError
from distpaml.report.packing import rounded
from distpaml.report.page import experiment_html

NEXT = 3
"""Tasks that would be asked next."""
SHOWN, SAMPLES = 60, 200
"""Tasks whose recordings are drawn, the newest, and samples of each, evenly picked."""
CANDIDATES = 600
"""Candidates on the map of latents, evenly picked."""

Watch = Callable[[int, int], None]


def write_experiment_report(directory: Path, out: Path, watch: Watch = lambda tasks, of: None) -> Path:
    """Write `out`/index.html about the experiment in a directory; returns the page."""
    tree = tree_of(Experiment.load(directory), watch)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_durably(out / "index.html", experiment_html(tree).encode())
    except OSError as error:
        raise UserError(f"The report cannot be written to {out}: {error.strerror or error}.") from error
    return out / "index.html"


def tree_of(experiment: Experiment, watch: Watch = lambda tasks, of: None) -> dict[str, Any]:
    """What the page shows."""
    d, status = experiment.declaration, experiment.status()
    learning = experiment.learning(watch) if status.count("observed") >= SIZES[0] else None
    preview = experiment.preview(NEXT)
    return {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "paths": [str(experiment.directory)],
        "name": d.name,
        "counts": {state: status.count(state) for state in ("observed", "out", "failed")},
        "transitions": status.transitions,
        "initial": d.initial,
        "least": SIZES[0],
        "states": [{"name": name, "unit": d.units.get(name, "rad" if name in d.angles else None)} for name in d.states],
        "descriptors": [{"name": name, "unit": d.units.get(name)} for name in d.descriptors],
        "utility": d.selection.utility,
        "learning": _learning(learning),
        "next": _next(experiment, preview),
        "latent": _latent(experiment, preview) if status.count("observed") > 1 else None,
        "tasks": _tasks(experiment, status.tasks, learning),
        "recordings": _recordings(experiment, [task.id for task in status.tasks if task.state == "observed"]),
    }


def _learning(curve: LearningCurve | None) -> dict[str, Any] | None:
    if curve is None:
        return None
    return {
        "tasks": [point.tasks for point in curve.points],
        "mean": rounded([errors.mean() for errors in curve.errors]),
        "each": [rounded(errors, 4) for errors in curve.errors],
        "coverage": rounded([np.mean(point.coverage) for point in curve.points]),
        "change": curve.change.worded() if curve.change else None,
    }


def _next(experiment: Experiment, preview: Preview) -> dict[str, Any]:
    d = experiment.declaration
    tasks = [
        {"words": worded(task.descriptor, d.units), "utility": rounded(task.utility or np.nan, 4), "cost": task.cost}
        for task in preview.tasks
    ]
    return {"tasks": tasks, "why": _why(experiment, preview)}


MEANINGS = {
    "surprisal": " (how unlike the known tasks its latent is expected to be)",
    DEFAULT.utility: " (how much it would lower the uncertainty about all tasks)",
}
"""What some utilities say, in words."""


def _why(experiment: Experiment, preview: Preview) -> str:
    """Why the first of the tasks is the first, in sentences."""
    d = experiment.declaration
    if not preview.tasks:
        return "Everything that can be asked for is out or observed."
    first, utilities = preview.tasks[0], preview.utilities
    if utilities is None or first.utility is None:
        return (
            f"Until {d.initial} tasks are observed, no model is asked: tasks are spread evenly over all that there are."
        )
    like = next(task for task in experiment.status().tasks if task.id == preview.nearest)
    what = d.selection.utility.replace("_", " ")
    return (
        f"Of {len(utilities)} tasks that could be asked for, it has the highest {what}"
        f"{MEANINGS.get(d.selection.utility, '')}{' for its cost' if d.cost else ''}: "
        f"{rounded(first.utility, 3):g}, where the median is {rounded(np.median(utilities), 3):g}. The observed task "
        f"most like it is task {like.id}: {worded(like.descriptor, d.units)}. Tasks that are out count as known."
    )


def _latent(experiment: Experiment, preview: Preview) -> dict[str, Any]:
    """q(h) of the observed tasks in the two dimensions in which they differ most, and the candidates."""
    table = experiment.embeddings
    size = sum(column.endswith("_sd") for column in table.columns)
    mean, spread = (table[[f"h{q + 1}{end}" for q in range(size)]].to_numpy() for end in ("", "_sd"))
    shown = sorted(np.argsort(-mean.std(axis=0), kind="stable")[:2].tolist())
    tree = {
        "dimensions": shown,
        "of": size,
        "tasks": table.index.tolist(),
        "mean": rounded(mean[:, shown], 4),
        "spread": rounded(spread[:, shown], 4),
        "candidates": [],
        "next": [rounded(np.array(task.latent)[shown], 4) for task in preview.tasks if task.latent is not None],
    }
    if preview.latents is not None and preview.utilities is not None:
        rows = np.linspace(0, len(preview.latents) - 1, min(CANDIDATES, len(preview.latents))).astype(int)
        rank = preview.utilities.argsort().argsort() / max(1, len(preview.utilities) - 1)
        tree["candidates"] = rounded(np.column_stack([preview.latents[rows][:, shown], rank[rows]]), 4)
    return tree


def _tasks(experiment: Experiment, tasks: tuple[Task, ...], learning: LearningCurve | None) -> list[dict[str, Any]]:
    """Every task with what is known of it."""
    d, space = experiment.declaration, experiment.space
    notes: dict[int, list[str]] = {task.id: [] for task in tasks}
    origin: dict[int, str] = {}
    for event in experiment.history():
        match event:
            case Ask():
                origin |= {task.id: "spread evenly" if event.model is None else "chosen" for task in event.tasks}
            case Tell() | Attach():
                notes[event.id] += event.notes
                if isinstance(event, Attach):
                    origin[event.id] = "attached"
    errors: dict[int, tuple[float, float]] = {}
    if learning is not None:
        ids = [id for id, _ in learning.last.data]
        errors = dict(zip(ids, zip(learning.errors[-1], learning.last.coverage, strict=True), strict=True))
    return [
        {
            "id": task.id,
            "state": task.state,
            "words": worded(task.descriptor, d.units),
            "values": [_place(space.dimensions[name], value) for name, value in task.descriptor.items()],
            "origin": origin[task.id],
            "transitions": task.transitions,
            "error": rounded(errors[task.id], 4) if task.id in errors and task.state == "observed" else [None, None],
            "notes": [task.reason] if task.reason else notes[task.id],
        }
        for task in tasks
    ]


def _place(dimension: Any, value: Any) -> float:
    """A number by which tasks are coloured."""
    return float(dimension.names.index(value)) if isinstance(dimension, Named) else float(value)


def _recordings(experiment: Experiment, ids: list[int]) -> list[dict[str, Any]]:
    """For every task pieces of [time, states…] in declared units; their times follow one another."""
    d = experiment.declaration
    scale = np.array([d.scale(name) for name in d.states])
    shown = []
    for id in ids[-SHOWN:]:
        pieces = [piece for recording in experiment.recordings(id) for piece in recording.states]
        step, rows, begin = max(1, sum(map(len, pieces)) // SAMPLES), [], 0.0
        for piece in pieces:
            time = begin + d.dt * np.arange(len(piece))
            rows.append(rounded(np.column_stack([time, piece / scale])[::step], 5))
            begin = float(time[-1]) + d.dt
        shown.append({"task": id, "pieces": rows})
    return shown
