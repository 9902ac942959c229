"""A search: its samples, the importance of its keys, and the best configuration."""

import json
from collections import defaultdict
from typing import Any

import numpy as np

from distpaml.config.load import leaves
from distpaml.report.collect import Collection, Run, Sweep
from distpaml.report.groups import sample
from distpaml.report.packing import rounded

FEWEST = 8
"""Fewest samples for an estimate of importance."""
IMPORTANCE = "share of the objective's variance that a key explains alone (fANOVA of a random forest, by optuna)"


def searches(found: Collection) -> list[dict[str, Any]]:
    """One entry for every search that has a sample."""
    entries = []
    for sweep in found.sweeps:
        asked = sweep.asked.get("search")
        if isinstance(asked, dict) and isinstance(asked.get("space"), dict):
            runs = [run for run in found.runs if run.sweep is sweep]
            if entry := _search(sweep, asked, runs):
                entries.append(entry)
    return entries


def _search(sweep: Sweep, asked: dict[str, Any], runs: list[Run]) -> dict[str, Any] | None:
    objective, mode = str(asked.get("objective", "rmse")), str(asked.get("mode", "min"))
    space = [str(key) for key in asked["space"]]
    members: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if name := sample(run):
            members[name].append(run)
    samples = []
    for name, trials in sorted(members.items()):
        last = (
            min(len(run.records) for run in trials) - 1
        )  # that all have: some may have been stopped before the others
        scores = [float(getattr(run.records[last], objective, np.nan)) for run in trials]
        if not np.isfinite(scores).all():
            continue
        config = dict(leaves(trials[0].config))
        complete = all(run.complete for run in trials)
        samples.append(
            {
                "name": name,
                "values": [_value(config.get(key)) for key in space],
                "objective": rounded(np.mean(scores), 6),
                "seeds": len(trials),
                "complete": complete,
            }
        )
    if not samples:
        return None
    sign = -1.0 if mode == "max" else 1.0
    finished = [entry for entry in samples if entry["complete"]] or samples
    best = min(finished, key=lambda entry: sign * entry["objective"])
    logarithmic = [bool(isinstance(given, dict) and given.get("log")) for given in asked["space"].values()]
    importance, said = _importance(space, logarithmic, finished)
    text = (members[best["name"]][0].path / "config.yaml").read_text(encoding="utf-8")
    return {
        "name": str(sweep.asked.get("name") or sweep.path.name),
        "runs": sorted({run.experiment for run in runs}),
        "objective": objective,
        "mode": mode,
        "space": space,
        "log": logarithmic,
        "samples": samples,
        "best": best["name"],
        "yaml": text,
        "importance": importance,
        "importance_is": said,
    }


def _value(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value).strip('"')


def _importance(
    space: list[str], logarithmic: list[bool], samples: list[dict[str, Any]]
) -> tuple[list[list[Any]], str]:
    columns = list(zip(*(entry["values"] for entry in samples), strict=True))
    varied = {key: values for key, values in zip(space, columns, strict=True) if len(set(map(str, values))) > 1}
    if len(samples) < FEWEST or not varied:
        return [], f"There are {len(samples)} finished samples; importance is shown from {FEWEST} on."
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions: dict[str, BaseDistribution] = {}
    for key, values in varied.items():
        if all(isinstance(value, int | float) for value in values):
            low, high = float(min(values)), float(max(values))
            distributions[key] = FloatDistribution(low, high, log=logarithmic[space.index(key)] and low > 0)
        else:
            distributions[key] = CategoricalDistribution(sorted(set(map(str, values))))
    study = optuna.create_study()
    for row, entry in enumerate(samples):
        parameters = {
            key: float(values[row]) if isinstance(distributions[key], FloatDistribution) else str(values[row])
            for key, values in varied.items()
        }
        study.add_trial(optuna.create_trial(params=parameters, distributions=distributions, value=entry["objective"]))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return [[key, rounded(value, 4)] for key, value in found.items()], f"Importance: {IMPORTANCE}."
