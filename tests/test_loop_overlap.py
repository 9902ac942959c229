"""Evaluation is a promise: it is waited for only after the next tasks were chosen and simulated."""

import pytest
from tiny import rounds_of, tiny

from distpaml.data.tasks import TaskSet
from distpaml.loop import active_loop
from distpaml.runtime.local import local_parts
from distpaml.select.methods import get_method


class Later:
    def __init__(self, events, name, compute):
        self.events, self.name, self.compute = events, name, compute

    def result(self):
        self.events.append(self.name)
        return self.compute()


class Overlapping:
    """A trainer and simulator that note when they are asked and when they are waited for."""

    def __init__(self, config):
        self.events = []
        self.simulator, self.trainer, self.scorer = local_parts(config)

    def simulate(self, tasks):
        self.events.append("simulate")
        return self.simulator.simulate(tasks)

    def fit(self, data, round, last, latents):
        self.events.append(f"fit {round}")
        return self.trainer.fit(data, round, last, latents)

    def evaluate(self, model, data, test):
        round = len(data) - 3
        return Later(self.events, f"wait for {round}", lambda: self.trainer.evaluate(model, data, test).result())

    def best(self, candidates, context):
        self.events.append("choose")
        return self.scorer.best(candidates, context)


def test_a_round_is_waited_for_after_the_next_tasks_were_simulated():
    config = tiny()
    overlapping = Overlapping(config)
    rounds = list(active_loop(get_method(TaskSet(config)), overlapping, overlapping, overlapping))
    assert overlapping.events == [
        *("simulate", "simulate", "fit 0"),
        *("choose", "simulate", "wait for 0", "fit 1"),
        *("choose", "simulate", "wait for 1", "fit 2"),
        "wait for 2",
    ]
    assert [round.record.result() for round in rounds] == [round.record.result() for round in rounds_of()]


def test_a_finished_round_is_kept_though_the_next_choice_fails():
    config = tiny()
    overlapping = Overlapping(config)

    def broken(candidates, context):
        raise ArithmeticError("no best")

    overlapping.best = broken
    rounds = active_loop(get_method(TaskSet(config)), overlapping, overlapping, overlapping)
    assert next(rounds).record.result() == rounds_of()[0].record.result()
    with pytest.raises(ArithmeticError):
        next(rounds)
