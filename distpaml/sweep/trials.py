"""From sweeps to trials: names and configs, all checked before anything starts."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from distpaml.config import ExperimentConfig
from distpaml.config.load import Source
from distpaml.config.validation_errors import shown
from distpaml.errors import UserError
from distpaml.sweep.schema import LONGEST_NAME, SweepConfig


@dataclass(frozen=True)
class Trial:
    """What Tune schedules: one run in a grid, one run per seed in a search, by name."""

    name: str
    runs: Mapping[str, ExperimentConfig]
    values: Mapping[str, Any]
    """The values of a search's sample, by key."""


@dataclass(frozen=True)
class Sample:
    """An earlier sample of a search."""

    values: Mapping[str, Any]
    objective: float | None
    """None if it failed or has none yet."""
    stopped: int | None
    """The round at which it was stopped early, if it was; its objective is that of this round."""
    closed: bool
    """Finished, stopped early, or failed: nothing is left to do."""


def grid_trials(parts: Sequence[SweepConfig]) -> list[Trial]:
    """Every combination in every sweep."""
    trials: dict[str, Trial] = {}
    for part in parts:
        for name, config in _combinations(part):
            if len(name) > LONGEST_NAME:
                raise UserError(
                    f"A trial would be called {shown(name)}, which has {len(name)} characters, but the name of a "
                    f"folder may have {LONGEST_NAME}; give its experiment a shorter name, or the grid shorter values."
                )
            if name in trials and trials[name].runs[name] != config:
                raise UserError(f"Two different trials would be called {name}; give their experiments other names.")
            trials[name] = Trial(name, {name: config}, {})
    return list(trials.values())


def sample_trial(sweep: SweepConfig, number: int, values: Mapping[str, Any]) -> Trial:
    """One sample of a search: the same values for every seed."""
    name = f"sample{number:03d}"
    source = Source.of(sweep.experiments[0])
    runs = {f"{name}-seed{seed}": _config(sweep, source, _method(sweep), seed, values) for seed in sweep.seeds}
    if any(config.runtime.kind == "ray" for config in runs.values()):
        raise UserError("A search runs all seeds of a sample in one process: runtime.kind should be local, not ray.")
    return Trial(name, runs, dict(values))


def search_corners(sweep: SweepConfig) -> list[Trial]:
    """Samples that together cover both ends of every interval and every choice: if these are valid, all are."""
    assert sweep.search is not None
    ends = {key: space.choices or (space.low, space.high) for key, space in sweep.search.space.items()}
    return [
        sample_trial(sweep, corner, {key: values[corner % len(values)] for key, values in ends.items()})
        for corner in range(sweep.search.corners)
    ]


def _combinations(sweep: SweepConfig) -> Iterator[tuple[str, ExperimentConfig]]:
    methods = sweep.methods or (None,)
    sources = map(Source.of, sweep.experiments)
    for source, method, *values in product(sources, methods, *sweep.grid.values()):
        varied = dict(zip(sweep.grid, values, strict=True))
        suffix = "".join(f"-{key}={_short(value)}" for key, value in varied.items())
        for seed in sweep.seeds:
            config = _config(sweep, source, method, seed, varied)
            yield f"{_safe(config.name)}-{config.method}{suffix}-seed{seed}", config


def _config(
    sweep: SweepConfig, source: Source, method: str | None, seed: int, values: Mapping[str, Any]
) -> ExperimentConfig:
    keys = {**sweep.overrides, **values, "seed": seed} | ({"method": method} if method else {})
    return source.load(keys, sweep.quick)


def _method(sweep: SweepConfig) -> str | None:
    return sweep.methods[0] if sweep.methods else None


def _short(value: Any) -> str:
    return _safe(value if isinstance(value, str) else json.dumps(value))


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", text)
