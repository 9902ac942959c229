"""Figures for papers, as PDF and PNG: the page's numbers, drawn by matplotlib."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import MaxNLocator, NullLocator

from distpaml.catalogue import MEASURES, METHODS, baselines
from distpaml.durable_io import write_durably
from distpaml.report.archive import file_name
from distpaml.report.packing import unpacked
from distpaml.report.styles import PALETTE, matplotlib_style

SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "savefig.bbox": "tight",
    "text.parse_math": False,
}
STAGES = tuple(PALETTE[name][0] for name in ("orange", "green", "blue", "ochre", "violet"))
PREDICTED, SAMPLED, MUTED, INK = PALETTE["blue"][0], PALETTE["orange"][0], "#65625b", "#1d1c1a"
TICKS, FINER = (
    [size * 10.0**power for power in range(-3, 4) for size in sizes] for sizes in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7))
)
MOST = 12
"""Most groups in one figure."""
LARGE = 5.0
"""From this NLL on, the axis is compressed."""


def write_figures(tree: dict[str, Any], folder: Path) -> list[Path]:
    """Every figure of the report in `tree`, named by experiment and content."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context(SETTINGS):
        for entry in tree["experiments"]:
            figures = {
                "curves": curves(entry, ("rmse", "nll")),
                "curves-paper": curves(entry, ("rmse_paper", "nll_paper")),
                "coverage": curves(entry, ("coverage", "coverage_worst")),
                "differences": differences(entry),
                "chosen": chosen(entry),
                "stages": stage_times(entry),
            }
            detailed = [run for run in entry["runs"] if str(run["id"]) in tree["details"]]
            run = next((run for run in detailed if run["group"] == entry["best"]), next(iter(detailed), None))
            if run is not None:
                detail = tree["details"][str(run["id"])]
                figures["latent"] = latent(entry, run, detail["latent"])
                figures["predictions"] = predictions(detail["predictions"]) if "predictions" in detail else None
                figures["rollouts"] = rollouts(detail["rollouts"]) if "rollouts" in detail else None
            for name, figure in figures.items():
                if figure is None:
                    continue
                for suffix in ("pdf", "png"):
                    path = folder / f"{file_name(entry['name'])}-{name}.{suffix}"
                    contents = BytesIO()
                    figure.savefig(contents, format=suffix, dpi=200)
                    write_durably(path, contents.getvalue())
                    written.append(path)
    return written


def curves(entry: dict[str, Any], measures: Sequence[str]) -> Figure:
    """Measures against added tasks, one panel each, mean ± standard error over seeds.

    The legend has the number of seeds where methods differ in it.
    """
    figure = Figure(figsize=(3.4 * len(measures), 2.6), layout="constrained")
    axes = figure.subplots(1, len(measures))
    for axis, measure in zip(axes, measures, strict=True):
        _curves(axis, entry, measure)
        axis.set_xlabel("added tasks")
        axis.set_ylabel(_named(measure), fontsize=7)
    counts = {group["label"]: len(group["seeds"]) for group in entry["groups"]}
    legend(figure, counts if len(set(counts.values())) > 1 else {})
    return figure


def overview(entries: Sequence[dict[str, Any]], measures: Sequence[str]) -> Figure:
    """The curves of several experiments, one column each with its number of seeds, and a row per measure."""
    figure = Figure(figsize=(2.2 * len(entries), 2.0 * len(measures) + 0.3), layout="constrained")
    axes = figure.subplots(len(measures), len(entries), squeeze=False)
    for row, measure in zip(axes, measures, strict=True):
        for axis, entry in zip(row, entries, strict=True):
            _curves(axis, entry, measure)
        row[0].set(ylabel=_named(measure))
    for axis, entry in zip(axes[0], entries, strict=True):
        counts = sorted({len(group["seeds"]) for group in entry["groups"]})
        seeds = _seeds(*counts[:: max(1, len(counts) - 1)])
        axis.set_title(f"{entry['name'].replace('_', ' ')}, {seeds}", fontsize=8)
    for axis in axes[-1]:
        axis.set(xlabel="added tasks")
    legend(figure)
    return figure


def legend(figure: Figure, seeds: Mapping[str, int] = MappingProxyType({})) -> None:
    """One for all panels, above them; every label once, with these numbers of seeds."""
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    said = [label + (f", {_seeds(seeds[label])}" if label in seeds else "") for label in handles]
    figure.legend(handles.values(), said, fontsize=7, ncols=6, loc="outside upper center")


def _seeds(*counts: int) -> str:
    return f"{' to '.join(map(str, counts))} seed{'s' if counts[-1] != 1 else ''}"


