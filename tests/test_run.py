import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest
from rich.console import Console
from tiny import SIZE, rounds_of, tiny

from distpaml.records import read_records
from distpaml.run import _Display, main


def test_a_run_prints_a_line_per_round_and_a_table(tmp_path, capsys):
    assert main(["--config", "cartpole", *SIZE, "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if line.startswith("round ")]
    assert [line.split()[1] for line in lines] == ["0/2", "1/2", "2/2"]
    assert all(re.search(r"rmse \S+  nll \S+  rmse_paper \S+  nll_paper \S+  \S+ s$", line) for line in lines)
    assert out.count("│ 2     │ 5     │") == 1
    assert "\x1b" not in out
    assert [record.round for record in read_records(tmp_path / "run")] == [0, 1, 2]


def test_the_same_command_goes_on_where_it_ended(tmp_path, capsys):
    command = ["--config", "cartpole", *SIZE, "rounds=0", "method=uni", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    first = (tmp_path / "run" / "records.jsonl").read_bytes()
    assert main(command) == 0
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == first
    assert capsys.readouterr().out.count("round 0/0") == 2


def test_a_run_is_tracked_as_a_trial_of_a_sweep_is_and_continued_once(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    command = ["cartpole", *SIZE, "method=uni", "--out", str(tmp_path / "run"), "--wandb", "offline"]
    for rounds in (1, 2):
        assert main([*command, f"rounds={rounds}"]) == 0
    run = tmp_path / "run"
    assert len(list(run.glob("tensorboard/run/events*"))) == 1
    (offline,) = run.glob("wandb/offline-run-*")
    out = capsys.readouterr().out
    assert f"tensorboard --logdir {run}\n" in out and f"wandb sync --yes {run}/wandb/offline-run-*\n" in out
    tool = str(Path(sys.executable).with_name("wandb"))
    (file,) = offline.glob("*.wandb")
    lines = subprocess.run([tool, "leet", "inspect", "--json", file], capture_output=True, text=True, check=True).stdout
    found = [json.loads(line) for line in lines.splitlines()]
    assert [line["history"]["step"].get("num", 0) for line in found if line["type"] == "history"] == [0, 1, 2]
    assert main([*command[:-2], "rounds=0", "--wandb", "off", "--out", str(tmp_path / "quiet")]) == 0
    assert not (tmp_path / "quiet" / "wandb").exists()


def test_where_a_run_goes_unless_it_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*SIZE, "rounds=0", "method=lhs", "seed=4"]) == 0
    assert main([*SIZE, "rounds=0", "method=lhs", "seed=4", "--quick"]) == 0
    assert main([*SIZE, "rounds=0", "method=lhs", "seed=4", "out=here"]) == 0
    assert {path.parent.as_posix() for path in Path().rglob("records.jsonl")} == {
        "runs/cartpole-lhs-4",
        "runs/cartpole-lhs-4-quick",
        "here",
    }


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--config", "cartpol"], "'cartpol' is neither a file nor a shipped experiment; the nearest is cartpole"),
        (["model.inducng=3"], "the nearest is model.inducing"),
        (["cartpole", "rounds"], "an override is dotted.key=value"),
        (["selection.utility=suprisal"], "the nearest is surprisal"),
        (["selection.utility=nowhere:f"], "the module nowhere cannot be imported"),
        (["selection.choices=[[1, 1]]", "method=uni"], "need 18"),
        (["selection.choices=[[1]]", "method=uni"], "should be rows of 2 numbers"),
        (
            ["domain.trajectory_length=5"],
            "domain.alternations=10 do not fit into a trajectory of domain.trajectory_length=5",
        ),
        (["method=paml", "selection.per_dimension=100", "model.latent=4"], "to 4000000 candidates"),
        (["out=s3://bucket/run", "--out", ""], "A run is kept in a folder, not at s3://bucket/run"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_is_written(tmp_path, capsys, arguments, sentence):
    assert main(["--out", str(tmp_path / "run"), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and sentence in error
    assert not (tmp_path / "run").exists()


def test_where_it_writes_reaches_the_terminal_escaped(tmp_path, capsys):
    assert main([*SIZE, "rounds=0", "method=uni", "--wandb", "off", "--out", str(tmp_path / "a\x1b[31mb")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and out.count(r"a\x1b[31mb") >= 4


def test_a_directory_that_cannot_be_written_is_one_sentence(capsys):
    assert main([*SIZE, "--out", "/sys/run"]) == 2
    assert "/sys/run cannot be written: " in capsys.readouterr().err


def test_a_terminal_shows_the_round_and_stage_at_work():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with _Display(tiny(), console) as display:
        display.stage(1, "fit")
        display.finished(rounds_of()[1].record)
        display.bar.refresh()
    shown = console.file.getvalue()
    assert "round 1: fit" in shown and "1/3" in shown and "rmse" in shown


def test_ctrl_c_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "distpaml.run", *SIZE, "rounds=500", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout.readline().startswith("cartpole, ")
        assert run.stdout.readline().startswith("round 0/500")
        begin = monotonic()
        run.send_signal(signal.SIGINT)
        try:
            _, error = run.communicate(timeout=300)
        finally:
            run.kill()
    assert run.returncode == 130
    assert error == "Stopped; the same command continues from the last finished round.\n"
    assert monotonic() - begin < 60  # two seconds where nothing else runs; W&B closes its files
    assert len(read_records(tmp_path / "run")) >= 1


def test_the_distpaml_command_is_the_modules(tmp_path):
    def run(*words: str):
        return subprocess.run([sys.executable, "-m", "distpaml", *words], capture_output=True, text=True, timeout=200)

    done = run("config", "pendubot", "seed=3")
    assert done.returncode == 0 and "seed: 3" in done.stdout
    assert "run one experiment" in run().stdout
    wrong = run("rn")
    assert (wrong.returncode, wrong.stderr) == (2, "error: There is no command 'rn'; the nearest is run.\n")
    assert run("run", "seed=x").returncode == 2


def test_a_domain_that_diverges_on_a_test_task_is_a_sentence(tmp_path, monkeypatch, capsys):
    """The corners of the box are in the test grid and hardly ever in a design."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "corner", None)
    monkeypatch.delitem(sys.modules, "corner")
    (tmp_path / "corner.py").write_text(
        "import numpy as np\nfrom distpaml.domains import CartPole\n\n\nclass Corner(CartPole):\n"
        "    def simulate(self, tasks, *rest):\n        states = super().simulate(tasks, *rest)\n"
        "        return np.where((tasks == [5.0, 2.0]).all(1)[:, None, None], np.nan, states)\n"
    )
    assert main([*SIZE, "domain.name=corner:Corner", "--out", "here"]) == 2
    assert "pole_mass=5, pole_length=2 gave non-finite states" in capsys.readouterr().err
