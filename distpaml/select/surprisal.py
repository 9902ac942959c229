"""The paper's utility: how improbable a candidate is under the mixture of the known tasks' q(h)."""

import numpy as np

from distpaml.select.candidates import Candidates
from distpaml.select.context import Embedded
from distpaml.types import Array

TABLE = 2**17
"""Entries of a candidates × tasks table held at once: it fits in cache."""
LOWEST = 60.0
"""Terms below exp(−60) times the largest are dropped: half a unit in the last place is exp(−37)."""


def surprisal(candidates: Candidates, context: Embedded) -> Array:
    """The paper's: −log 1/N Σ_i N(h*; n_i, diag t_i), at the candidate's mean.

    With e_i = Σ_q (h*_q − n_iq)² / 2t_iq + ½ log 2πt_iq and the least of them, e, this is
    log N + e − log Σ_i exp(e − e_i). A term below exp(−60) changes no digit, so the sum is skipped where only
    one term is above: nearly everywhere on a grid, and exp is slow where it underflows. Terms are summed in the order
    of the tasks, so a score has the same bits whatever candidates are scored with it.
    """
    minus, rate, offset = context.exponents  # [Q N, Q + 1], [Q N, 1], [N, 1]
    tasks, latent = context.mean.shape
    rows, counts = max(1, TABLE // (latent * tasks)), np.min_scalar_type(tasks)

    def block(h: Array) -> Array:
        parts = minus @ np.vstack([h.T, np.ones(len(h))])  # [Q N, rows], the differences, each rounded once
        parts *= parts
        parts *= rate
        exponent = parts[:tasks]  # [N, rows]
        for q in range(1, latent):
            exponent += parts[q * tasks : (q + 1) * tasks]
        exponent += offset
        least = exponent.min(axis=0)
        scores = np.log(tasks) + least
        mixed = np.flatnonzero(np.add.reduce(exponent < least + LOWEST, axis=0, dtype=counts) > 1)
        if len(mixed):
            terms = np.take(exponent, mixed, axis=1)  # [N, mixed]
            np.subtract(least[mixed], terms, out=terms)
            np.exp(np.maximum(terms, -LOWEST, out=terms), out=terms)
            scores[mixed] -= np.log(np.add.reduce(terms, axis=0) if len(mixed) > 1 else np.add.accumulate(terms)[-1])
        return scores

    h = candidates.mean
    return np.concatenate([block(h[i : i + rows]) for i in range(0, len(h), rows)])
