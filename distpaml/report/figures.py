"""The page's figures for papers, as PDF and PNG: the same numbers, drawn by matplotlib."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import MaxNLocator, NullLocator

from distpaml.report.packing import unpacked

STYLES = {
    "paml": ("#c8450c", "-", "o"),
    "paml-pool": ("#0b62a8", (0, (6, 2)), "s"),
    "uni": ("#a03c8c", (0, (1.5, 2)), "^"),
    "lhs": ("#0d7f5f", (0, (6, 2, 1.5, 2)), "D"),
    "oracle": ("#3d3a35", ":", ""),
}
OTHERS = ("#8a6a00", "#2b8fb8", "#6b4fc4", "#c8450c", "#0b62a8", "#a03c8c", "#0d7f5f")
NAMES = {"rmse": "RMSE", "nll": "NLL (nats per number)"}
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
STAGES = ("#c8450c", "#0d7f5f", "#0b62a8", "#8a6a00", "#6b4fc4")
TICKS = [size * 10.0**power for power in range(-3, 4) for size in (1, 2, 5)]
MOST = 12
"""Groups in one figure."""


def write_figures(tree: dict[str, Any], folder: Path) -> list[Path]:
    """Every figure of the report in `tree`, named by experiment and content."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context(SETTINGS):
        for entry in tree["experiments"]:
            figures = {
                "curves": curves(entry, ""),
                "curves-paper": curves(entry, "_paper"),
                "differences": differences(entry),
                "chosen": chosen(entry),
                "stages": stage_times(entry),
            }
            run = next((run for run in entry["runs"] if str(run["id"]) in tree["details"]), None)
            if run is not None:
                detail = tree["details"][str(run["id"])]
                figures["latent"] = latent(entry, run, detail["latent"])
                figures["predictions"] = predictions(detail["predictions"]) if "predictions" in detail else None
                figures["films"] = films(detail["films"]) if "films" in detail else None
            for name, figure in figures.items():
                if figure is None:
                    continue
                for suffix in ("pdf", "png"):
                    path = folder / f"{_safe(entry['name'])}-{name}.{suffix}"
                    figure.savefig(path, dpi=200)
                    written.append(path)
    return written


