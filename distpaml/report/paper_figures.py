"""The paper's figures that show single runs, from the arrays of `distpaml.report.showcase`, and its two traps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from distpaml.report.figures import INK, MUTED, PREDICTED, legend
from distpaml.report.showcase import Arrays
from distpaml.report.styles import matplotlib_style

SIDE = 2.9
"""Inches of a panel."""
NEAR = 0.07
"""Dots that are closer than this share of a panel have one label."""


def latent_choices(example: Arrays) -> Figure:
    """q(h) after the last round with two standard deviations: initial tasks black, chosen ones with their rounds.

    A panel per column of the descriptor, which colours the chosen tasks.
    """
    names = example["names"].tolist()
    figure = Figure(figsize=(SIDE * len(names), SIDE), layout="constrained")
    mean, spread = example["mean"][-1], 2.0 * np.sqrt(example["variance"][-1])
    known = example["round"] == 0
    for column, (axis, name) in enumerate(zip(_row(figure, len(names)), names, strict=True)):
        axis.errorbar(*mean.T, spread[:, 1], spread[:, 0], fmt="none", ecolor=MUTED, elinewidth=0.6)
        axis.scatter(*mean[known].T, s=20, color=INK, zorder=3)
        limits = {"vmin": example["low"][column], "vmax": example["high"][column], "cmap": "viridis"}
        colours = example["descriptors"][~known, column]
        dots = axis.scatter(*mean[~known].T, s=24, c=colours, edgecolors=INK, lw=0.5, zorder=3, **limits)
        for text, place in _labels(example["round"][~known], mean[~known], np.ptp(mean, axis=0)):
            axis.annotate(text, place, xytext=(4, 4), textcoords="offset points", fontsize=6, zorder=4)
        figure.colorbar(dots, label=_plain(name))
        axis.set(xlabel="h1", ylabel="h2")
    return figure


def _labels(rounds: Any, places: Any, extent: Any) -> list[tuple[str, Any]]:
    """A label for every group of dots [K, 2] that lie together, and where: their rounds, at the highest of them."""
    apart = np.abs((places[:, None] - places) / np.where(extent > 0.0, extent, 1.0)).max(axis=-1)  # [K, K]
    left, labels = list(range(len(places))), []
    while left:
        together = [dot for dot in left if apart[left[0], dot] < NEAR]
        left = [dot for dot in left if dot not in together]
        numbers = [str(rounds[dot]) for dot in together]
        lines = (",".join(numbers[first : first + 4]) for first in range(0, len(numbers), 4))
        labels.append((",\n".join(lines), places[max(together, key=lambda dot: places[dot, 1])]))
    return labels


def decoder_map(example: Arrays) -> Figure:
    """Trap 1: what latents far from the data decode to, a panel per column of the descriptor.

    The outlined part is valid: it decodes to a descriptor in the box, so a task can be chosen there. Initial tasks are
    black, chosen ones white.
    """
    decoded, low, high = example["decoded"], example["low"], example["high"]
    names = example["names"].tolist()
    valid = ((decoded >= low) & (decoded <= high)).all(axis=-1)
    figure = Figure(figsize=(SIDE * len(names), SIDE), layout="constrained")
    for column, (axis, name) in enumerate(zip(_row(figure, len(names)), names, strict=True)):
        shades = axis.pcolormesh(*example["axes"], decoded[..., column], cmap="viridis", vmin=0.0, vmax=high[column])
        if valid.any() and not valid.all():
            for colour, width in ((INK, 2.4), ("white", 1.2)):  # seen on light and on dark
                axis.contour(*example["axes"], valid.astype(float), [0.5], colors=colour, linewidths=width)
        known = example["round"] == 0
        for dots, fill, edge in ((~known, "white", INK), (known, INK, "white")):
            axis.scatter(*example["mean"][-1][dots].T, s=10, color=fill, edgecolors=edge, lw=0.5, zorder=3)
        figure.colorbar(shades, label=f"decoded {_plain(name)}")
        axis.set(xlabel="h1", ylabel="h2")
    return figure


def divisors(entries: Sequence[dict[str, Any]]) -> Figure:
    """Trap 2: what the paper's errors are divided by, in units of the fair divisor; a panel per experiment.

    A change of divisor moves the NLL by its logarithm: nll − nll_paper = 1/D Σ_d log(s_train,d / s_test,d), so that
    exp(nll − nll_paper) is the geometric mean of s_train / s_test over the outputs. Above 1, errors look smaller.
    Mean ± standard error over seeds.
    """
    columns = min(3, len(entries))
    rows = -(-len(entries) // columns)
    figure = Figure(figsize=(SIDE * columns, 0.8 * SIDE * rows + 0.3), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[len(entries) :]:
        axis.set_visible(False)
    for axis, entry in zip(axes.flat, entries, strict=False):
        for group in (group for group in entry["groups"] if group["has_rounds"]):
            fair, paper = (np.array(group["measures"][name]["seeds"], float) for name in ("nll", "nll_paper"))
            ratios = np.exp(fair - paper)  # [S, K], NaN for rounds to come
            ratio, seeds = np.nanmean(ratios, axis=0), np.isfinite(ratios).sum(axis=0)
            error = np.sqrt(np.nanmean((ratios - ratio) ** 2, axis=0) / np.maximum(seeds - 1, 1))
            colour, dashes, marker = matplotlib_style(group["style"])
            axis.plot(group["added"], ratio, color=colour, ls=dashes, marker=marker, ms=3, label=group["label"])
            axis.fill_between(group["added"], ratio - error, ratio + error, color=colour, alpha=0.15, lw=0)
        axis.axhline(1.0, color=MUTED, lw=0.8, ls="--")
        axis.set(title=_plain(entry["name"]))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axis in axes[:, 0]:
        axis.set_ylabel("training / test standard deviation", fontsize=7)
    for axis in axes.flat[max(0, len(entries) - columns) : len(entries)]:
        axis.set_xlabel("added tasks")
    legend(figure)
    return figure


def pixels(example: Arrays, shown: int = 6) -> Figure:
    """Some of the images to choose from, evenly spread, and below them the first that were chosen."""
    images, rounds = example["images"], example["image_round"]
    order = np.flatnonzero(rounds >= 0)[np.argsort(rounds[rounds >= 0], kind="stable")][:shown]
    spread = np.linspace(0, len(images) - 1, shown).round().astype(int)
    figure = Figure(figsize=(0.9 * shown, 3.4), layout="constrained")
    axes = figure.subplots(2, shown)
    for row, numbers in zip(axes, (spread, order), strict=True):
        for axis in row:
            axis.set_axis_off()
        for axis, number in zip(row, numbers, strict=False):
            axis.imshow(images[number], cmap="gray", vmin=0, vmax=255)
            axis.set_title(f"round {rounds[number]}" if numbers is order else "", fontsize=7)
    for row, name in zip(axes, ("some to choose from", "the first that were chosen"), strict=True):
        place = {"rotation": 90, "ha": "right", "va": "center", "transform": row[0].transAxes, "fontsize": 7}
        row[0].text(-0.3, 0.5, name, **place)
    return figure


def before_and_after(example: Arrays, output: int = -1) -> Figure:
    """One output of some test tasks: truth, and predictions ± 2 standard deviations of the first and the last model."""
    truth = example["truth"][..., output]
    times = float(example["dt"]) * np.arange(truth.shape[1])
    figure = Figure(figsize=(2.2 * len(truth), 3.4), layout="constrained")
    axes = figure.subplots(2, len(truth), squeeze=False, sharex=True, sharey="col")
    for row, name in zip(axes, ("before", "after"), strict=True):
        for axis, y, mean, sd in zip(
            row, truth, example[name][..., output], example[f"{name}_sd"][..., output], strict=True
        ):
            axis.fill_between(times, mean - 2 * sd, mean + 2 * sd, color=PREDICTED, alpha=0.25, lw=0)
            axis.plot(times, mean, color=PREDICTED, ls="--", lw=1)
            axis.plot(times, y, ".", color=INK, ms=2)
        tasks = int((example["round"] == 0).sum()) if name == "before" else len(example["round"])
        row[0].set_ylabel(f"change of {_plain(str(example['states'][output]))}, {tasks} tasks", fontsize=7)
    for axis, task in zip(axes[0], example["test"], strict=True):
        said = (f"{_plain(name)} {value:.2g}" for name, value in zip(example["parameters"].tolist(), task, strict=True))
        axis.set_title(", ".join(said), fontsize=6)
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    return figure


def _row(figure: Figure, columns: int) -> Any:
    return figure.subplots(1, columns, squeeze=False)[0]


def _plain(name: str) -> str:
    return name.replace("_", " ")
