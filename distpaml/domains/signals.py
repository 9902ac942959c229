"""Control signals of a trajectory, one per control: the paper's ramp, chirp, PRBS, multi-sine, or recorded ones.

Every signal lies within the limits [l, h] of its control. With c = (l + h) / 2, r = (h − l) / 2 and noise ε_t:

    u_t = c + clip(r s_t + σ ε_t, −r, r)        s_t in [−1, 1] is the shape, ε_t ~ N(0, 1)

Controls of one system have different s_t, so that their effects can be told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from distpaml.domains.base import Domain
from distpaml.errors import UserError
from distpaml.types import Array


@dataclass(frozen=True)
class Signal:
    """Which signal, and its numbers; the default is the paper's."""

    shape: str = "ramp"
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Of single controls, in place of the domain's."""
    noise: float | None = None
    """σ, in the unit of the control; None: 1 for the paper's ramp, r / 10 for other ramps, 0 otherwise."""
    frequencies: tuple[float, float] | None = None
    """Hz, from and to; None: one and ten periods within a trajectory."""
    hold: int = 5
    """Steps for which a PRBS keeps its value at least."""
    sines: int = 8
    """Of a multi-sine."""
    recorded: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Values by control, one per step."""


def control_signals(
    domain: Domain, signal: Signal, limit: float, alternations: int, length: int, rng: np.random.Generator
) -> Array:
    """Controls [length − 1, U] of a trajectory of `length` states, all of them within ±`limit` as well.

    A signal is made for `length` points, and its last one, which no transition would see, is dropped.
    """
    if signal.shape == "recorded":
        return _recorded(domain, signal, limit, length)
    columns = []
    for number, name in enumerate(domain.controls):
        low, high = control_range(domain, signal, name, limit)
        centre, radius = (low + high) / 2, (high - low) / 2
        if signal.shape == "ramp":
            ideal = alternating_ramp(radius, min(alternations + number, length), length)
            noise = radius / 10 if domain.control_noise is None else domain.control_noise
        else:
            ideal = radius * SHAPES[signal.shape](signal, number, length, domain.dt, rng)
            noise = 0.0
        noise = noise if signal.noise is None else signal.noise
        noisy = ideal + noise * rng.standard_normal(length)
        columns.append(centre + np.clip(noisy, -radius, radius)[:-1])
    values = np.stack(columns, axis=-1)
    return np.rint(values) if domain.discrete_controls else values


def alternating_ramp(limit: float, alternations: int, length: int) -> Array:
    """The paper's ramps C/2 … C, −C/2 … −C, C/2 … in turn, [length], with C = `limit`.

    Every ramp has length / alternations points; when that is no whole number, the first ones have one more.
    """
    if not 1 <= alternations <= length:
        raise ValueError(f"{alternations} alternations do not fit into a signal of length {length}.")
    pieces = np.array_split(np.arange(length), alternations)
    return np.concatenate([(-1) ** i * np.linspace(limit / 2, limit, len(piece)) for i, piece in enumerate(pieces)])


def control_range(domain: Domain, signal: Signal, name: str, limit: float) -> tuple[float, float]:
    """The interval of one control: the signal's own, or the domain's, within ±`limit`."""
    low, high = signal.limits.get(name) or domain.limits.get(name) or (-limit, limit)
    inside = max(low, -limit), min(high, limit)
    if not inside[0] < inside[1]:
        raise UserError(
            f"The control {name} has the limits [{low:g}, {high:g}], of which nothing lies within the control limit "
            f"±{limit:g}; raise domain.control_limit."
        )
    return inside


def default_signals(domain: Domain, rng: np.random.Generator, length: int | None = None) -> Array:
    """The paper's ramp within the domain's own limits, [length − 1, U]."""
    length = length or domain.trajectory_length
    return control_signals(domain, Signal(), domain.control_limit, domain.alternations, length, rng)


def _band(signal: Signal, length: int, dt: float) -> tuple[float, float]:
    seconds = length * dt
    return signal.frequencies or (1.0 / seconds, min(10.0 / seconds, 0.5 / dt))


def _chirp(signal: Signal, number: int, length: int, dt: float, rng: np.random.Generator) -> Array:
    """sin(2π (f₀ t + (f₁ − f₀) t² / 2T) + φ): from f₀ to f₁ within T seconds."""
    low, high = _band(signal, length, dt)
    time = dt * np.arange(length)
    turns = low * time + (high - low) * time**2 / (2 * length * dt)
    return np.sin(2 * np.pi * (turns + (rng.random() if number else 0.0)))


def _multisine(signal: Signal, number: int, length: int, dt: float, rng: np.random.Generator) -> Array:
    """Σ_k sin(2π f_k t + φ_k) with random phases, divided by its largest magnitude."""
    low, high = _band(signal, length, dt)
    frequencies = np.linspace(low, high, signal.sines)
    phases = rng.random(signal.sines)
    total = np.sin(2 * np.pi * (np.outer(dt * np.arange(length), frequencies) + phases)).sum(axis=1)
    return total / max(float(np.abs(total).max()), 1e-12)


def _prbs(signal: Signal, number: int, length: int, dt: float, rng: np.random.Generator) -> Array:
    """±1 in the order of a maximum length sequence, from a random place in it; each value is held."""
    from scipy.signal import max_len_seq  # takes long to import

    values = -(-length // signal.hold)
    bits = max(3, int(values + 1).bit_length())
    sequence = 2.0 * max_len_seq(bits)[0] - 1.0
    turned = np.roll(sequence, -int(rng.integers(len(sequence))))
    return np.repeat(turned[:values], signal.hold)[:length]


SHAPES: dict[str, Callable[[Signal, int, int, float, np.random.Generator], Array]] = {
    "chirp": _chirp,
    "multisine": _multisine,
    "prbs": _prbs,
}


def _recorded(domain: Domain, signal: Signal, limit: float, length: int) -> Array:
    """The rows of a recording as they are; one that does not fit is refused."""
    missing = [name for name in domain.controls if name not in signal.recorded]
    if missing:
        there = ", ".join(signal.recorded)
        raise UserError(f"The recorded controls have no column {missing[0]}; their columns are {there}.")
    values = np.array([signal.recorded[name] for name in domain.controls], float).T
    if len(values) < length - 1:
        raise UserError(
            f"The recorded controls have {len(values)} rows, but domain.trajectory_length={length} needs {length - 1}."
        )
    values = values[: length - 1]
    for column, name in enumerate(domain.controls):
        low, high = control_range(domain, signal, name, limit)
        outside = (values[:, column] < low) | (values[:, column] > high)
        if outside.any():
            row = int(outside.argmax())
            raise UserError(
                f"The recorded control {name} is {values[row, column]:g} in row {row + 1}, outside [{low:g}, "
                f"{high:g}]; raise domain.control_limit or domain.signal.limits.{name}."
            )
    return values
