"""What a run's model has learned: its latent space, its predictions for test tasks, and rollouts.

Everything comes from the run's directory: embeddings by round, the newest model, and test tasks simulated again.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata

from distpaml.catalogue import METHODS
from distpaml.config import ExperimentConfig
from distpaml.data import Dataset
from distpaml.data.designs import grid
from distpaml.data.tasks import TaskSet
from distpaml.domains.box import bounds
from distpaml.model.meta_model import MetaModel
from distpaml.model.posterior import Latents
from distpaml.model.rollouts import rollout
from distpaml.records import data_of, read_arrays, read_model
from distpaml.report.collect import Run
from distpaml.report.kinematics import Look, look_of
from distpaml.report.packing import packed, rounded
from distpaml.runtime.local import LocalSimulator
from distpaml.select.candidates import Candidates, placing
from distpaml.select.context import Embedded, SelectionContext
from distpaml.select.references import reference_descriptors
from distpaml.select.scoring import UtilityScorer
from distpaml.select.surprisal import surprisal
from distpaml.types import Array

SHOWN = 8
"""Test tasks whose predictions are shown."""
ROLLOUTS, FRAMES, SAMPLES = 3, 10, 12
"""Rollouts of a run, frames of a rollout, and sampled futures in a frame."""
SECONDS, LONGEST = 2.5, 40
"""Length of a rollout, and its most steps."""
CELLS = 44
"""Cells of the utility surface along each axis."""


def run_detail(run: Run) -> dict[str, Any]:
    """Latents, predictions and rollouts as plain values; `lacking` says why some are absent."""
    arrays = [read_arrays(run.path, record.round) for record in run.records]
    found: dict[str, Any] = {"latent": _latent(run, arrays)}
    try:
        config = ExperimentConfig.from_yaml(run.path / "config.yaml")
        model = read_model(run.path, run.records[-1].round)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            found["latent"]["surfaces"][-1] = _surface(config, model, arrays, found["latent"])
            found |= _tests(config, model, arrays[-1])
        finally:
            torch.set_num_threads(threads)
    except Exception as error:  # a domain that cannot be imported here, a run that is still going, …
        found["lacking"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return found


def _latent(run: Run, arrays: list[dict[str, Any]]) -> dict[str, Any]:
    """q(h) of all tasks after every round, in the two dimensions where they spread most."""
    last = arrays[-1]["embedding_mean"]
    dimensions = sorted(np.argsort(-np.ptp(last, axis=0), kind="stable")[:2].tolist())
    means = [part["embedding_mean"][:, dimensions] for part in arrays]
    spreads = [np.sqrt(part["embedding_variance"][:, dimensions]) for part in arrays]
    everything = np.concatenate([*means, arrays[-1]["test_mean"][:, dimensions]])
    low, high = everything.min(axis=0), everything.max(axis=0)
    margin = 0.12 * np.maximum(high - low, 1e-6)
    low, high = low - margin, high + margin
    chosen = [[added.latent for added in record.added] for record in run.records]
    method = METHODS.get(run.method)
    utility = run.config.get("selection", {}).get("utility") or (method and method.utility)
    plane = last.shape[1] == 2 and utility == "surprisal"
    return {
        "dimensions": dimensions,
        "of": int(last.shape[1]),
        "low": rounded(low),
        "high": rounded(high),
        "mean": [rounded(mean) for mean in means],
        "spread": [rounded(spread) for spread in spreads],
        "chosen": [
            [None if latent is None else rounded(np.array(latent)[dimensions]) for latent in latents]
            for latents in chosen
        ],
        "test": rounded(arrays[-1]["test_mean"][:, dimensions]),
        "test_tasks": rounded(_test_parameters(run, len(arrays[-1]["test_mean"]))),
        "surfaces": [_surprisal(part, low, high) if plane else None for part in arrays],
        "utility": utility,
    }


def _test_parameters(run: Run, count: int) -> Array:
    """The grid of test tasks, from the box alone; empty if the run has other test tasks."""
    box = {name: (float(low), float(high)) for name, (low, high) in run.config["domain"]["box"].items()}
    tasks = grid(*bounds(box), int(run.config["evaluation"]["grid"]))
    return tasks if len(tasks) == count else np.empty((0, len(box)))


def _points(low: Array, high: Array) -> Array:
    """Centres of the cells [CELLS², 2], rows from low to high in the second dimension."""
    middle = (np.arange(CELLS) + 0.5) / CELLS
    x, y = np.meshgrid(low[0] + middle * (high[0] - low[0]), low[1] + middle * (high[1] - low[1]))
    return np.stack([x.ravel(), y.ravel()], axis=1)


def _surprisal(arrays: dict[str, Any], low: Array, high: Array) -> dict[str, Any]:
    """Surprisal over the plane, given the embeddings of one round; it needs no model."""
    context = Embedded(arrays["embedding_mean"], arrays["embedding_variance"])
    return _shades(surprisal(Candidates.at(_points(low, high)), context))


def _surface(
    config: ExperimentConfig, model: MetaModel, arrays: list[dict[str, Any]], latent: dict[str, Any]
) -> dict[str, Any] | None:
    """The utility of the next choice under the newest model, and where the decoded descriptor is valid."""
    if latent["of"] != 2:
        return None
    data = Dataset.concatenate([data_of(part) for part in arrays])
    points = _points(np.array(latent["low"]), np.array(latent["high"]))
    task_set = TaskSet(config)
    descriptor = task_set.descriptor
    decoded = model.decode(points)[0]
    valid = ((decoded >= descriptor.low) & (decoded <= descriptor.high)).all(axis=1)
    references = placing(model, descriptor.low, descriptor.high)(reference_descriptors(task_set))
    context = SelectionContext.of(model, data, references, descriptor.low, descriptor.high)
    cells = Candidates(decoded, points, np.zeros_like(points), len(points))
    return _shades(UtilityScorer(config.utility).scores(cells, context)) | {
        "valid": packed(valid.astype(float), bits=8)
    }


def _shades(utility: Array) -> dict[str, Any]:
    """The rank of every cell in [0, 1], since surprisal spans many orders of magnitude."""
    return {
        "shade": packed(rankdata(utility) / len(utility), bits=8),
        "low": float(f"{utility.min():.4g}"),
        "high": float(f"{utility.max():.4g}"),
    }


def _tests(config: ExperimentConfig, model: MetaModel, arrays: dict[str, Any]) -> dict[str, Any]:
    """Predictions for some test tasks, spread evenly over the grid, and rollouts of a few of these."""
    task_set, simulator = TaskSet(config), LocalSimulator(config)
    tasks = task_set.test()
    rows = np.unique(np.linspace(0, len(tasks) - 1, SHOWN).round().astype(int))
    some = tasks.take(rows)
    test = simulator.simulate(some).result()
    like = model.embeddings.mean
    latents = Latents(
        *(torch.as_tensor(arrays[f"test_{part}"][rows]).to(like) for part in ("mean", "variance", "ratio"))
    )
    predicted, spread = model.predict(test.inputs, latents)
    names = [task_set.domain.describe(task) for task in some.parameters]
    predictions = {
        "tasks": names,
        "states": list(task_set.domain.states),
        "dt": task_set.domain.dt,
        "rmse": rounded(arrays["test_rmse"][rows]),
        "true": packed(test.targets),
        "mean": packed(predicted),
        "deviation": packed(np.sqrt(spread)),
        "shape": list(test.targets.shape),
    }
    if (look := look_of(task_set.domain, some.starts[0])) is None:
        return {"predictions": predictions}
    shown = np.unique(np.linspace(0, len(rows) - 1, ROLLOUTS).round().astype(int))
    steps = min(round(SECONDS / task_set.domain.dt), LONGEST, len(simulator.signal))
    rollouts = []
    for row in shown:
        one, start = latents.take(slice(row, row + 1)), some.starts[row]
        sampled = rollout(model, start, simulator.signal[:steps], one, simulator.angles, SAMPLES, seed=0)
        true = start + np.vstack([np.zeros_like(start), np.cumsum(test.targets[row, :steps], axis=0)])
        strip = _strip(look, true, sampled, some.parameters[row], task_set.domain.dt)
        rollouts.append({"task": names[row]} | strip)
    return {"predictions": predictions, "rollouts": rollouts}


def _strip(look: Look, true: Array, sampled: Array, parameters: Array, dt: float) -> dict[str, Any]:
    """Joints in some frames of a true trajectory [T, S] and of sampled ones [N, T, S], seen from the true cart."""
    frames = np.linspace(0, len(true) - 1, FRAMES).round().astype(int)
    moved, guessed = (look.points(states, parameters) for states in (true[frames], sampled[:, frames]))
    centre = look.centre(moved)[:, None]
    return {
        "cart": look.cart,
        "times": rounded(frames * dt),
        "reach": look.reach(moved),
        "true": rounded(moved - centre, 3),
        "samples": rounded(np.clip(guessed - centre, -1e3, 1e3).swapaxes(0, 1), 3),
    }


_KEPT: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}


def run_detail_once(run: Run) -> dict[str, Any]:
    """`run_detail`, cached until the run has another round: a live page is made again and again."""
    state = (run.path / "records.jsonl").stat()
    stamp = state.st_mtime_ns, state.st_size
    if _KEPT.get(run.path, (None, {}))[0] != stamp:
        _KEPT[run.path] = stamp, run_detail(run)
    return _KEPT[run.path][1]
