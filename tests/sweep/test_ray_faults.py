"""Ray's own processes are killed: the sweep ends in a sentence, leaves no process, and goes on to the same results."""

import signal
import time
from pathlib import Path

import psutil
import pytest
from actors import eventually
from sweeps import SweepProcess, in_process, results, small

WORDS = small("methods=[uni]", "seeds=2", "rounds=4", "fit.evaluations=60", "--out", "out")
RUNS = {
    f"cartpole-uni-seed{seed}": ("method=uni", f"seed={seed}", "rounds=4", "fit.evaluations=60") for seed in range(2)
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return in_process(tmp_path_factory.mktemp("here"), RUNS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"), [("raylet", signal.SIGTERM), ("raylet", signal.SIGKILL), ("gcs_server", signal.SIGKILL)]
)
def test_a_lost_daemon_of_ray_is_a_sentence_and_the_sweep_is_resumed(tmp_path, expected, name, how):
    sweep = SweepProcess(*WORDS, cwd=tmp_path)
    eventually(lambda: any(path.stat().st_size for path in tmp_path.glob("out/trials/*/records.jsonl")), 120)
    (victim,) = [child for child in psutil.Process(sweep.process.pid).children() if child.name() == name]
    victim.send_signal(how)
    begin = time.monotonic()
    sweep.wait()
    assert time.monotonic() - begin < 60
    assert sweep.code == 2 and sweep.err.count("\n") == 1, sweep.err
    assert "Ray on this machine has ended" in sweep.err and "--resume out\n" in sweep.err
    eventually(lambda: not sweep.alive(), 20)
    again = SweepProcess("--resume", "out", cwd=tmp_path).wait()
    assert again.code == 0, again.err
    assert results(tmp_path / "out") == expected


def test_ctrl_c_before_the_sweep_began_is_a_sentence(tmp_path):
    sweep = SweepProcess(*WORDS, cwd=tmp_path)
    maps = Path(f"/proc/{sweep.process.pid}/maps")
    eventually(lambda: "pydantic_core" in maps.read_text(), 30)  # in the middle of the imports
    sweep.process.send_signal(signal.SIGINT)
    sweep.wait()
    assert (sweep.code, sweep.err) == (130, "Stopped.\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("daemon", ["gcs_server", "raylet"])
def test_a_sweep_that_is_asked_to_end_while_ray_starts_says_how_to_go_on(tmp_path, daemon):
    sweep = SweepProcess(*WORDS, cwd=tmp_path)
    driver = psutil.Process(sweep.process.pid)
    eventually(lambda: any(child.name() == daemon for child in driver.children()), 120)
    for process in sweep.alive():
        process.terminate()
    sweep.wait()
    assert sweep.code in (2, 130) and sweep.err.endswith("continue with: python -m distpaml.sweep --resume out\n")
    assert sweep.err.count("\n") == 1, sweep.err
    eventually(lambda: not sweep.alive(), 20)