def _curves(axis: Axes, entry: dict[str, Any], measure: str) -> None:
    highest = -np.inf
    for number, group in enumerate(entry["groups"][:MOST]):
        colour, dashes, marker = _style(entry, number)
        part = group["measures"][measure]
        mean, error = (np.array(part[key], float) for key in ("mean", "error"))
        highest = np.nanmax(mean, initial=highest)
        if not group["has_rounds"]:
            axis.axhline(mean[0], color=colour, ls=dashes, lw=1.2, label=group["label"])
            continue
        axis.plot(group["added"], mean, color=colour, ls=dashes, marker=marker, ms=3, lw=1.3, label=group["label"])
        axis.fill_between(group["added"], mean - error, mean + error, color=colour, alpha=0.15, lw=0)
    nominal = MEASURES[measure].nominal
    if nominal is not None:
        axis.axhline(nominal, color=MUTED, lw=0.8, ls="--")
    elif measure.startswith("rmse"):
        _nonlinear(axis, "log")
    elif highest > LARGE:
        _nonlinear(axis, "asinh")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _nonlinear(axis: Axes, scale: Literal["log", "asinh"]) -> None:
    """A scale whose ticks are plain numbers, closer ones where there would be fewer than three."""
    axis.set_yscale(scale)
    low, high = axis.get_ylim()
    few = scale == "log" and sum(low <= size <= high for size in TICKS) < 3
    sizes = [size for size in (FINER if few else TICKS) if scale == "log" or size >= 1.0]
    axis.set_yticks([tick for tick in (0.0, *sizes, *(-size for size in sizes)) if low <= tick <= high])
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set_ylim(low, high)


