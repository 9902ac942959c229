"""Killed trials, killed drivers and Ctrl-C: the sweep goes on to the same results, and leaves no process behind."""

import json
import os
import re
import shlex
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from actors import eventually, processes
from sweeps import RunProcess, SweepProcess, in_process, results, small

pytestmark = pytest.mark.slow
RUNS = {
    f"cartpole-uni-seed{seed}": ("method=uni", f"seed={seed}", "rounds=4", "fit.evaluations=60") for seed in range(3)
}
WORDS = small("methods=[uni]", "seeds=3", "rounds=4", "fit.evaluations=60", "--out", "out")


def begun(folder: Path) -> bool:
    """Some round is finished and some are not."""
    return any(path.stat().st_size for path in folder.glob("out/trials/*/records.jsonl"))


@pytest.fixture
def rays_own():
    """A short path: sockets are in it."""
    with TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return in_process(tmp_path_factory.mktemp("here"), RUNS)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_trial_goes_on_from_its_last_round(tmp_path, expected, how):
    sweep = SweepProcess(*WORDS, cwd=tmp_path)
    eventually(lambda: begun(tmp_path), 120)
    processes("ray::ResourceTrainable", of=sweep.process.pid)[0].send_signal(how)
    sweep.wait()
    assert sweep.code == 0, sweep.err
    assert results(tmp_path / "out") == expected
    events = [json.loads(line)["event"] for line in (tmp_path / "out/events.jsonl").read_text().splitlines()]
    assert events.count("trial retried") == 1 and events.count("trial finished") == 3


def test_a_killed_driver_leaves_nothing_running_and_is_resumed(tmp_path, expected, rays_own):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    places = {"TMPDIR": str(temporary), "RAY_TMPDIR": rays_own}
    sweep = SweepProcess(*WORDS, cwd=tmp_path, **places)
    eventually(lambda: begun(tmp_path), 120)
    sweep.process.kill()
    sweep.wait()
    assert not all(len(records) == 5 for records in results(tmp_path / "out").values())
    eventually(lambda: not sweep.alive(), 60)
    again = SweepProcess("--resume", "out", cwd=tmp_path, **places).wait()
    assert again.code == 0, again.err
    assert results(tmp_path / "out") == expected
    ours = f"distpaml-{os.getuid()}"
    assert {str(path.relative_to(temporary)) for path in temporary.rglob("*")} == {ours, f"{ours}/lock"}


def test_a_damaged_trial_is_repaired_by_the_commands_that_the_sentences_name(tmp_path, expected):
    words = small("methods=[uni]", "seeds=1", "rounds=4", "fit.evaluations=60", "--out", "out")
    assert SweepProcess(*words, cwd=tmp_path).wait().code == 0
    name = "cartpole-uni-seed0"
    arrays = tmp_path / f"out/trials/{name}/round-02/arrays.npz"
    arrays.write_bytes(arrays.read_bytes()[:-1])
    more = SweepProcess("--resume", "out", "rounds=5", cwd=tmp_path).wait()
    assert more.code == 1 and "round-02/arrays.npz is damaged" in more.out, more.out
    command = re.search(r"`python -m distpaml\.run (.*?)`", more.out)[1]
    repaired = RunProcess(*shlex.split(command), cwd=tmp_path).wait()
    assert repaired.code == 0 and "the run goes on after round 1" in repaired.out, repaired.out + repaired.err
    command = re.search(r"continue with: python -m distpaml\.sweep (.*)", repaired.out)[1]
    again = SweepProcess(*shlex.split(command), cwd=tmp_path).wait()
    assert again.code == 0, again.out + again.err
    assert results(tmp_path / "out")[name][:5] == expected[name] and len(results(tmp_path / "out")[name]) == 6


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
