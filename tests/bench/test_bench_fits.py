"""The two benchmarks of how good fits are: `loop` and `capacity`."""

import re
from argparse import Namespace

import pytest
from tiny import SIZE, tiny

from distpaml.bench import capacity, loop, shards
from distpaml.bench.__main__ import main
from distpaml.runtime.run_experiment import run_to_end

OVERRIDES = [word for override in SIZE for word in ("--set", override)]
ROW = re.compile(r"cartpole uni 0 (\d+): (\S+), (\S+), (\S+) \| (\S+), (\S+) \| (\S+)\n")


def test_a_loop_that_may_not_fit_is_seen_to_be_behind(tmp_path, capsys):
    """Two evaluations a round are not enough, and the benchmark shows it; of kept runs as of new ones."""
    run_to_end(tiny("method=uni", "fit.evaluations=2", "fit.settling=1"), tmp_path / "run")
    assert main(["loop", "--runs", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    ((round, bound, longer, gap, *_, start),) = ROW.findall(out)
    assert (round, start) == ("0", "scratch") and float(gap) == pytest.approx(float(longer) - float(bound), abs=2e-3)
    assert float(gap) > 0.1 and f"mean gap {gap}, largest {gap} nats" in out


def test_new_trials_are_run_and_compared(capsys, monkeypatch):
    monkeypatch.setattr(loop, "METHODS", ("uni",))
    monkeypatch.setattr(loop, "ROUNDS", (0, 2))
    assert main(["loop", "--experiment", "cartpole", "--seeds", "1", *OVERRIDES]) == 0
    rows = ROW.findall(capsys.readouterr().out)
    assert [row[0] for row in rows] == ["0", "2"]


def test_no_runs_is_a_sentence(tmp_path, capsys):
    assert main(["loop", "--runs", str(tmp_path)]) == 2
    assert "has no complete run" in capsys.readouterr().err


def test_capacity_compares_numbers_of_inducing_points(capsys, monkeypatch):
    monkeypatch.setattr(capacity, "SIZES", (8, 40))
    monkeypatch.setattr(capacity, "TASKS", 4)
    small = ["--set", "domain.trajectory_length=20", "--set", "evaluation.grid=2"]
    assert main(["capacity", "--experiment", "cartpole", "--seeds", "1", *small]) == 0
    out = capsys.readouterr().out
    assert re.search(r"cartpole 8 0: 8, .*\n", out) and re.search(r"cartpole 40 0: 40, .*\n", out)
    bounds = [float(bound) for bound in re.findall(r"cartpole \d+ 0: \d+, (\S+) \|", out)]
    assert bounds[0] < bounds[1] and "capacity-cartpole-40" in out


@pytest.mark.slow
def test_shards_are_timed_and_have_the_same_bits(capsys):
    results = {result.name: result for result in shards.run(Namespace(), tasks=(6,), inducing=20)}
    assert results.keys() == {"shards-6", "shards-uncertain-6", "shards-fit-6"}
    out = capsys.readouterr().out
    assert re.search(r"6 tasks, 2 actors: \S+ s, \S+ times as fast, \S+ MB moved", out)
    assert "6 tasks on 64 machines, computed" in out
