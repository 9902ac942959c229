"""Space-filling rivals: as far as possible from the nearest known task, whatever the model predicts (maximin).

Reference: Johnson, Moore & Ylvisaker 1990, Minimax and maximin distance designs.
"""

import numpy as np

from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.types import Array


def latent_maximin(candidates: Candidates, context: SelectionContext) -> Array:
    """u = min_i |(h* − n_i) / ℓ|, at the means of q(h), in length-scales ℓ of the model's kernel over h."""
    rate = context.model.posterior.rate_h.double().numpy()
    return _nearest(candidates.mean * rate, context.mean * rate)


def descriptor_maximin(candidates: Candidates, context: SelectionContext) -> Array:
    """u = min_i |(s* − s_i) / (high − low)| of descriptors s, in sides of their box; it needs no model."""
    width = context.high - context.low
    return _nearest(candidates.descriptors / width, context.descriptors / width)


def _nearest(points: Array, known: Array) -> Array:
    """Distance [K] of points [K, E] to the nearest of the known ones [N, E]; holds no candidates × tasks table."""
    least = np.full(len(points), np.inf)
    for row in known:
        np.minimum(least, np.square(points - row).sum(axis=1), out=least)
    return np.sqrt(least)
