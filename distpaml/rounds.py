"""A finished round: a record of plain values, its arrays and its model."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict

from distpaml.data import Dataset
from distpaml.data.tasks import Tasks
from distpaml.evaluate import Evaluation
from distpaml.futures import Future
from distpaml.model.meta_model import MetaModel
from distpaml.select.calibration import foreseen_errors
from distpaml.select.methods import CandidateCounts, Selection
from distpaml.versions import versions

DATA = ("inputs", "targets", "counts", "descriptors")
"""The arrays of a `Dataset`."""
PRIOR_SAMPLES = 8


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Added(_Plain):
    """A task that a round added."""

    descriptor: tuple[float, ...]
    task: tuple[float, ...]
    """Its true parameters, hidden ones included."""
    latent: tuple[float, ...] | None = None
    """Latent of the chosen candidate, if candidates were ranked."""
    utility: float | None = None
    foreseen: tuple[float, ...] | None = None
    """How far from that latent its data put it, in standard deviations: see `distpaml.select.calibration`."""
    repeats: int | None = None
    """Number of the known task that it nearly repeats, if it does: see `distpaml.select.repeats`."""


class Record(_Plain):
    """One round in plain values: one line of `records.jsonl`. Measures are those of `distpaml.evaluate`."""

    round: int
    """Round 0 is the model of the initial tasks, before any choice."""
    tasks: int
    """Tasks that the model was fitted to, including those of this round."""
    added: tuple[Added, ...]
    candidates: CandidateCounts | None
    """None if candidates were not ranked."""
    rmse: float
    nll: float
    rmse_paper: float
    nll_paper: float
    rmse_median: float
    nll_median: float
    rmse_paper_median: float
    nll_paper_median: float
    coverage: float
    """Share of the test outputs inside their 95 % interval."""
    coverage_worst: float
    """The smallest coverage of any test task."""
    shots: Mapping[int, Mapping[str, float]]
    """Few-shot scores under the same names, by the number of observed transitions."""
    terms: Mapping[str, float]
    """The model's bound and its terms."""
    start: str
    """The start that won: last, opened, scratch, random-1, …"""
    seconds: Mapping[str, float]
    """Seconds spent in each stage, waiting included; everything else is the same in every run of a config."""
    device: str = "cpu"
    """Where the model was fitted: `cpu`, or the name of the GPU, which may change a result by rounding."""
    versions: Mapping[str, str] = {}
    """Of the code that made the round: see `distpaml.versions`; empty if a record has none."""

    def result(self) -> dict[str, Any]:
        """Everything but times, device and versions: what two runs of one config agree on."""
        return self.model_dump(exclude={"seconds", "device", "versions"})


@dataclass(frozen=True, eq=False)
class State:
    """Everything that the next round needs."""

    data: Dataset
    model: MetaModel
    finished: int
    """Finished rounds, round 0 included."""


@dataclass(frozen=True, eq=False)
class Round:
    """Everything about one finished round."""

    record: Record
    tasks: Tasks
    data: Dataset
    """Of this round's new tasks."""
    model: MetaModel
    evaluation: Evaluation

    @classmethod
    def of(
        cls,
        number: int,
        selection: Selection,
        tasks: Tasks,
        data: Dataset,
        model: MetaModel,
        evaluation: Future[Evaluation],
        stage: "Stopwatch",
        last: MetaModel | None,
    ) -> "Round":
        """`last` is the model that made the selection."""
        with stage("evaluate"):
            evaluated = evaluation.result()
            foreseen = None
            if last is not None and selection.latents is not None and selection.variances is not None:
                foreseen = foreseen_errors(last, data, selection.latents, selection.variances)
        rows = zip(tasks.descriptors, tasks.parameters, strict=True)
        added = [
            Added(
                descriptor=tuple(descriptor.tolist()),
                task=tuple(task.tolist()),
                latent=None if selection.latents is None else tuple(selection.latents[i].tolist()),
                utility=None if selection.utilities is None else float(selection.utilities[i]),
                foreseen=None if foreseen is None else tuple(foreseen[i].tolist()),
                repeats=None if selection.repeats is None else selection.repeats[i],
            )
            for i, (descriptor, task) in enumerate(rows)
        ]
        record = Record(
            round=number,
            tasks=len(model.embeddings),
            added=tuple(added),
            candidates=selection.counts,
            shots={shot: scores.summary() for shot, scores in evaluated.shots.items()},
            terms=dict(model.terms),
            start=model.start,
            seconds=stage.seconds,
            device=model.fitted_on,
            versions=dict(versions()),
            **evaluated.scores.summary(),
        )
        return cls(record, tasks, data, model, evaluated)

    def arrays(self) -> dict[str, Any]:
        """What is kept of the round beside its record and its model, by name."""
        embeddings, evaluation = self.model.embeddings, self.evaluation
        return {
            "parameters": self.tasks.parameters,
            **{name: getattr(self.data, name) for name in DATA},
            **_image_arrays(self.model, first=self.record.round == 0),
            "embedding_mean": embeddings.mean.numpy(),
            "embedding_variance": embeddings.variance.numpy(),
            "embedding_ratio": embeddings.ratio.numpy(),
            "test_mean": evaluation.mean,
            "test_variance": evaluation.variance,
            "test_ratio": evaluation.ratio,
            **{f"test_{name}": values for name, values in vars(evaluation.scores).items()},
            **{
                f"shots{k}_{name}": values
                for k, scores in evaluation.shots.items()
                for name, values in vars(scores).items()
            },
        }


def _image_arrays(model: MetaModel, first: bool) -> dict[str, Any]:
    """Where the network puts every image, and samples from its prior; the images themselves in the first round."""
    if (vae := model.image_vae) is None:
        return {}
    with torch.no_grad():
        encoded = vae.encoded()
    arrays = {
        "image_mean": encoded.mean.numpy(),
        "image_variance": encoded.log_variance.exp().numpy(),
        "prior_samples": vae.samples(PRIOR_SAMPLES, seed=0).numpy().astype(np.float16),
        "image_labels": vae.labels.numpy(),
    }
    return arrays | ({"images": vae.images.numpy().astype(np.float16)} if first else {})


class Stopwatch:
    """Adds up the seconds of each stage of a round; `watch` is called when a stage begins."""

    def __init__(self, watch: Callable[[str], None]) -> None:
        self.watch = watch
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        self.watch(stage)
        begin = perf_counter()
        yield
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + perf_counter() - begin, 4)
