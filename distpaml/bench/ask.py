"""How long a person waits for an answer: `ask` and `ask(8)` with 20 observed cart-poles, on one thread.

    ask      in the course of an experiment, after the 20th task was told: the fit starts from the last model
    ask-8    eight at once, right after 20 tasks were attached: the fit starts afresh

Both include reading the data, the fit, the choice and everything that is written. The other side is an ask without an
experiment's memory: `fit_model` with the settings of a run, afresh, and one choice with the same functions.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

from distpaml.ask_tell.experiment import Experiment
from distpaml.ask_tell.models import threads
from distpaml.ask_tell.ranking import Ranking
from distpaml.bench import Result
from distpaml.config import ExperimentConfig, load
from distpaml.data.tasks import Tasks, TaskSet
from distpaml.model.meta_model import fit_model
from distpaml.runtime.local import LocalSimulator
from distpaml.types import Array


def run(options: Namespace, tasks: int = 20, overrides: Sequence[str] = (), **settings: Any) -> list[Result]:
    config = load("cartpole", [f"initial={tasks}", "rounds=0", *overrides])
    simulated = _Simulated(config)
    declaration = {**simulated.declaration, **settings}
    initial = TaskSet(config).initial()
    with TemporaryDirectory() as folder:
        loop = Experiment(declaration, Path(folder) / "loop")
        for task in range(tasks - 1):
            simulated.attach(loop, initial, task)
        (asked,) = loop.ask()
        loop.tell(asked.id, simulated.columns(np.array([*asked.descriptor.values()], dtype=float), initial.starts[-1]))
        single = _seconds("ask", loop.ask)

        at_once = Experiment(declaration, Path(folder) / "at-once")
        for task in range(tasks):
            simulated.attach(at_once, initial, task)
        eight = _seconds("ask-8", lambda: at_once.ask(8))
        other = _seconds("by hand", lambda: _by_hand(at_once, config))
    what = "a fit afresh with the settings of a run, and a choice"
    return [Result(name, other / ours, ours, other, "s", what) for name, ours in (("ask", single), ("ask-8", eight))]


class _Simulated:
    """The cart-pole as somebody's own system."""

    def __init__(self, config: ExperimentConfig) -> None:
        self.simulator = LocalSimulator(config)
        self.box = config.domain.box
        domain = self.simulator.domain
        self.declaration = {
            "descriptors": {name: list(interval) for name, interval in self.box.items()},
            "states": list(domain.states),
            "controls": ["force"],
            "angles": list(domain.angles),
            "dt": domain.dt,
        }

    def attach(self, experiment: Experiment, tasks: Tasks, row: int) -> None:
        parameters = tasks.parameters[row]
        experiment.attach(dict(zip(self.box, parameters, strict=True)), self.columns(parameters, tasks.starts[row]))

    def columns(self, parameters: Array, start: Array) -> Mapping[str, Array]:
        """What a data logger would write of one task."""
        signal = self.simulator.signal  # [T, 1]
        (states,) = self.simulator.domain.simulate(parameters[None], start[None], signal[None])
        force = np.append(signal[:, 0], 0.0)
        return {**dict(zip(self.simulator.domain.states, states.T, strict=True)), "force": force}


def _by_hand(experiment: Experiment, config: ExperimentConfig) -> None:
    state, declaration = experiment._state, experiment.declaration
    data = experiment._models.dataset(state.data, state)
    with threads(declaration.threads):
        model = fit_model(data, config.model, config.fit, seed=0)
        Ranking(declaration, experiment.space, state, model, data).best(1)


def _seconds(name: str, call: Callable[[], object]) -> float:
    """Of the clock; seconds of the processor, which do not depend on who else uses it, are printed."""
    begin, busy = perf_counter(), process_time()
    call()
    seconds = perf_counter() - begin
    print(f"{name}: {seconds:.1f} s, of which {process_time() - busy:.1f} s of the processor", flush=True)
    return seconds
