"""What a sweep shows while it runs and when it has ended, at every width of a terminal."""

import io
import re

import pandas as pd
import pytest
from rich.console import Console
from sweeps import small

from distpaml.sweep.__main__ import main
from distpaml.sweep.plan import Plan
from distpaml.sweep.progress import SweepProgress
from distpaml.sweep.schema import SearchConfig
from distpaml.sweep.summary import best_sample, results_table

WIDTHS = [80, 100, 140]
LONG = "cartpole-paml-pool-domain.control_limit=1000000.0-model.inducing_inputs=free"


def screen(width, terminal=True):
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, highlight=False, color_system=None)


def result(round, rmse, **more):
    return {"round": round, "rounds": 10, "rmse": rmse, "nll": -1.0, "time_total_s": 12.3} | more


@pytest.fixture
def progress():
    def make(console):
        progress = SweepProgress("quickstart", Plan("trial", 10, 2, 1, 110, 22, 44.0), console)
        for trial, rmse in (("cartpole-uni-seed0", 0.3), ("cartpole-uni-seed1", 0.2), (f"{LONG}-seed0", 0.1)):
            progress.started(trial)
            progress.round(trial, result(3, rmse))
        progress.round("cartpole-uni-seed0", result(4, 0.5))
        return progress

    return make


@pytest.mark.parametrize("width", WIDTHS)
def test_the_live_block_counts_everything_and_never_wraps(progress, width):
    console = screen(width)
    made = progress(console)
    made.ended("cartpole-uni-seed1", "finished", result(10, 0.2))
    console.print(made.block())
    _, *lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    said = "\n".join(lines)
    assert "3 done, 2 running, 4 left, 1 failed" in said  # 10 in all
    assert re.search(r"quickstart .*23 % +\d+\.\d rounds/min, .* left", said)  # 22 + 4 of 110
    assert re.search(r"^cartpole-uni +1 +0\.2000 +round 4/10", said, re.MULTILINE)
    assert said.index("0.1000") < said.index("0.2000")  # best first


def test_elsewhere_a_finished_trial_is_one_line(progress):
    console = screen(80, terminal=False)
    with progress(console) as made:
        made.ended("cartpole-uni-seed1", "finished", result(10, 0.2))
        made.ended(f"{LONG}-seed0", "stopped", result(4, 0.1))
    first, second = console.file.getvalue().splitlines()
    assert first == "cartpole-uni-seed1  10/10  rmse 0.2000  nll -1.0000  12 s  (3 of 10)"
    assert second.startswith(f"{LONG}-seed0  4/10") and second.endswith("stopped early  12 s  (4 of 10)")


def groups(**columns):
    rows = [
        ("oracle", 0.05, 0, 49), ("paml-pool", 0.11, 10, 13), ("uni", 0.12, 10, 13), ("lhs", 0.10, 3, 6),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["method", "rmse", "added", "tasks"])
    table.insert(0, "experiment", "cartpole")
    for place, (name, value) in enumerate(columns.items()):
        table.insert(2 + place, name, value)
    table.insert(2 + len(columns), "seeds", "2")
    for name in ("nll", "rmse_paper", "nll_paper"):
        table[name] = -table["rmse"] if "nll" in name else table["rmse"]
    for name in ("rmse", "nll", "rmse_paper", "nll_paper"):
        table[f"{name}±"] = 0.01
    return table


@pytest.mark.parametrize("width", WIDTHS)
def test_the_final_table_cuts_no_name_and_marks_the_best(width):
    console = screen(width)
    long = {"model.inducing_inputs": "free", "selection.utility": "integrated_variance"}
    for table in (groups(), groups(**long)):
        console.print(results_table(table, width))
    said = console.file.getvalue()
    assert max(map(len, said.splitlines())) <= width and "…" not in said
    rows = [line.split("│") for line in said.splitlines() if line.count("│") == 8]
    assert "".join(row[3].strip() for row in rows).count("integrated_variance") == 4  # folded, perhaps, but not cut
    assert "paml-pool" in said and "0.1100 ± 0.0100 *" in said
    assert "0.1000 ± 0.0100 *" not in said and "0.0500 ± 0.0100 *" not in said  # fewer tasks; the oracle
    assert "std. dev." in said and "nats" in said
    assert ("rmse_paper" in said) == (width == 140)


def test_names_with_brackets_are_shown_whole(progress):
    console, name = screen(140), "[red]arm[b]"
    table = groups(**{"domain.name": name})
    table["experiment"] = name
    console.print(results_table(table, 140))
    table.loc[0, "experiment"] = "cartpole"
    console.print(results_table(table, 140))
    made = progress(console)
    made.round(f"{name}-uni-seed0", result(1, 0.5))
    console.print(made.block())
    assert console.file.getvalue().count(name) == 1 + 4 + 3 + 4 + 1


def test_the_best_sample_is_a_command():
    table = groups(sample=["a", "b", "c", "d"])
    table["model.inducing"] = [10, 20, 30, 40]
    search = SearchConfig(space={"model.inducing": {"low": 8, "high": 40}})
    best, command = best_sample(table, search, "cartpole")
    assert best == "Best: b, rmse 0.1100"
    assert command == "Run it: python -m distpaml.run cartpole method=paml-pool model.inducing=20"


def test_a_dry_run_lists_the_trials_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*small("methods=[uni, oracle]", "runtime.threads=2", "seeds=1"), "--dry-run", "--out", "out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "quickstart: 2 trials → out",
        "  cartpole-uni-seed0     3 rounds, 2 CPU",
        "  cartpole-oracle-seed0  1 round, 2 CPU",
    ]
    assert lines[3] == "0 of 2 trials done; 2 left, with 4 of 4 rounds to go."
    assert lines[4].startswith("About 1 minute on ") and not list(tmp_path.iterdir())


def test_one_trial_is_not_trials(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*small("methods=[uni]", "seeds=1"), "--dry-run", "--out", "out"]) == 0
    assert "quickstart: 1 trial → out\n" in capsys.readouterr().out