def differences(entry: dict[str, Any]) -> Figure | None:
    """Paired differences to the baselines over the horizon, with their intervals."""
    rows = entry["table"]["rmse"], entry["table"]["nll"]
    names = [(row["group"], name) for row in rows[0] for name in baselines() if row.get(f"area-{name}") is not None][
        : 2 * MOST
    ]
    if not names:
        return None
    figure = Figure(figsize=(6.8, 0.6 + 0.25 * len(names)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, table, kind in zip(axes, rows, ("rmse", "nll"), strict=True):
        by_group = {row["group"]: row for row in table}
        for place, (number, name) in enumerate(names):
            part = by_group[number][f"area-{name}"]
            colour, _, marker = _style(entry, number)
            if part["low"] is not None:
                axis.plot([part["low"], part["high"]], [place, place], color=colour, lw=1.4)
            axis.plot(part["mean"], place, marker=marker, color=colour, ms=4)
        axis.axvline(0.0, color=MUTED, lw=0.8, ls="--")
        axis.set_xlabel(f"difference in {_named(kind)}")
    labels = [f"{entry['groups'][number]['label']} − {METHODS[name].label}" for number, name in names]
    axes[0].set_yticks(range(len(names)), labels)
    axes[0].invert_yaxis()
    return figure


def chosen(entry: dict[str, Any], shown: tuple[int, int] = (0, 1)) -> Figure | None:
    """Chosen tasks in two of the parameters, the first two unless others are named, one panel per method, all seeds."""
    groups = [(n, group) for n, group in enumerate(entry["groups"]) if group["has_rounds"]][:MOST]
    groups.sort(key=lambda pair: pair[0] != entry["best"])
    if len(entry["parameters"]) <= max(shown) or not groups:
        return None
    first, second = (entry["parameters"][column] for column in shown)
    places = [1 + column for column in shown]  # after the round
    columns = min(4, len(groups))
    rows = -(-len(groups) // columns)
    size = (1.75 * columns + 0.3, 1.7 * rows + 0.2)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axis in axes.flat[len(groups) :]:
        axis.set_visible(False)
    for axis, (number, group) in zip(axes.flat, groups, strict=False):
        colour, _, marker = _style(entry, number)
        tasks = [task for run in entry["runs"] if run["group"] == number for task in run["tasks"]]
        added = np.array([[task[c] for c in places] for task in tasks if task[0]]).reshape(-1, 2)
        initial = np.array([[task[c] for c in places] for task in tasks if not task[0]]).reshape(-1, 2)
        axis.scatter(*initial.T, s=14, marker="D", facecolors="none", edgecolors=MUTED, lw=0.7)
        axis.scatter(*added.T, s=12, marker=marker, color=colour, alpha=0.7, lw=0)
        axis.set_title(group["label"], fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel(_with_unit(first))
    for axis in axes[:, 0]:
        axis.set_ylabel(_with_unit(second))
    return figure


def latent(entry: dict[str, Any], run: dict[str, Any], detail: dict[str, Any]) -> Figure | None:
    """q(h) of the tasks of a run after its last round, coloured by the first parameter."""
    if detail["of"] < 2 or not run["tasks"]:
        return None
    figure = Figure(figsize=(3.4, 2.9), layout="constrained")
    axis = figure.subplots()
    parameter = entry["parameters"][0]
    mean, spread = np.array(detail["mean"][-1]), np.array(detail["spread"][-1])
    values = [task[1] for task in run["tasks"]]
    for centre, (a, b) in zip(mean, 4.0 * spread, strict=True):
        axis.add_patch(Ellipse(tuple(centre), a, b, facecolor=f"{MUTED}33", edgecolor=MUTED, lw=0.5))
    norm = Normalize(parameter["low"], parameter["high"])
    x, y = mean.T
    dots = axis.scatter(x, y, s=22, c=values, cmap="viridis", norm=norm, edgecolors=INK, lw=0.5, zorder=3)
    for centre, task in zip(mean, run["tasks"], strict=True):
        axis.annotate(str(task[0]), tuple(centre), xytext=(3, 3), textcoords="offset points", fontsize=6)
    figure.colorbar(dots, label=_with_unit(parameter))
    axis.set(xlabel="h1", ylabel="h2", title=f"{entry['groups'][run['group']]['label']}, seed {run['seed']}")
    return figure


def predictions(shown: dict[str, Any], output: int = 0) -> Figure:
    """True against predicted ± 2 standard deviations, one panel per test task."""
    true, mean, deviation = (
        unpacked(shown[part]).reshape(shown["shape"])[..., output] for part in ("true", "mean", "deviation")
    )
    columns = min(4, len(true))
    rows = -(-len(true) // columns)
    figure = Figure(figsize=(1.75 * columns, 1.35 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True)
    times = shown["dt"] * np.arange(true.shape[1])
    for axis in axes.flat[len(true) :]:
        axis.set_visible(False)
    for axis, name, y, m, d in zip(axes.flat, shown["tasks"], true, mean, deviation, strict=False):
        axis.fill_between(times, m - 2 * d, m + 2 * d, color=PREDICTED, alpha=0.25, lw=0)
        axis.plot(times, m, color=PREDICTED, ls="--", lw=1)
        axis.plot(times, y, ".", color=INK, ms=2)
        axis.set_title(name.replace("_", " "), fontsize=6)
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    for axis in axes[:, 0]:
        axis.set_ylabel(f"change of {shown['states'][output]}", fontsize=7)
    return figure


def rollouts(shown: list[dict[str, Any]]) -> Figure:
    """The true motion over sampled predictions, a row per test task."""
    columns = len(shown[0]["times"])
    figure = Figure(figsize=(0.75 * columns, 0.95 * len(shown)), layout="constrained")
    for row, strip in zip(figure.subplots(len(shown), columns, squeeze=False), shown, strict=True):
        for axis, time, true, samples in zip(row, strip["times"], strip["true"], strip["samples"], strict=True):
            for joints in samples:
                axis.plot(*np.array(joints).T, color=SAMPLED, alpha=0.3, lw=1.2)
            axis.plot(*np.array(true).T, color=INK, lw=1.6, marker="o", ms=1.5)
            reach = 1.15 * strip["reach"]
            axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
            axis.set_xlabel(f"{time:g} s", fontsize=6)
        row[0].set_title(strip["task"].replace("_", " "), fontsize=6, loc="left")
    return figure


def stage_times(entry: dict[str, Any]) -> Figure:
    """Mean seconds of a run by stage."""
    groups = entry["groups"][:MOST]
    figure = Figure(figsize=(4.6, 0.6 + 0.25 * len(groups)), layout="constrained")
    axis = figure.subplots()
    names = list(dict.fromkeys(name for group in groups for name in group["stages"]))
    start = np.zeros(len(groups))
    for place, name in enumerate(names):
        look: dict[str, Any] = {"hatch": ("", "////", "", "....", "xxx")[place % 5], "facecolor": STAGES[place % 5]}
        seconds = np.array([group["stages"].get(name, 0.0) for group in groups])
        axis.barh(range(len(groups)), seconds, left=start, label=name, height=0.7, edgecolor="white", lw=0.3, **look)
        start += seconds
    axis.set_yticks(range(len(groups)), [group["label"] for group in groups])
    axis.invert_yaxis()
    axis.set_xlabel("seconds")
    axis.legend(fontsize=7, ncols=len(names), loc="upper center", bbox_to_anchor=(0.5, -0.35))
    return figure


def _style(entry: dict[str, Any], number: int) -> tuple[str, Any, str]:
    return matplotlib_style(entry["groups"][number]["style"])


def _named(measure: str) -> str:
    return f"{MEASURES[measure].label} ({MEASURES[measure].unit})"


def _with_unit(parameter: dict[str, Any]) -> str:
    name = parameter["name"].replace("_", " ")
    return f"{name} ({parameter['unit']})" if parameter["unit"] else name
