"""All experiments together: is a method better than a baseline, over experiments and seeds?

d(e, s) is a paired difference in experiment e with seed s, below zero if the method is better.

    interquartile mean         the mean of the middle half of all d: neither one lucky seed nor one experiment decides
    probability of improvement the share of seeds on which the method is better, ties by half, averaged over experiments
    interval                   a stratified bootstrap: seeds are drawn anew within every experiment, never between them

Reference: Agarwal et al. 2021, Deep reinforcement learning at the edge of the statistical precipice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, trim_mean

from distpaml.types import Array

RESAMPLES = 4999
FEWEST = 3
"""Fewest seeds of an experiment for an interval."""
Statistic = Callable[[Sequence[Array]], Array]
"""Of the differences [..., S_e] of every experiment e."""


@dataclass(frozen=True)
class Together:
    """A method against a baseline in one measure, over several experiments; intervals are 95 % ones."""

    experiments: int
    seeds: int
    """Pairs of runs in all."""
    middle: tuple[float, float, float]
    """Interquartile mean of the differences, with its interval, which is NaN if an experiment has too few seeds."""
    better: tuple[float, float, float]
    """Probability of improvement, likewise."""
    p: float
    """Of the sign test over all pairs: how often a coin would be as one-sided."""


def together(differences: Sequence[Array]) -> Together:
    """From the paired differences [S_e] of every experiment e, each of at least one seed."""
    return Together(
        experiments=len(differences),
        seeds=sum(len(d) for d in differences),
        middle=with_interval(interquartile_mean, differences),
        better=with_interval(probability_of_improvement, differences),
        p=sign_test(np.concatenate(list(differences))),
    )


def interquartile_mean(differences: Sequence[Array]) -> Array:
    """The mean of the middle half of all values [...]."""
    return np.asarray(trim_mean(np.concatenate(list(differences), axis=-1), 0.25, axis=-1))


def probability_of_improvement(differences: Sequence[Array]) -> Array:
    """The chance that the method is better on a random seed of a random experiment [...]."""
    return np.mean([np.mean((d < 0.0) + 0.5 * (d == 0.0), axis=-1) for d in differences], axis=0)


def sign_test(differences: Array) -> float:
    """The two-sided p-value of as many wins among the differences, without ties, if each were a fair coin."""
    wins, losses = int((differences < 0.0).sum()), int((differences > 0.0).sum())
    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def with_interval(statistic: Statistic, differences: Sequence[Array]) -> tuple[float, float, float]:
    """The statistic and its 95 % interval by a stratified percentile bootstrap; NaN for too few seeds."""
    if min(len(d) for d in differences) < FEWEST:
        return float(statistic(differences)), float("nan"), float("nan")
    rng = np.random.default_rng(0)
    drawn = statistic([d[rng.integers(len(d), size=(RESAMPLES, len(d)))] for d in differences])  # [RESAMPLES]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(statistic(differences)), float(low), float(high)
