"""Killed trials, killed drivers and Ctrl-C: the sweep goes on to the same results, and leaves no process behind."""

import json
import signal
from pathlib import Path

import pytest
from actors import eventually, processes
from sweeps import SweepProcess, in_process, results, small

pytestmark = pytest.mark.slow
RUNS = {
    f"cartpole-uni-seed{seed}": ("method=uni", f"seed={seed}", "rounds=4", "fit.evaluations=60") for seed in range(3)
}
WORDS = small("methods=[uni]", "seeds=3", "rounds=4", "fit.evaluations=60", "--out", "out")


def begun(folder: Path) -> bool:
    """Some round is finished and some are not."""
    return any(path.stat().st_size for path in folder.glob("out/trials/*/records.jsonl"))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return in_process(tmp_path_factory.mktemp("here"), RUNS)


def test_a_killed_trial_goes_on_from_its_last_round(tmp_path, expected):
    sweep = SweepProcess(*WORDS, cwd=tmp_path)
    eventually(lambda: begun(tmp_path), 120)
    processes("ray::ResourceTrainable", of=sweep.process.pid)[0].send_signal(signal.SIGKILL)
    sweep.wait()
    assert sweep.code == 0, sweep.err
    assert results(tmp_path / "out") == expected
    events = [json.loads(line)["event"] for line in (tmp_path / "out/events.jsonl").read_text().splitlines()]
    assert events.count("trial retried") == 1 and events.count("trial finished") == 3


def test_a_killed_driver_leaves_nothing_running_and_is_resumed(tmp_path, expected):
    sweep = SweepProcess(*WORDS, cwd=tmp_path)
    eventually(lambda: begun(tmp_path), 120)
    sweep.process.kill()
    sweep.wait()
    assert not all(len(records) == 5 for records in results(tmp_path / "out").values())
    eventually(lambda: not sweep.alive(), 60)
    again = SweepProcess("--resume", "out", cwd=tmp_path).wait()
    assert again.code == 0, again.err
    assert results(tmp_path / "out") == expected


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_sweep_that_goes_on_and_no_process(tmp_path, expected, how):
    sweep = SweepProcess(*WORDS, cwd=tmp_path)
    eventually(lambda: begun(tmp_path), 120)
    sweep.process.send_signal(how)
    sweep.wait()
    assert sweep.code == 130 and "--resume" in sweep.err and "Traceback" not in sweep.err
    eventually(lambda: not sweep.alive(), 20)
    again = SweepProcess("--resume", "out", cwd=tmp_path).wait()
    assert again.code == 0, again.err
    assert results(tmp_path / "out") == expected
