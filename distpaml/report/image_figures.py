"""Figures of a run whose tasks are described by images, from its directory alone: `figures(Path("runs/images"))`."""

from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from distpaml.records import read_arrays, read_records
from distpaml.rounds import Record

GREY = {"cmap": "gray", "vmin": 0.0, "vmax": 1.0}


def image_figures(path: Path, kind: str) -> list[dict[str, Any]]:
    """Title and PNG (as a data URL) of every figure of the run in `path`; none unless its descriptor is `image`."""
    if kind != "image":
        return []
    entries = []
    for title, figure in figures(path).items():
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        address = f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"
        entries.append({"title": title, "image": address})
    return entries


def figures(run: Path) -> dict[str, Figure]:
    """All figures by title; none for a run without images."""
    records = read_records(run)
    if not records or "images" not in (first := read_arrays(run, 0)):
        return {}
    rounds = {record.round: read_arrays(run, record.round) for record in records}
    return {
        "The images to choose from": candidate_images(first, records),
        "Samples from the network's prior": prior_samples(rounds),
        "The latent space, coloured by the true parameter": latent_space(rounds[records[-1].round], records),
    }


def candidate_images(first: dict[str, Any], records: list[Record]) -> Figure:
    """All images in order; those that became tasks carry the round that chose them."""
    images, labels = first["images"].astype(float), first["image_labels"]
    chosen = {added.descriptor: record.round for record in records for added in record.added}
    columns = min(20, len(images))
    rows = -(-len(images) // columns)
    figure = Figure(figsize=(0.5 * columns, 0.55 * rows * images.shape[1] / images.shape[2] * 0.5 + 0.3 * rows))
    for axes in (grid := figure.subplots(rows, columns, squeeze=False).ravel()):
        axes.set_axis_off()
    for axes, image, label in zip(grid, images, labels, strict=False):
        axes.imshow(image, **GREY)
        if tuple(label.tolist()) in chosen:
            axes.set_title(f"{chosen[tuple(label.tolist())]}", fontsize=8, pad=1)
    figure.supxlabel("above an image: the round that chose it", fontsize=9)
    return figure


def prior_samples(rounds: dict[int, dict[str, Any]]) -> Figure:
    """The same latents h ~ N(0, I), decoded in every round: a column per round."""
    samples = {number: arrays["prior_samples"].astype(float) for number, arrays in rounds.items()}
    size, height, width = next(iter(samples.values())).shape
    figure = Figure(figsize=(0.6 * len(samples) + 0.4, 0.6 * size * height / width * 0.5 + 0.4))
    grid = figure.subplots(size, len(samples), squeeze=False)
    for column, (number, images) in enumerate(samples.items()):
        grid[0, column].set_title(str(number), fontsize=8)
        for axes, image in zip(grid[:, column], images, strict=True):
            axes.imshow(image, **GREY)
            axes.set_axis_off()
    figure.supxlabel("round", fontsize=9)
    return figure


def latent_space(arrays: dict[str, Any], records: list[Record]) -> Figure:
    """Every image encoded by the newest network, coloured by its true parameter; numbers are rounds."""
    mean, labels = arrays["image_mean"], arrays["image_labels"]
    second = mean[:, 1] if mean.shape[1] > 1 else np.zeros(len(mean))
    figure = Figure(figsize=(6.0, 4.5))
    axes = figure.subplots()
    points = axes.scatter(mean[:, 0], second, c=labels[:, 0], s=14, cmap="viridis")
    figure.colorbar(points, label="true parameter")
    for record in records:
        for added in record.added:
            (row,) = np.flatnonzero((labels == np.array(added.descriptor)).all(axis=1))[:1]
            axes.annotate(str(record.round), (mean[row, 0], second[row]), textcoords="offset points", xytext=(3, 5))
            axes.plot(mean[row, 0], second[row], "o", mfc="none", mec="black", ms=8)
    axes.set(xlabel="h₁", ylabel="h₂")
    return figure
