"""Errors of the user's own code keep their traceback and name their line."""

import os
import subprocess
import sys

import pytest
from sweeps import SweepProcess, small
from tiny import SIZE

from distpaml.failures import FILE, keep

MINE = """
from distpaml.domains import CartPole


class Mine(CartPole):
    name = "mine"

    def simulate(self, tasks, *rest):
        if len(tasks) < 3:
            return self.broken
        return super().simulate(tasks, *rest)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def run(folder, *words):
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, env=os.environ)


def test_a_run_names_the_line_and_keeps_the_traceback(folder):
    words = ["distpaml.run", *SIZE, "domain.name=mine:Mine", "method=uni", "--out", "here"]
    done = run(folder, *words)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: AttributeError: 'Mine' object has no attribute 'broken' (mine.py, line 10); ")
    assert "the traceback is in here/error.txt." in done.stderr
    assert 'mine.py", line 10, in simulate' in (folder / "here/error.txt").read_text()
    assert "Traceback" in run(folder, *words, "--verbose").stderr
    (folder / "mine.py").write_text(MINE.replace("< 3", "< 0"))  # mended, the same command goes on
    done = run(folder, *words)
    assert done.returncode == 0, done.stderr


def test_nothing_of_an_error_steers_the_terminal_or_is_written_through_a_link(folder):
    precious = folder / "precious"
    precious.write_text("precious")
    (folder / "here").mkdir()
    (folder / "here/error.txt").symlink_to(precious)
    (folder / "mine.py").write_text(MINE.replace("self.broken", 'int("\\x1b[31m\\udcff")'))
    words = ["distpaml.run", *SIZE, "domain.name=mine:Mine", "method=uni", "--out", "here"]
    for more in ([], ["--verbose"]):
        done = run(folder, *words, *more)
        assert done.returncode == 1 and "\x1b" not in done.stderr + done.stdout and "ValueError" in done.stderr
    assert precious.read_text() == "precious" and "ValueError" in (folder / "here/error.txt").read_text()


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "mine.py"])
def test_a_traceback_that_cannot_be_kept_does_not_hide_the_error(folder, name):
    assert not keep(ValueError("of the user"), folder / name)
    assert keep(ValueError("of the user"), folder / "here") and "of the user" in (folder / "here" / FILE).read_text()


def test_check_names_the_line(folder):
    done = run(folder, "distpaml.domains.check", "mine:Mine")
    assert done.returncode == 1 and "simulate raised AttributeError" in done.stdout
    assert "(mine.py, line 10)" in done.stdout


@pytest.mark.slow
def test_a_sweep_names_the_line_and_keeps_the_traceback(folder):
    words = small("methods=[uni]", "seeds=1", "domain.name=mine:Mine", "--out", "out", "--verbose")
    sweep = SweepProcess(*words, cwd=folder).wait()
    said = f"AttributeError: 'Mine' object has no attribute 'broken' ({folder}/mine.py, line 10); the traceback is in"
    assert sweep.code == 1 and f"cartpole-uni-seed0 failed: {said} trials/cartpole-uni-seed0/error.txt." in sweep.out
    assert 'mine.py", line 10, in simulate' in (folder / "out/trials/cartpole-uni-seed0/error.txt").read_text()
    assert "Traceback" in sweep.out
