"""Algorithm 1 of the paper, over three interfaces.

    2  observe the initial tasks                       Simulator
    3  while there are rounds left:
    4      train the model, infer the embeddings       Trainer
    5      select the next tasks by ranking            Scorer, asked by the method
    6      observe them                                Simulator
    7      add them to the data

Results are bit-identical whether one process or a cluster implements the interfaces: inputs and outputs are arrays and
dataclasses, and every answer depends on the arguments and the experiment's seed alone.
Simulation and evaluation are futures, so that a cluster can simulate the test tasks during the first fit, and
evaluate a round while the next tasks are chosen and simulated.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from distpaml.data import Dataset
from distpaml.data.tasks import Tasks
from distpaml.evaluate import Evaluation
from distpaml.futures import Future
from distpaml.model.meta_model import MetaModel
from distpaml.rounds import Round, State, Stopwatch
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.select.methods import Method, Selection
from distpaml.select.scoring import Best
from distpaml.types import Array


class Simulator(Protocol):
    """Observes tasks."""

    def simulate(self, tasks: Tasks) -> Future[Dataset]:
        """One trajectory per task, from its start state, under the experiment's control signal."""


class Trainer(Protocol):
    """Fits and evaluates the meta-model."""

    def fit(self, data: Dataset, round: int, last: MetaModel | None, latents: Array | None) -> MetaModel:
        """Fit a model to all tasks, starting from `last`, whose tasks come first in `data`.

        `latents` [B, Q] are where the new tasks were expected, if candidates were ranked.
        """

    def evaluate(self, model: MetaModel, data: Dataset, test: Future[Dataset]) -> Future[Evaluation]:
        """Score the model on the test tasks; `data` is what it was fitted to."""


class Scorer(Protocol):
    """Ranks candidates by the experiment's utility."""

    def best(self, candidates: Candidates, context: SelectionContext) -> Best:
        """The candidate of the highest utility."""


Parts = tuple[Simulator, Trainer, Scorer]


def active_loop(
    method: Method,
    simulator: Simulator,
    trainer: Trainer,
    scorer: Scorer,
    state: State | None = None,
    watch: Callable[[int, str], None] = lambda round, stage: None,
) -> Iterator[Round]:
    """Yield the rounds after `state`; `watch(round, stage)` is called when a stage begins."""
    task_set = method.task_set
    test = simulator.simulate(task_set.test())
    unfinished: Callable[[], Round] | None = None
    for round in range(state.finished if state else 0, method.rounds + 1):
        stage = Stopwatch(partial(watch, round))
        try:
            with stage("choose"):
                if state is None:
                    tasks = method.initial()
                    selection = Selection(tasks.descriptors)
                else:
                    selection = method.choose(state.model, state.data, scorer.best)
                    tasks = task_set.chosen(selection.descriptors, first=len(state.data))
            with stage("simulate"):
                new = simulator.simulate(tasks).result()
                data = new if state is None else state.data.append(new)
        finally:  # the last round was evaluated meanwhile; keep it even if this one fails
            if unfinished is not None:
                yield unfinished()
        last = state.model if state else None
        with stage("fit"):
            model = trainer.fit(data, round, last, selection.latents)
        with stage("evaluate"):
            evaluation = trainer.evaluate(model, data, test)
        state = State(data, model, round + 1)
        unfinished = partial(Round.of, round, selection, tasks, new, model, evaluation, stage, last)
    if unfinished is not None:
        yield unfinished()
