"""Scores candidates with a utility, block by block, and checks what a user's utility returns."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from distpaml.errors import UserError
from distpaml.model.device import CPU
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.select.utilities import get_utility
from distpaml.types import Array

BLOCK = 2048
"""Candidates scored together. Workers split candidates between blocks, so every score has the same bits anywhere."""


class Best(NamedTuple):
    """The candidate of the highest utility; the first one if several tie."""

    row: int
    utility: float


class UtilityScorer:
    """Scores with the utility called `name`, or with a function `module:function`, on `device`."""

    def __init__(self, name: str, device: torch.device = CPU) -> None:
        self.name, self.device = name, device
        self.utility = get_utility(name)

    def best(self, candidates: Candidates, context: SelectionContext) -> Best:
        """The best candidate; holds the scores of one block at a time."""
        best, context = Best(0, -np.inf), replace(context, device=self.device)
        for first in range(0, len(candidates), BLOCK):
            scores = self._block(candidates.take(slice(first, first + BLOCK)), context)
            row = int(scores.argmax())
            if scores[row] > best.utility:
                best = Best(first + row, float(scores[row]))
        return best

    def scores(self, candidates: Candidates, context: SelectionContext) -> Array:
        """Utilities [K] of all candidates."""
        starts, context = range(0, len(candidates), BLOCK), replace(context, device=self.device)
        return np.concatenate([self._block(candidates.take(slice(i, i + BLOCK)), context) for i in starts])

    def _block(self, block: Candidates, context: SelectionContext) -> Array:
        scores = np.asarray(self.utility(block, context), dtype=float)
        if scores.shape != (len(block),) or not np.isfinite(scores).all():
            finite = "" if np.isfinite(scores).all() else " with non-finite values"
            raise UserError(
                f"selection.utility {self.name!r} should return {len(block)} finite numbers for {len(block)} "
                f"candidates, but returned an array of shape {list(scores.shape)}{finite}."
            )
        return scores
