"""Groups runs: experiments by name, and in each a group per method and variant."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from distpaml.catalogue import METHODS
from distpaml.config.load import leaves
from distpaml.report.collect import UNIMPORTANT, Collection, Problem, Run
from distpaml.report.statistics import Curves

CONTENTS = ("domain.mjcf.xml", "domain.mjcf.assets")
"""Whole files; their hashes tell whether they differ."""
SPELT_OUT = 3
"""Most keys in a label; a variant of more keys gets a number."""


@dataclass(eq=False)
class Group:
    """All seeds of one method in one variant of an experiment."""

    method: str
    variant: dict[str, Any]
    """Values of the keys that differ within the experiment."""
    label: str
    runs: list[Run]

    @cached_property
    def curves(self) -> Curves:
        return Curves.of(self.runs)


@dataclass(eq=False)
class ExperimentRuns:
    """All runs whose configs share a name."""

    name: str
    groups: list[Group]

    @property
    def runs(self) -> list[Run]:
        return [run for group in self.groups for run in group.runs]

    @property
    def config(self) -> dict[str, Any]:
        return self.groups[0].runs[0].config

    def baseline(self, group: Group, method: str) -> Group | None:
        """The group of `method` to compare with: the one of the same variant, or the only one."""
        candidates = [other for other in self.groups if other.method == method]
        same = [other for other in candidates if other.variant == group.variant]
        return same[0] if same else candidates[0] if len(candidates) == 1 else None


def experiments(found: Collection) -> list[ExperimentRuns]:
    """Grouped and ordered; a second run of the same group and seed is left out and listed."""
    names = sorted({run.experiment for run in found.runs})
    return [
        ExperimentRuns(name, _groups([run for run in found.runs if run.experiment == name], found.problems))
        for name in names
    ]


def variants(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """For every run of an experiment, the values of the keys in which the runs differ."""
    flat = [{key: json.dumps(value) for key, value in leaves(run.config)} for run in runs]
    keys = dict.fromkeys(key for leaf in flat for key in leaf if key.partition(".")[0] not in UNIMPORTANT)
    told = [key for key in keys if not key.startswith(CONTENTS)]
    differing = [key for key in told if len({leaf.get(key) for leaf in flat}) > 1]
    return [{key: json.loads(leaf[key]) if key in leaf else None for key in differing} for leaf in flat]


def _groups(runs: Sequence[Run], problems: list[Problem]) -> list[Group]:
    groups: dict[tuple, Group] = {}
    for run, variant in zip(runs, variants(runs), strict=True):
        identity = run.method, sample(run), json.dumps(variant)
        group = groups.setdefault(identity, Group(run.method, variant, "", []))
        twin = next((other for other in group.runs if other.seed == run.seed), None)
        if twin is None:
            group.runs.append(run)
        else:
            problems.append(Problem(str(run.path), f"It is left out: {twin.path} is the same experiment and seed."))
    ordered = sorted(groups.values(), key=lambda group: (_rank(group.method), group.method))
    for number, group in enumerate(ordered):
        group.runs.sort(key=lambda run: run.seed)
        group.label = _label(group, number, one_method=len({other.method for other in ordered}) == 1)
    return ordered


def sample(run: Run) -> str | None:
    """The sample of a search that a trial belongs to: `sample003` of `sample003-seed0`."""
    is_search = run.sweep is not None and isinstance(run.sweep.asked.get("search"), dict)
    return run.name.partition("-")[0] if is_search else None


def _rank(method: str) -> int:
    return list(METHODS).index(method) if method in METHODS else len(METHODS)


def _label(group: Group, number: int, one_method: bool) -> str:
    if not group.variant:
        return group.method
    if name := sample(group.runs[0]):
        return name if one_method else f"{group.method} {name}"
    if len(group.variant) > SPELT_OUT:
        return f"{group.method} #{number + 1}"
    values = (f"{key.rpartition('.')[2]}={_short(value)}" for key, value in group.variant.items())
    return f"{group.method} {' '.join(values)}"


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"
