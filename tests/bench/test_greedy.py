"""The design that knows the test errors."""

import re

import numpy as np
import pytest
from tiny import SIZE, rounds_of, tiny

from distpaml import seeds
from distpaml.bench import greedy
from distpaml.bench.__main__ import main
from distpaml.data.tasks import TaskSet
from distpaml.runtime.local import LocalSimulator, LocalTrainer
from distpaml.select.candidates import fine_pool

OVERRIDES = [word for override in (*SIZE, "rounds=1") for word in ("--set", override)]


def test_the_task_with_the_least_test_error_is_added(monkeypatch):
    """If candidates are tried with the full budget, the round's error is the least of theirs."""
    monkeypatch.setattr(greedy, "CANDIDATES", 4)
    monkeypatch.setattr(greedy, "SHORT", {})
    config = tiny("rounds=1")
    found = list(greedy.greedy_errors(config))
    task_set, simulator, trainer = TaskSet(config), LocalSimulator(config), LocalTrainer(config)
    first, test = rounds_of("rounds=1")[0], simulator.simulate(task_set.test())
    errors = []
    for row in fine_pool(task_set.descriptor.low, task_set.descriptor.high, 4, seeds.rng(0, "candidates", 1)):
        more = first.data.append(simulator.simulate(task_set.chosen(row[None], first=3)).result())
        model = trainer.fit(more, 1, first.model, None)
        errors.append(trainer.evaluate(model, more, test).result().scores.summary()["rmse"])
    assert len(set(errors)) > 1
    assert found == pytest.approx([first.record.rmse, min(errors)])


def test_it_stands_beside_methods_and_the_oracle(monkeypatch, capsys):
    monkeypatch.setattr(greedy, "CANDIDATES", 2)
    assert main(["greedy", "--experiment", "cartpole", "--seeds", "1", *OVERRIDES]) == 0
    out = capsys.readouterr().out
    rows = np.array(re.findall(r"cartpole 0 (\d+): (\S+), (\S+), (\S+), (\S+)\n", out), dtype=float)
    assert rows[:, 0].tolist() == [0, 1]
    assert rows[0, 1] == rows[0, 2] == rows[0, 3] == pytest.approx(rounds_of("rounds=1")[0].record.rmse, abs=1e-4)
    assert rows[0, 4] == rows[1, 4] == pytest.approx(rounds_of("method=oracle", "rounds=1")[0].record.rmse, abs=1e-4)
    best, ours, other = rows[:, 1:4].mean(0)
    (share,) = re.findall(r"has (-?\d+) % of the possible gain over lhs", out)
    assert int(share) == pytest.approx(100 * (other - ours) / (other - best), abs=1)
    assert "greedy-cartpole" in out
