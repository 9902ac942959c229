"""Curves over seeds, and differences between methods on the same seeds.

A curve is a measure against added tasks. With a value e(s, k) for seed s after k added tasks:

    mean(k) ± standard error        over the seeds that got that far
    area(s) = 1/K ∫_0^K e(s, k) dk  by trapezoids: the mean error over the horizon K
    difference(s) = area(s, method) − area(s, baseline)     on the seeds that both have finished

The interval of a mean difference is a bootstrap over seeds (bias-corrected and accelerated, nominally 95 %). Of what is
no mean, such as a ratio of spreads, it is the range of the middle 95 % of draws of the seeds.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import bootstrap

from distpaml.catalogue import MEASURES
from distpaml.report.aggregate import FEWEST, RESAMPLES, sign_test
from distpaml.report.collect import Run
from distpaml.types import Array

COVERAGE = {3: 0.72, 5: 0.84, 10: 0.90, 20: 0.93}
"""How often a 95 % interval of so many normal differences contains the true mean, from 1500 simulations each."""


@dataclass(frozen=True, eq=False)
class Curves:
    """All seeds of a group of runs: one method in one variant of an experiment."""

    seeds: tuple[int, ...]
    added: Array  # [K]
    values: dict[str, Array]
    """By measure [S, K]; NaN for rounds that a run has not reached."""

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Curves":
        added = sorted({count for run in runs for count in run.added})
        column = {count: k for k, count in enumerate(added)}
        values = {measure: np.full((len(runs), len(added)), np.nan) for measure in MEASURES}
        for row, run in enumerate(runs):
            for count, record in zip(run.added, run.records, strict=True):
                for measure in MEASURES:
                    values[measure][row, column[count]] = getattr(record, measure)
        return cls(tuple(run.seed for run in runs), np.array(added, float), values)

    def mean(self, measure: str) -> tuple[Array, Array, Array]:
        """Mean, standard error (NaN for a single seed) and number of seeds [K] each."""
        values = self.values[measure]
        count = np.isfinite(values).sum(axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # one seed has no standard error
            return np.nanmean(values, axis=0), np.nanstd(values, axis=0, ddof=1) / np.sqrt(count), count

    def finished(self) -> dict[int, int]:
        """Rows of the seeds that reached the end of the horizon, by seed."""
        complete = np.flatnonzero(np.isfinite(next(iter(self.values.values()))).sum(axis=1) == len(self.added))
        return {self.seeds[row]: int(row) for row in complete}


def on_common_seeds(*curves: Curves) -> list[Curves]:
    """The same curves [S, K], of the seeds that all of them have finished, in the same order."""
    rows = [part.finished() for part in curves]
    seeds = sorted(set.intersection(*map(set, rows)))
    return [
        replace(
            part,
            seeds=tuple(seeds),
            values={measure: values[[row[seed] for seed in seeds]] for measure, values in part.values.items()},
        )
        for part, row in zip(curves, rows, strict=True)
    ]


def area(added: Array, values: Array) -> Array:
    """The mean of curves [..., K] over the horizon [...]."""
    if len(added) == 1:
        return values[..., 0]
    return np.trapezoid(values, added, axis=-1) / (added[-1] - added[0])


@dataclass(frozen=True)
class Difference:
    """A method minus a baseline, on common seeds; below zero is better."""

    seeds: int
    mean: float
    low: float | None
    high: float | None
    wins: int
    """Seeds on which the method is better."""
    relative: float
    """The mean difference relative to the baseline's mean."""
    p: float
    """Of the sign test over the seeds."""


def differences(mine: Curves, theirs: Curves, measure: str, at: int | None = None) -> tuple[Array, float] | None:
    """Method minus baseline on every seed that both finished [S], and the baseline's mean; None without such a seed.

    Of the areas over the common horizon, or of the errors in round `at` of it (-1: the last).
    """
    common = np.intersect1d(mine.added, theirs.added)
    a, b = mine.finished(), theirs.finished()
    seeds = sorted(a.keys() & b.keys())
    if not seeds or len(common) <= (at or 0):
        return None
    values = []
    for curves, rows in ((mine, a), (theirs, b)):
        chosen = curves.values[measure][[rows[seed] for seed in seeds]][:, np.isin(curves.added, common)]
        values.append(area(common, chosen) if at is None else chosen[:, at])
    return values[0] - values[1], float(values[1].mean())


def paired(mine: Curves, theirs: Curves, measure: str, at: int | None = None) -> Difference | None:
    """The mean of `differences`, with its interval and the sign test."""
    if (found := differences(mine, theirs, measure, at)) is None:
        return None
    difference, base = found
    low, high = interval(difference)
    mean, wins = float(difference.mean()), int((difference < 0).sum())
    relative = mean / abs(base) if base else float("nan")
    return Difference(len(difference), mean, low, high, wins, relative, sign_test(difference))


def interval(values: Array) -> tuple[float | None, float | None]:
    """A 95 % bootstrap interval of the mean; none for fewer than three values."""
    if len(values) < FEWEST:
        return None, None
    if np.ptp(values) == 0.0:
        return float(values[0]), float(values[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # degenerate jackknife distributions: the fallback below
        for method in ("BCa", "percentile"):
            found = bootstrap((values,), np.mean, method=method, rng=np.random.default_rng(0), n_resamples=4999)
            low, high = found.confidence_interval
            if np.isfinite([low, high]).all():
                return float(low), float(high)
    return None, None


def needed(added: Array, values: Array, level: Array | float) -> Array:
    """Added tasks until curves [..., K] first reach a level [...]; infinite where they never do."""
    below = values <= np.asarray(level)[..., None]
    return np.where(below.any(axis=-1), added[below.argmax(axis=-1)], np.inf)


def redrawn(*values: Array) -> list[Array]:
    """Curves [S, K] of the same seeds, for many draws of S seeds with replacement: [draws, S, K] each."""
    seeds = len(values[0])
    drawn = np.random.default_rng(0).integers(seeds, size=(RESAMPLES, seeds))
    return [part[drawn] for part in values]


def middle(values: Array) -> tuple[float, float]:
    """The range of the middle 95 % of values that may be infinite; what is undefined does not count."""
    defined = values[~np.isnan(values)]
    low, high = np.quantile(defined, [0.025, 0.975], method="inverted_cdf") if len(defined) else (np.nan, np.nan)
    return float(low), float(high)
