"""Which tasks next, by the model: those of the highest utility among descriptors that exist, mapped to latents by a
Gaussian process. Tasks that are out count as observed, and so do tasks that failed recently, since what lies
beside them would probably fail as well.

With costs, what is maximised is the gain per cost,

    (utility(c) − zero) / cost(c),       zero = the lowest utility among the candidates and the observed tasks

Utilities may have any sign (a surprisal is a log density), so a plain quotient would favour costly tasks among negative
ones. The zero is what doing the least useful thing again would bring: gains are never negative, a constant added to a
utility changes nothing, and with equal costs the order is that of the utility.
"""

from dataclasses import dataclass

import numpy as np

from distpaml.ask_tell.choice import free_rows
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.journal import Asked
from distpaml.ask_tell.space import Space, worded
from distpaml.ask_tell.state import State
from distpaml.data import Dataset
from distpaml.model.meta_model import MetaModel
from distpaml.select.candidates import descriptor_pool
from distpaml.select.context import SelectionContext
from distpaml.select.references import REFERENCES
from distpaml.select.scoring import UtilityScorer
from distpaml.types import Array


@dataclass(frozen=True, eq=False, repr=False)
class Preview:
    """What would be asked for next, and among what it is chosen."""

    tasks: tuple[Asked, ...]
    latents: Array | None = None  # [K, Q], where the candidates are expected; None while no model chooses
    utilities: Array | None = None  # [K]
    nearest: int | None = None
    """The observed task whose descriptor is most like that of the first of the tasks."""

    def __repr__(self) -> str:
        tasks = "; ".join(worded(task.descriptor) for task in self.tasks) or "nothing"
        return f"<Preview: {tasks}; {'no model chooses yet' if self.utilities is None else 'the model chooses'}>"


class Ranking:
    """The candidates of an experiment in the light of a model that was fitted to `data`."""

    def __init__(self, declaration: Declaration, space: Space, state: State, model: MetaModel, data: Dataset) -> None:
        retry_after = declaration.selection.retry_after
        self.space, self.state, self.data = space, state, data
        self.rows = free_rows(space, state, retry_after)
        waiting = sorted(
            [task for task in state.tasks.values() if task.state == "out"] + state.resting(retry_after),
            key=lambda task: task.id,
        )
        encoded = space.encode([*space.candidates, *(task.descriptor for task in waiting)])
        ones = np.ones(encoded.shape[1])
        everything = descriptor_pool(model, -ones, ones, encoded)
        self.candidates = everything.take(slice(0, len(space.candidates)))
        references = self.candidates.take(np.array(space.targeted()[:REFERENCES]))
        context = SelectionContext.of(model, data, references, -ones, ones)
        self.context = context.observing(everything.take(slice(len(self.candidates), None)))
        self.costs = None if declaration.cost is None else space.costs()
        self.scorer = UtilityScorer(declaration.selection.utility)

    def best(self, n: int) -> list[Asked]:
        """The n best, one after the other, each given those before it."""
        rows, context, chosen = list(self.rows), self.context, []
        for number in range(min(n, len(rows))):
            utilities = self.scorer.scores(self.candidates.take(np.array(rows)), context)
            if self.costs is None:
                gains = utilities
            else:
                zero = self.scorer.scores(context.known, context).min()
                gains = gain_per_cost(utilities, self.costs[rows], zero)
            place = int(gains.argmax())
            row = rows.pop(place)
            context = context.observing(self.candidates.take(slice(row, row + 1)))
            chosen.append(
                Asked(
                    id=self.state.next_id + number,
                    descriptor=self.space.candidates[row],
                    latent=tuple(self.candidates.mean[row].tolist()),
                    utility=float(utilities[place]),
                    cost=None if self.costs is None else float(self.costs[row]),
                )
            )
        return chosen

    def preview(self, n: int) -> Preview:
        """The n best, and the utilities of all candidates before the first of them is chosen."""
        if not self.rows:
            return Preview(())
        tasks, free = self.best(n), self.candidates.take(np.array(self.rows))
        distance = np.linalg.norm(self.data.descriptors - self.space.encode([tasks[0].descriptor]), axis=1)
        return Preview(
            tuple(tasks),
            free.mean,
            self.scorer.scores(free, self.context),
            self.state.order[int(distance.argmin())],
        )


def gain_per_cost(utilities: Array, costs: Array, zero: float) -> Array:
    """What is maximised [K] where tasks have costs; `zero` is the lowest utility among observed tasks."""
    return (utilities - min(zero, utilities.min())) / costs
