"""Everything that the page shows, as one tree of plain values; the page only draws."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import product
from typing import Any

import numpy as np

from distpaml.catalogue import ERRORS, MEASURES, METHODS, baselines, planned_rounds
from distpaml.domains import DOMAINS
from distpaml.report.aggregate import together
from distpaml.report.claims import claims
from distpaml.report.collect import Collection, Problem, Run
from distpaml.report.groups import ExperimentRuns, Group, experiments
from distpaml.report.image_figures import image_figures
from distpaml.report.packing import rounded
from distpaml.report.run_detail import run_detail_once
from distpaml.report.searches import searches
from distpaml.report.statistics import COVERAGE, area, differences, paired
from distpaml.report.styles import group_styles
from distpaml.report.timings import reliability, stages

DETAILS = 24
"""Most runs that a page shows in detail, about 40 kB each."""
COMPARED = 24
"""Most groups of an experiment to compare with the baselines, best first; a search has many."""
DIGITS = 6

_log = logging.getLogger(__name__)


def payload(found: Collection) -> dict[str, Any]:
    """The whole report. A failure costs only its own figure, and the page lists it."""
    grouped = experiments(found)
    identity = {id(run): number for number, run in enumerate(run for part in grouped for run in part.runs)}
    entries = []
    for part in grouped:
        try:
            entries.append(_experiment(part, identity))
        except Exception as error:  # the report ends a long sweep: it must not be what fails
            _log.exception("The report leaves out the experiment %s", part.name)
            found.problems.append(Problem(part.name, f"It is left out: {type(error).__name__}: {error}."))
    details = dict(_details(grouped, identity, found))
    try:
        searched = searches(found)
    except Exception as error:
        _log.exception("The report leaves out a search")
        searched = []
        found.problems.append(Problem("search", f"It is left out: {type(error).__name__}: {error}."))
    return {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "paths": [str(path) for path in found.paths],
        "runs": len(identity),
        "methods": {name: asdict(method) for name, method in METHODS.items()},
        "baselines": baselines(),
        "measures": {name: asdict(measure) for name, measure in MEASURES.items()},
        "coverage": [list(pair) for pair in COVERAGE.items()],
        "complete": sum(run.complete for part in grouped for run in part.runs),
        "experiments": entries,
        "details": details,
        "searches": searched,
        "together": _together(grouped),
        "sweeps": reliability(found),
        "waiting": [str(path) for path in found.waiting],
        "problems": [asdict(problem) for problem in found.problems],
    }


def _experiment(part: ExperimentRuns, identity: dict[int, int]) -> dict[str, Any]:
    config = part.config
    descriptor = config["descriptor"]
    extra = list(descriptor.get("superfluous") or {}) if descriptor.get("kind") == "noisy" else []
    box = config["domain"]["box"] | {name: descriptor["superfluous"][name] for name in extra}
    facts = {
        "domain": config["domain"].get("name"),
        "variant": config["domain"].get("variant"),
        "descriptor": descriptor.get("kind"),
        "initial tasks": config["initial"],
        "rounds": config["rounds"],
        "inducing points": config.get("model", {}).get("inducing"),
        "fit": config.get("fit", {}).get("kind"),
        "test tasks per parameter": config.get("evaluation", {}).get("grid"),
    }
    styles = group_styles([group.method for group in part.groups])
    varied = set(part.groups[0].variant)
    keys = {"domain.variant": "variant", "rounds": "rounds", "model.inducing": "inducing points", "fit.kind": "fit"}
    for key, fact in keys.items():
        if key in varied:
            facts[fact] = "varies"
    compared = _table(part)
    known = DOMAINS.get(str(config["domain"].get("name")))
    units = known.units if known else {}
    return {
        "name": part.name,
        "facts": {key: str(value) for key, value in facts.items() if value is not None},
        "parameters": [
            {"name": name, "low": low, "high": high, "unit": units.get(name)} for name, (low, high) in box.items()
        ],
        "hidden": list(descriptor.get("hidden") or []),
        "groups": [
            _group(group, identity) | {"style": style} for group, style in zip(part.groups, styles, strict=True)
        ],
        "table": compared,
        "best": _best([row for row in compared["rmse"] if _has_rounds(part.groups[row["group"]].method)]),
        "claims": [asdict(verdict) for verdict in claims(part)] if len(part.groups) <= COMPARED else [],
        "runs": [_run(run, identity, len(extra), part) for run in part.runs],
        "shots": _shots(part),
    }


def _group(group: Group, identity: dict[int, int]) -> dict[str, Any]:
    curves, info = group.curves, METHODS.get(group.method)
    measures = {}
    for measure in MEASURES:
        mean, error, count = curves.mean(measure)
        measures[measure] = {
            "mean": rounded(mean, DIGITS),
            "error": rounded(error, DIGITS),
            "count": count.tolist(),
            "seeds": rounded(curves.values[measure], DIGITS),
        }
    return {
        "label": group.label,
        "method": group.method,
        "has_rounds": _has_rounds(group.method),
        "chooses": info is not None and info.chooses,
        "variant": {key: str(value) for key, value in group.variant.items()},
        "seeds": list(curves.seeds),
        "finished": len(curves.finished()),
        "added": curves.added.tolist(),
        "measures": measures,
        "runs": [identity[id(run)] for run in group.runs],
        **stages(group),
    }


def _table(part: ExperimentRuns) -> dict[str, list[dict[str, Any]]]:
    """By error, one row per group: last error, area, differences to the baselines, which an oracle has not."""
    table: dict[str, list[dict[str, Any]]] = {measure: [] for measure in ERRORS}
    best = sorted(enumerate(part.groups), key=lambda entry: entry[1].curves.mean("rmse")[0][-1])[:COMPARED]
    for number, group in sorted(best, key=lambda entry: entry[0]):
        for measure in ERRORS:
            rows = list(group.curves.finished().values())
            values = group.curves.values[measure][rows]
            areas = area(group.curves.added, values)
            row: dict[str, Any] = {
                "group": number,
                "seeds": len(rows),
                "last": _with_error(values[:, -1]),
                "area": _with_error(areas),
            }
            for name in baselines():
                baseline = part.baseline(group, name)
                if baseline is not None and baseline is not group and _has_rounds(group.method):
                    for what, at in (("area", None), ("last", -1)):
                        difference = paired(group.curves, baseline.curves, measure, at)
                        row[f"{what}-{name}"] = None if difference is None else _rounded(asdict(difference))
            table[measure].append(row)
    return table


def _best(rows: list[dict[str, Any]]) -> int | None:
    """The group with the smallest mean error over the horizon, be it a baseline."""
    ranked = [row for row in rows if row["area"][0] is not None]
    return min(ranked, key=lambda row: row["area"][0])["group"] if ranked else None


def _together(grouped: Sequence[ExperimentRuns]) -> list[dict[str, Any]]:
    """Methods that choose against the baselines, over all experiments that have one group of each; two at least.

    Areas under the curve: RMSE relative to the baseline's mean, NLL in nats.
    """
    rows = []
    for method, name in product([name for name, info in METHODS.items() if info.chooses], baselines()):
        pairs = []
        for part in grouped:
            mine, theirs = ([g for g in part.groups if g.method == m] for m in (method, name))
            if len(mine) == len(theirs) == 1:
                pairs.append((mine[0].curves, theirs[0].curves))
        for measure in ERRORS:
            found = [pair for pair in (differences(*curves, measure) for curves in pairs) if pair is not None]
            if len(found) > 1:
                scaled = [d / abs(base) if measure.startswith("rmse") else d for d, base in found]
                row = {key: rounded(value, DIGITS) for key, value in asdict(together(scaled)).items()}
                rows.append({"method": method, "baseline": name, "measure": measure} | row)
    return rows


def _has_rounds(method: str) -> bool:
    return planned_rounds(method, 1) == 1


def _with_error(values: Any) -> list[float | None]:
    """Mean and standard error."""
    if not len(values):
        return [None, None]
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return rounded([values.mean(), error], DIGITS)


def _rounded(tree: dict[str, Any]) -> dict[str, Any]:
    return {key: rounded(value, DIGITS) if isinstance(value, float) else value for key, value in tree.items()}


def _run(run: Run, identity: dict[int, int], extra: int, part: ExperimentRuns) -> dict[str, Any]:
    """Name and chosen tasks; those of an oracle are the test tasks, which are left out."""
    parameters = len(run.config["domain"]["box"])
    tasks = [
        [record.round, *rounded([*added.task, *added.descriptor[parameters : parameters + extra]], 4)]
        for record in run.records
        for added in record.added
        if _has_rounds(run.method)
    ]
    return {
        "id": identity[id(run)],
        "name": run.name,
        "seed": run.seed,
        "group": next(number for number, group in enumerate(part.groups) if run in group.runs),
        "complete": run.complete,
        "rounds": len(run.records) - 1,
        "path": str(run.path),
        "tasks": tasks,
        "repeats": [added.repeats for record in run.records for added in record.added if _has_rounds(run.method)],
        "valid": [None if record.candidates is None else record.candidates.valid for record in run.records],
        "fallbacks": [
            record.round for record in run.records if record.candidates is not None and record.candidates.fallback
        ],
    }


def _shots(part: ExperimentRuns) -> dict[str, Any] | None:
    """Few-shot errors in the last round, mean over finished seeds, if they were recorded."""
    lines = []
    for number, group in enumerate(part.groups):
        runs = [run for run in group.runs if run.complete and run.records[-1].shots]
        if not runs:
            continue
        shots = sorted(set.intersection(*(set(run.records[-1].shots) for run in runs)))
        values = {
            measure: [[run.records[-1].shots[shot][measure] for shot in shots] for run in runs] for measure in MEASURES
        }
        summary = {
            measure: list(zip(*map(_with_error, np.array(rows).T), strict=True)) for measure, rows in values.items()
        }
        lines.append({"group": number, "shots": shots, "measures": summary})
    return {"lines": lines} if lines else None


def _details(
    grouped: list[ExperimentRuns], identity: dict[int, int], found: Collection
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Details of the first finished seed of every group, then of the second, up to `DETAILS`."""
    queue: list[tuple[int, int, Run]] = []
    for order, group in enumerate(group for part in grouped for group in part.groups):
        kept = sorted((run for run in group.runs if run.path.is_dir()), key=lambda run: not run.complete)
        queue += [(place, order, run) for place, run in enumerate(kept)]
    for *_, run in sorted(queue, key=lambda entry: entry[:2])[:DETAILS]:
        try:
            entry = run_detail_once(run)
            images = image_figures(run.path, str(run.config["descriptor"].get("kind")))
            yield str(identity[id(run)]), entry | {"image_figures": images}
        except Exception as error:  # arrays that cannot be read, a descriptor's own figures
            said = " ".join(str(error).split())
            found.problems.append(Problem(str(run.path), f"Its latent space and predictions are left out. {said}"))
