"""Scores of a model on the test tasks.

For every test task, q(h) is inferred from its whole trajectory with the model fixed. Over its T transitions and D
outputs, with predictive mean m and variance v (exact under q(h)) and a divisor s_d per output:

    rmse = sqrt( 1/(T D) Σ_td ((y_td − m_td) / s_d)² )
    nll  = − 1/(T D) Σ_td log N(y_td / s_d; m_td / s_d, v_td / s_d²)            nats per observed number

`nll` is the predictive density, not E_q[log p(y | f)]. For `rmse` and `nll` the divisor is the standard deviation of
the test outputs, the same for all rounds and methods of a seed; for `rmse_paper` and `nll_paper` it is that of the
training outputs, as in the authors' code.

`coverage` is the share of the T D outputs within 1.96 standard deviations of their prediction: 0.95 if the model is
calibrated.

Few-shot: q(h) is inferred from the first k transitions and the remaining ones are scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from distpaml.data import Dataset, Divisors, Standardiser
from distpaml.model.device import CPU
from distpaml.model.meta_model import MetaModel
from distpaml.types import Array

INTERVAL = 1.96
"""Standard deviations on either side that hold 95 % of a normal distribution."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Errors under both divisors and the coverage, one number per test task [N]."""

    rmse: Array
    nll: Array
    rmse_paper: Array
    nll_paper: Array
    coverage: Array

    @classmethod
    def joined(cls, parts: Sequence["Scores"]) -> "Scores":
        """The scores of all parts, in order."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def summary(self) -> dict[str, float]:
        """One number per entry of `distpaml.catalogue.MEASURES`: means, medians and the worst task's coverage."""
        measures = {field.name: getattr(self, field.name) for field in fields(self)}
        means = {name: float(np.mean(values)) for name, values in measures.items()}
        medians = {f"{name}_median": float(np.median(measures[name])) for name in means if name != "coverage"}
        return means | medians | {"coverage_worst": float(self.coverage.min())}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One round's model on the test tasks."""

    scores: Scores
    mean: Array  # [N, Q], of q(h) from the whole trajectory
    variance: Array  # [N, Q]
    ratio: Array  # [N], noise ratios
    shots: dict[int, Scores]
    """Few-shot scores by the number of observed transitions."""

    @classmethod
    def joined(cls, parts: Sequence["Evaluation"]) -> "Evaluation":
        """The evaluation of all parts, in order."""
        return cls(
            Scores.joined([part.scores for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.variance for part in parts]),
            np.concatenate([part.ratio for part in parts]),
            {shot: Scores.joined([part.shots[shot] for part in parts]) for shot in parts[0].shots},
        )


def evaluate(model: MetaModel, divisors: Divisors, test: Dataset, steps: int, shots: Sequence[int] = ()) -> Evaluation:
    """Score `model` on `test` without changing it."""
    latents = model.infer(test, steps).to(CPU)
    scores = score(*model.predict(test.inputs, latents), test, divisors)
    few = {}
    for shot in shots:
        prediction = model.predict(test.inputs, model.infer(test.first(shot), steps))
        few[shot] = score(*prediction, test, divisors, after=shot)
    return Evaluation(scores, latents.mean.numpy(), latents.variance.numpy(), latents.ratio.numpy(), few)


def score(mean: Array, variance: Array, test: Dataset, divisors: Divisors, after: int = 0) -> Scores:
    """Score predictions with `mean` and `variance` [N, T, D] on the valid transitions from `after` on."""
    counted = test.valid & (np.arange(test.inputs.shape[1]) >= after)  # [N, T]
    error = test.targets - mean
    nll = 0.5 * (np.log(2.0 * np.pi * variance) + error**2 / variance).sum(axis=-1)  # [N, T], of all D outputs
    outputs = test.targets.shape[-1]

    def average(values: Array) -> Array:
        return np.where(counted, values, 0.0).sum(axis=1) / counted.sum(axis=1)

    def measures(divisor: Standardiser) -> tuple[Array, Array]:
        squares = divisor.errors(error) ** 2
        return np.sqrt(average(squares.mean(axis=-1))), average(divisor.nll(nll)) / outputs

    within = (np.abs(error) < INTERVAL * np.sqrt(variance)).mean(axis=-1)  # [N, T]
    return Scores(*measures(divisors.fair), *measures(divisors.paper), average(within))