def curves(entry: dict[str, Any], measure: str) -> Figure:
    """RMSE and NLL against added tasks, mean ± standard error over seeds."""
    figure = Figure(figsize=(6.8, 2.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, kind in zip(axes, NAMES, strict=True):
        for number, group in enumerate(entry["groups"][:MOST]):
            colour, dashes, marker = _style(entry, number)
            part = group["measures"][kind + measure]
            mean, error = (np.array(part[key], float) for key in ("mean", "error"))
            if group["method"] == "oracle":
                axis.axhline(mean[0], color=colour, ls=dashes, lw=1.2, label=group["label"])
                continue
            axis.plot(group["added"], mean, color=colour, ls=dashes, marker=marker, ms=3, lw=1.3, label=group["label"])
            axis.fill_between(group["added"], mean - error, mean + error, color=colour, alpha=0.15, lw=0)
        axis.set_yscale("log" if kind == "rmse" else "asinh")
        sizes = TICKS if kind == "rmse" else [size for size in TICKS if size >= 1.0]
        ticks = [0.0, *sizes, *(-size for size in sizes)]
        low, high = axis.get_ylim()
        axis.set_yticks([tick for tick in ticks if low <= tick <= high])
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.yaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set(xlabel="added tasks", ylabel=NAMES[kind], ylim=(low, high))
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7, ncols=6, loc="outside upper center")
    return figure


def differences(entry: dict[str, Any]) -> Figure | None:
    """Paired differences to the baselines over the horizon, with their intervals."""
    rows = entry["table"]["rmse"], entry["table"]["nll"]
    names = [(row["group"], name) for row in rows[0] for name in ("uni", "lhs") if row.get(f"area-{name}") is not None][
        : 2 * MOST
    ]
    if not names:
        return None
    figure = Figure(figsize=(6.8, 0.6 + 0.25 * len(names)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, table, kind in zip(axes, rows, NAMES, strict=True):
        by_group = {row["group"]: row for row in table}
        for place, (number, name) in enumerate(names):
            part = by_group[number][f"area-{name}"]
            colour, _, marker = _style(entry, number)
            if part["low"] is not None:
                axis.plot([part["low"], part["high"]], [place, place], color=colour, lw=1.4)
            axis.plot(part["mean"], place, marker=marker or "o", color=colour, ms=4)
        axis.axvline(0.0, color="#65625b", lw=0.8, ls="--")
        axis.set_xlabel(f"difference in {NAMES[kind]}")
    labels = [f"{entry['groups'][number]['label']} − {name.upper()}" for number, name in names]
    axes[0].set_yticks(range(len(names)), labels)
    axes[0].invert_yaxis()
    return figure


def chosen(entry: dict[str, Any]) -> Figure | None:
    """Chosen tasks in the first two parameters, one panel per method, all seeds."""
    groups = [(n, group) for n, group in enumerate(entry["groups"]) if group["method"] != "oracle"][:MOST]
    if len(entry["parameters"]) < 2 or not groups:
        return None
    first, second = entry["parameters"][:2]
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
        added = np.array([task[1:3] for task in tasks if task[0]]).reshape(-1, 2)
        initial = np.array([task[1:3] for task in tasks if not task[0]]).reshape(-1, 2)
        axis.scatter(*initial.T, s=14, marker="D", facecolors="none", edgecolors="#65625b", lw=0.7)
        axis.scatter(*added.T, s=12, marker=marker or "o", color=colour, alpha=0.7, lw=0)
        axis.set_title(group["label"], fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel(first["name"].replace("_", " "))
    for axis in axes[:, 0]:
        axis.set_ylabel(second["name"].replace("_", " "))
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
        axis.add_patch(Ellipse(tuple(centre), a, b, facecolor="#65625b33", edgecolor="#65625b", lw=0.5))
    norm = Normalize(parameter["low"], parameter["high"])
    x, y = mean.T
    dots = axis.scatter(x, y, s=22, c=values, cmap="viridis", norm=norm, edgecolors="#1d1c1a", lw=0.5, zorder=3)
    for centre, task in zip(mean, run["tasks"], strict=True):
        axis.annotate(str(task[0]), tuple(centre), xytext=(3, 3), textcoords="offset points", fontsize=6)
    figure.colorbar(dots, label=parameter["name"].replace("_", " "))
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
        axis.fill_between(times, m - 2 * d, m + 2 * d, color="#0b62a8", alpha=0.25, lw=0)
        axis.plot(times, m, color="#0b62a8", ls="--", lw=1)
        axis.plot(times, y, ".", color="#1d1c1a", ms=2)
        axis.set_title(name.replace("_", " "), fontsize=6)
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    for axis in axes[:, 0]:
        axis.set_ylabel(f"change of {shown['states'][output]}", fontsize=7)
    return figure


def films(shown: list[dict[str, Any]]) -> Figure:
    """The true motion over sampled predictions, a row per test task."""
    columns = len(shown[0]["times"])
    figure = Figure(figsize=(0.75 * columns, 0.95 * len(shown)), layout="constrained")
    for row, film in zip(figure.subplots(len(shown), columns, squeeze=False), shown, strict=True):
        for axis, time, true, samples in zip(row, film["times"], film["true"], film["samples"], strict=True):
            for joints in samples:
                axis.plot(*np.array(joints).T, color="#c8450c", alpha=0.3, lw=1.2)
            axis.plot(*np.array(true).T, color="#1d1c1a", lw=1.6, marker="o", ms=1.5)
            reach = 1.15 * film["reach"]
            axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
            axis.set_xlabel(f"{time:g} s", fontsize=6)
        row[0].set_title(film["task"].replace("_", " "), fontsize=6, loc="left")
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
    method = entry["groups"][number]["method"]
    alone = sum(group["method"] == method for group in entry["groups"]) == 1
    if alone and method in STYLES:
        return STYLES[method]
    return OTHERS[number % len(OTHERS)], ("-", "--", ":", "-.")[number % 4], "osD^"[number % 4]


def _safe(name: str) -> str:
    """A name that is a file's: letters, digits, and dashes for the rest."""
    return "".join(character if character.isalnum() or character in "_-" else "-" for character in name)[:80]
