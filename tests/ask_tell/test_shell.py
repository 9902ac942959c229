"""The commands, as a person at a bench types them."""

import json
import subprocess
import sys

import numpy as np
import pandas
import pytest
from spring import TINY, run

from distpaml import Experiment
from distpaml.ask_tell.__main__ import main
from distpaml.config.yaml_text import dump


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    units = {"mass": "kg"}
    (tmp_path / "spring.yaml").write_text(dump({"name": "spring", **TINY, "units": units}))
    return tmp_path


@pytest.fixture
def shell(bench, capsys):
    def call(*words, status=0):
        assert main([*words]) == status
        said = capsys.readouterr()
        return said.err if status else said.out

    return call


def test_a_whole_session(bench, shell):
    assert shell("new", "lab", "spring.yaml", "seed=3") == "spring begins in lab. Next: distpaml ask --dir lab\n"
    assert Experiment.load("lab").declaration.seed == 3
    said = shell("ask", "-n", "2", "--dir", "lab").splitlines()
    assert said[0].startswith("task 1: mass = ") and " kg, stiffness = " in said[0] and len(said) == 4
    assert said[2] == "Try them, then: distpaml tell 1 FILE --dir lab"
    columns = run({})
    columns["x"] = columns["x"].astype(object)
    columns["x"][7] = ""
    pandas.DataFrame(columns).to_csv("run.csv", index=False)
    np.savez("more.npz", **run({}))
    assert shell("tell", "1", "run.csv", "more.npz", "--dir", "lab") == (
        "Task 1: 46 transitions are kept.\n"
        "  run.csv: row 8 had missing values, so the trajectory is cut there.\n"
        "Still out: 2.\n"
    )
    assert shell("fail", "2", "the", "spring", "broke", "--dir", "lab") == (
        "Task 2 failed: the spring broke. It may come back once 3 others have been observed.\n"
    )
    assert shell("attach", "more.npz", "mass=1.5", "stiffness=2", "--dir", "lab") == (
        "Task 3: 24 transitions are kept.\nNothing is out.\n"
    )
    (task,) = json.loads(shell("ask", "--json", "--dir", "lab"))
    assert task["id"] == 4 and 1 <= task["descriptor"]["mass"] <= 2
    said = shell("status", "--dir", "lab").splitlines()
    assert said[0] == "spring: 2 observed, 1 out, 1 failed, 70 transitions"
    assert said[1].endswith("(46 transitions)") and said[2].endswith("(failed: the spring broke)")
    assert said[3] == "task 3: mass = 1.5 kg, stiffness = 2  (24 transitions)" and said[4].endswith("(out)")
    assert said[5:] == ["The model chooses.", "More: distpaml report lab"]
    tasks = json.loads(shell("status", "--json", "--dir", "lab"))
    assert [task["state"] for task in tasks] == ["observed", "failed", "observed", "out"]
    np.savez("other.npz", **run(task["descriptor"]))
    shell("tell", "4", "other.npz", "--dir", "lab")
    shell("ask", "--dir", "lab")
    line = shell("status", "--dir", "lab").splitlines()[-2]
    assert line.startswith("Each of 3 tasks left out: error 0.") and "too few tasks to tell" in line


@pytest.mark.parametrize(
    "words, message",
    [
        (("ask",), "error: The working folder is not the directory of an experiment; name that with --dir DIR.\n"),
        (("new", "lab", "nowhere.yaml"), "error: nowhere.yaml cannot be read: No such file or directory.\n"),
        (("new", "lab", "spring.yaml", "seeed=1"), "seeed (here 1) is not a key; the nearest is seed.\n"),
    ],
)
def test_mistakes_are_one_line(shell, words, message):
    assert shell(*words, status=2).endswith(message)


def test_mistakes_with_an_experiment_are_one_line(bench, shell):
    shell("new", "lab", "spring.yaml")
    (bench / "run.csv").write_text("x,v\n1,2\n")
    for words, message in (
        (("tell", "1", "run.csv"), "error: run.csv has no column u; it has x, v.\n"),
        (("tell", "9", "none.csv"), "error: none.csv cannot be read: No such file or directory.\n"),
        (("fail", "9", "why"), "error: There is no task 9; none is out; ask first.\n"),
        (("attach", "run.csv"), "error: attach needs a file and the descriptor"),
        (("attach", "run.csv", f"mass={'9' * 400}", "stiffness=1"), "error: "),
        (("ask", "-n", "0"), "error: One can ask for 1 to 1000 tasks at once, not for 0.\n"),
    ):
        assert shell(*words, "--dir", "lab", status=2).startswith(message)
    assert not Experiment.load("lab").history()


def test_the_commands_are_commands_of_distpaml(bench):
    def distpaml(*words):
        return subprocess.run([sys.executable, "-m", "distpaml", *words], capture_output=True, text=True)

    assert distpaml("new", "lab", "spring.yaml").stdout.startswith("spring begins in lab.")
    done = distpaml("status", "--dir", "lab")
    assert done.stdout == "spring: 0 observed, 0 out, 0 failed, 0 transitions\nThe model chooses after 2 more.\n"
    assert distpaml("status").returncode == 2
    assert "tell" in distpaml("--help").stdout
