"""The paper's figures that show single runs, from the arrays of `distpaml.report.showcase`, and its two traps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from distpaml.report.figures import INK, MUTED, PREDICTED
from distpaml.report.showcase import Arrays
from distpaml.report.styles import matplotlib_style

SIDE = 2.9
"""Inches of a panel."""


def latent_choices(example: Arrays) -> Figure:
    """q(h) after the last round with two standard deviations: initial tasks black, chosen ones numbered in order.

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
        for order, place in zip(example["round"][~known], mean[~known], strict=True):
            axis.annotate(str(order), place, xytext=(3, 3), textcoords="offset points", fontsize=6)
        figure.colorbar(dots, label=_plain(name))
        axis.set(xlabel="h1", ylabel="h2")
    return figure


def decoder_map(example: Arrays) -> Figure:
    """Trap 1: what latents far from the data decode to, a panel per column of the descriptor.

    The outlined part is valid: it decodes to a descriptor in the box, so a task can be chosen there.
    """
    decoded, low, high = example["decoded"], example["low"], example["high"]
    names = example["names"].tolist()
    valid = ((decoded >= low) & (decoded <= high)).all(axis=-1)
    figure = Figure(figsize=(SIDE * len(names), SIDE), layout="constrained")
    for column, (axis, name) in enumerate(zip(_row(figure, len(names)), names, strict=True)):
        shades = axis.pcolormesh(*example["axes"], decoded[..., column], cmap="viridis", vmin=0.0, vmax=high[column])
        if valid.any() and not valid.all():
            axis.contour(*example["axes"], valid.astype(float), [0.5], colors="white", linewidths=1.2)
        axis.scatter(*example["mean"][-1].T, s=8, color="white", edgecolors=INK, lw=0.4)
        figure.colorbar(shades, label=f"decoded {_plain(name)}")
        axis.set(xlabel="h1", ylabel="h2")
    return figure


def divisors(entries: Sequence[dict[str, Any]]) -> Figure:
    """Trap 2: what the paper's errors are divided by, in units of the fair divisor; a panel per experiment.

    A change of divisor moves the NLL by its logarithm: nll − nll_paper = 1/D Σ_d log(s_train,d / s_test,d), so that
    exp(nll − nll_paper) is the geometric mean of s_train / s_test over the outputs. Above 1, errors look smaller.
    """
    figure = Figure(figsize=(SIDE * len(entries), SIDE), layout="constrained")
    for axis, entry in zip(_row(figure, len(entries)), entries, strict=True):
        for group in (group for group in entry["groups"] if group["has_rounds"]):
            fair, paper = (np.array(group["measures"][name]["seeds"], float) for name in ("nll", "nll_paper"))
            ratio = np.nanmean(np.exp(fair - paper), axis=0)
            colour, dashes, marker = matplotlib_style(group["style"])
            axis.plot(group["added"], ratio, color=colour, ls=dashes, marker=marker, ms=3, label=group["label"])
        axis.axhline(1.0, color=MUTED, lw=0.8, ls="--")
        axis.set(xlabel="added tasks", ylabel="training / test standard deviation", title=_plain(entry["name"]))
        axis.legend(fontsize=7)
    return figure


def pixels(example: Arrays, shown: int = 6) -> Figure:
    """Some of the images to choose from, evenly spread, and below them the first that were chosen."""
    images, rounds = example["images"], example["image_round"]
    order = np.flatnonzero(rounds >= 0)[np.argsort(rounds[rounds >= 0], kind="stable")][:shown]
    spread = np.linspace(0, len(images) - 1, shown).round().astype(int)
    figure = Figure(figsize=(0.9 * shown, 3.4), layout="constrained")
    for axes, numbers in zip(figure.subplots(2, shown), (spread, order), strict=True):
        for axis in axes:
            axis.set_axis_off()
        for axis, number in zip(axes, numbers, strict=False):
            axis.imshow(images[number], cmap="gray", vmin=0, vmax=255)
            axis.set_title("" if rounds[number] < 0 else f"round {rounds[number]}", fontsize=7)
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
        row[0].set_ylabel(f"{_plain(str(example['states'][output]))}, {tasks} tasks", fontsize=7)
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
