"""A run on Ray whose driver is killed leaves no process, and goes on to the same results."""

import pytest
from actors import eventually, processes
from sweeps import RunProcess
from tiny import SIZE, tiny

from distpaml.records import read_records
from distpaml.runtime.run_experiment import run_to_end

SECONDS = 20.0
"""Ray by itself would take a minute."""


@pytest.mark.slow
def test_a_killed_run_on_ray_is_gone_within_seconds_and_goes_on(tmp_path):
    words = [*SIZE, "method=uni", "rounds=4", "fit.evaluations=60", "--wandb", "off", "--out", "run"]
    run = RunProcess(*words, "runtime.kind=ray", cwd=tmp_path)
    lines = tmp_path / "run/records.jsonl"
    eventually(lambda: lines.exists() and lines.stat().st_size, 300)
    assert processes("ray::", of=run.process.pid)
    run.process.kill()
    run.process.wait()
    eventually(lambda: not run.alive(), SECONDS)
    assert len(read_records(tmp_path / "run")) < 5
    again = RunProcess(*words, cwd=tmp_path).wait()
    assert again.code == 0, again.err
    undisturbed = run_to_end(tiny("method=uni", "rounds=4", "fit.evaluations=60"), tmp_path / "undisturbed")
    assert [record.result() for record in read_records(tmp_path / "run")] == [one.result() for one in undisturbed]
