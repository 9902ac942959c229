"""Which tasks next, by the model: those of the highest utility among descriptors that exist, mapped to latents by a
Gaussian process. Tasks that are out count as observed, and so do tasks that failed a moment ago, since what lies
beside them would probably fail as well.

With costs, what is maximised is the gain per cost,

    (utility(c) − zero) / cost(c),       zero = the lowest utility among the candidates and the observed tasks

Utilities may have any sign (a surprisal is a log density), so a plain quotient would favour costly tasks among negative
ones. The zero is what doing the least useful thing again would bring: gains are never negative, a constant added to a
utility changes nothing, and with equal costs the order is that of the utility.
"""

import numpy as np

from distpaml.ask_tell.choice import free_rows
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.journal import Asked
from distpaml.ask_tell.space import Space
from distpaml.ask_tell.state import State
from distpaml.data import Dataset
from distpaml.model.meta_model import MetaModel
from distpaml.select.candidates import descriptor_pool
from distpaml.select.context import SelectionContext
from distpaml.select.references import REFERENCES
from distpaml.select.scoring import UtilityScorer
from distpaml.types import Array


def best(declaration: Declaration, space: Space, state: State, model: MetaModel, data: Dataset, n: int) -> list[Asked]:
    """The n best, one after the other, each given those before it."""
    retry_after = declaration.selection.retry_after
    rows = free_rows(space, state, retry_after)
    waiting = sorted(
        [task for task in state.tasks.values() if task.state == "out"] + state.resting(retry_after),
        key=lambda task: task.id,
    )
    encoded = space.encode([*space.candidates, *(task.descriptor for task in waiting)])
    ones = np.ones(encoded.shape[1])
    everything = descriptor_pool(model, -ones, ones, encoded)
    candidates = everything.take(slice(0, len(space.candidates)))
    references = candidates.take(np.array(space.targeted()[:REFERENCES]))
    context = SelectionContext.of(model, data, references, -ones, ones)
    context = context.observing(everything.take(slice(len(candidates), None)))
    costs = None if declaration.cost is None else space.costs()
    scorer, chosen = UtilityScorer(declaration.selection.utility), []
    for number in range(min(n, len(rows))):
        utilities = scorer.scores(candidates.take(np.array(rows)), context)
        if costs is None:
            gains = utilities
        else:
            zero = scorer.scores(context.known, context).min()
            gains = gain_per_cost(utilities, costs[rows], zero)
        place = int(gains.argmax())
        row = rows.pop(place)
        context = context.observing(candidates.take(slice(row, row + 1)))
        chosen.append(
            Asked(
                id=state.next_id + number,
                descriptor=space.candidates[row],
                latent=tuple(candidates.mean[row].tolist()),
                utility=float(utilities[place]),
                cost=None if costs is None else float(costs[row]),
            )
        )
    return chosen


def gain_per_cost(utilities: Array, costs: Array, zero: float) -> Array:
    """What is maximised [K] where tasks have costs; `zero` is the lowest utility among observed tasks."""
    return (utilities - min(zero, utilities.min())) / costs
