"""The corners of a family's box, simulated and drawn as film strips: does it move as it should, everywhere?"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distpaml.domains.base import Domain, SimulationError
from distpaml.domains.signals import control_signals
from distpaml.durable_io import write_durably
from distpaml.errors import UserError
from distpaml.types import Array

if TYPE_CHECKING:
    from distpaml.config import DomainConfig

MOST, FRAMES = 8, 10
"""Corners and pictures of each."""


def draw_corners(domain: Domain, config: DomainConfig, path: Path) -> Iterator[str]:
    """Draw into `path`; a line about every corner: how fast it gets, or that it diverges."""
    corners = np.array([*islice(product(*config.box.values()), MOST)])
    controls = control_signals(
        domain, config.signal.signal(), config.control_limit, config.alternations, config.trajectory_length,
        np.random.default_rng(0),
    )  # fmt: skip
    start = domain.start(np.random.default_rng(0))
    strips: list[tuple[str, Array]] = []
    for task in corners:
        try:
            (states,) = domain.simulate(task[None], start[None], controls[None])
        except SimulationError as error:
            yield f"  {error}"
            continue
        columns = zip(domain.states, states.T, strict=True)
        reach = ", ".join(f"{name} {column.min():.3g} … {column.max():.3g}" for name, column in columns)
        yield f"  {domain.describe(task)}: {reach}"
        strips.append((domain.describe(task), _pictures(domain, states, task)))
    if strips:
        _draw(strips, domain, path, config.trajectory_length)


def _pictures(domain: Domain, states: Array, task: Array) -> Array:
    """Points [FRAMES, J, 2], or the states themselves [T, S] for a domain without looks."""
    shown = np.linspace(0, len(states) - 1, FRAMES).round().astype(int)
    points = domain.look(states[shown], task)
    return states if points is None else points


def _draw(strips: list[tuple[str, Array]], domain: Domain, path: Path, length: int) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 1.9 * len(strips)), layout="constrained")
    axes = figure.subplots(len(strips), 1, squeeze=False)[:, 0]
    for axis, (name, points) in zip(axes, strips, strict=True):
        axis.set_title(name, fontsize=9, loc="left")
        if points.ndim == 2:
            axis.plot(domain.dt * np.arange(len(points)), points, label=domain.states)
            axis.legend(fontsize=7, loc="upper right")
            continue
        size = max(float(np.ptp(points[..., 0])), float(np.ptp(points[..., 1])), 1e-6)
        for frame, line in enumerate(points):
            axis.plot(line[:, 0] + 1.15 * size * frame, line[:, 1], "-o", color="black", markersize=2.5, linewidth=1.4)
            seconds = domain.dt * frame * (length - 1) / (FRAMES - 1)
            axis.annotate(
                f"{seconds:.2g} s", (1.15 * size * frame, points[..., 1].min() - 0.08 * size), fontsize=7, va="top"
            )
        axis.set_aspect("equal")
        axis.axis("off")
    kind = path.suffix[1:].lower() or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise UserError(f"The film strip {path} should end in .png, .svg or .pdf.")
    buffer = BytesIO()
    figure.savefig(buffer, format=kind, dpi=110)
    try:
        write_durably(path, buffer.getvalue())
    except OSError as error:
        raise UserError(f"The film strip {path} cannot be written: {error.strerror or error}.") from error
