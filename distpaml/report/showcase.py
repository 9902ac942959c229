"""What the paper's figures show of single runs, in small files: `python -m distpaml.report.showcase SWEEP… --out DIR`.

Of every experiment, preset and method that chooses, the finished run of the smallest seed becomes
`EXPERIMENT-PRESET-METHOD.npz`, with N tasks after R rounds, Q latent dimensions and E descriptors:

    round [N], tasks [N, P], descriptors [N, E]   in the order of choices; round 0 has the initial tasks
    low, high [E], parameters [P], names [E]      the box of descriptors, and what the columns are
    mean, variance [R, N, Q]                      q(h) after every round; NaN for tasks that came later
    axes [2, C], decoded [C, C, E]                the descriptor that the last model decodes from a plane of latents
    images [I, H, W], image_round [I]             images to choose from, and the round that chose each, or −1
    test [K, P], truth, before, after [K, T, D], before_sd, after_sd, states [D], dt
                                                  some test tasks, and predictions of the first and the last model

A run keeps its newest model only; the first one is fitted again, to the same data with the same seed.
"""

import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from distpaml.catalogue import METHODS
from distpaml.command_line import Parser, say
from distpaml.config import ExperimentConfig
from distpaml.data.tasks import TaskSet
from distpaml.durable_io import read_regular, write_durably
from distpaml.errors import UserError, printable
from distpaml.model.meta_model import MetaModel
from distpaml.records import read_arrays, read_data, read_model
from distpaml.report.archive import file_name
from distpaml.report.collect import Run, collect
from distpaml.runtime.local import LocalSimulator, LocalTrainer

SHOWN = 4
"""Test tasks whose predictions are kept."""
CELLS = 60
"""Latents along each axis of the decoded plane."""

Arrays = dict[str, Any]


def showcase(run: Run) -> Arrays:
    """The arrays above; those of images, or of the decoder, only if the run has them."""
    config = ExperimentConfig.from_yaml(run.path / "config.yaml")
    rounds = [read_arrays(run.path, record.round) for record in run.records]
    model, task_set = read_model(run.path, run.records[-1].round), TaskSet(config)
    chosen = [(record.round, added) for record in run.records for added in record.added]
    return {
        "experiment": run.experiment,
        "preset": config.model.preset,
        "method": run.method,
        "seed": run.seed,
        "round": np.array([number for number, _ in chosen]),
        "tasks": np.array([added.task for _, added in chosen]),
        "descriptors": np.array([added.descriptor for _, added in chosen]),
        "parameters": np.array(list(config.domain.box)),
        "names": np.array(_names(config)),
        "low": task_set.descriptor.low,
        "high": task_set.descriptor.high,
        "mean": _padded([part["embedding_mean"] for part in rounds]),
        "variance": _padded([part["embedding_variance"] for part in rounds]),
        **(_images(rounds[0], chosen) if model.image_vae else _decoder(config, model)),
        **_predictions(config, task_set, LocalTrainer(config).fit(read_data(run.path, 0), 0, None, None), model),
    }


def write_showcases(sources: Sequence[Path], out: Path) -> Iterator[Path]:
    """A file per experiment, preset and method that chooses."""
    found = collect(sources)
    finished = [run for run in found.runs if run.complete and run.path.is_dir()]
    choosing = [run for run in finished if run.method in METHODS and METHODS[run.method].chooses]
    if not choosing:
        raise UserError(f"{', '.join(map(str, sources))} has no finished run of a method that chooses.")
    first: dict[str, Run] = {}
    for run in sorted(choosing, key=lambda run: run.seed):
        preset = run.config.get("model", {}).get("preset", "distpaml")
        first.setdefault(file_name(f"{run.experiment}-{preset}-{run.method}"), run)
    out.mkdir(parents=True, exist_ok=True)
    for name, run in sorted(first.items()):
        buffer = BytesIO()
        np.savez_compressed(
            buffer, allow_pickle=False, **{key: _compact(value) for key, value in showcase(run).items()}
        )
        write_durably(out / f"{name}.npz", buffer.getvalue())
        yield out / f"{name}.npz"


def read_showcase(path: Path) -> Arrays:
    """The arrays of one file."""
    try:
        with np.load(BytesIO(read_regular(path)), allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _names(config: ExperimentConfig) -> list[str]:
    """What the columns of a descriptor are."""
    observed = [name for name in config.domain.box if name not in config.descriptor.hidden]
    return [*observed, *config.descriptor.superfluous]


def _padded(parts: Sequence[Any]) -> Any:
    """Arrays [N_r, Q] of growing length as one [R, N, Q]."""
    stacked = np.full((len(parts), *parts[-1].shape), np.nan)
    for row, part in zip(stacked, parts, strict=True):
        row[: len(part)] = part
    return stacked


def _images(first: Arrays, chosen: Sequence[tuple[int, Any]]) -> Arrays:
    rounds = {added.descriptor: number for number, added in chosen}
    return {
        "images": np.round(255 * first["images"].astype(float)).astype(np.uint8),
        "image_round": np.array([rounds.get(tuple(label), -1) for label in first["image_labels"].tolist()]),
    }


def _decoder(config: ExperimentConfig, model: MetaModel) -> Arrays:
    """The plane in which `paml` looks for its next task: the embeddings, and a slack around them."""
    embeddings, slack = model.embeddings.mean.numpy(), config.selection.slack
    if embeddings.shape[1] != 2:
        return {}
    axes = np.linspace(embeddings.min(axis=0) - slack, embeddings.max(axis=0) + slack, CELLS).T  # [2, C]
    points = np.stack(np.meshgrid(*axes, indexing="xy"), axis=-1)  # [C, C, 2], rows along the second axis
    return {"axes": axes, "decoded": model.decode(points.reshape(-1, 2))[0].reshape(CELLS, CELLS, -1)}


def _predictions(config: ExperimentConfig, task_set: TaskSet, first: MetaModel, last: MetaModel) -> Arrays:
    tasks = task_set.test()
    rows = np.unique(np.linspace(0, len(tasks) - 1, SHOWN).round().astype(int))
    some = tasks.take(rows)
    test = LocalSimulator(config).simulate(some).result()
    arrays = {
        "test": some.parameters,
        "truth": test.targets,
        "states": np.array(task_set.domain.states),
        "dt": task_set.domain.dt,
    }
    for name, model in (("before", first), ("after", last)):
        mean, variance = model.predict(test.inputs, model.infer(test, config.evaluation.inference_steps))
        arrays |= {name: mean, f"{name}_sd": np.sqrt(variance)}
    return arrays


def _compact(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m distpaml.report.showcase", description="What the paper's figures show of single runs."
    )
    parser.add_argument("sources", nargs="+", type=Path, metavar="DIR", help="a sweep, a run, or a folder of them")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write")
    options = parser.parse_args(arguments)
    try:
        for path in write_showcases(options.sources, options.out):
            say(f"{path}: {path.stat().st_size / 1000:.0f} kB")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(printable(f"error: {options.out} cannot be written: {error.strerror or error}."), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
