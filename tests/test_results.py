"""Results as one table, in Python and from the shell."""

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from sealing import reseal
from tiny import tiny

import distpaml
from distpaml.catalogue import MEASURES
from distpaml.errors import UserError
from distpaml.records import read_records
from distpaml.report.__main__ import main as report
from distpaml.runtime.run_experiment import run_to_end


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    for name, overrides in {"a": ["method=uni"], "b": ["method=uni", "model.inducing=30"], "c": ["method=lhs"]}.items():
        run_to_end(tiny("rounds=1", *overrides), path / name)
    return path


def test_a_row_is_a_round_with_everything_that_was_recorded(folder):
    table = distpaml.results(folder)
    assert len(table) == 6 and table["run"].tolist() == ["a", "a", "b", "b", "c", "c"]
    assert table["model.inducing"].tolist() == [40, 40, 30, 30, 40, 40]
    record = read_records(folder / "b")[1]
    row = table.query("run == 'b' and round == 1").iloc[0]
    assert all(row[measure] == getattr(record, measure) for measure in MEASURES)
    assert (row["tasks"], row["added"], row["terms.elbo"]) == (record.tasks, 1, record.terms["elbo"])
    assert row["seconds.fit"] == record.seconds["fit"]


def test_choices_are_exploded_on_request(folder):
    table = distpaml.results([folder / "a", folder / "c" / "records.jsonl"], choices=True)
    assert len(table) == 8 and table["task"].tolist() == [0, 1, 2, 3] * 2
    added = [added.task for record in read_records(folder / "c") for added in record.added]
    assert table.query("method == 'lhs'")[["pole_mass", "pole_length"]].to_numpy().tolist() == [list(a) for a in added]


def test_a_damaged_run_is_left_out_with_a_warning(folder, tmp_path):
    (tmp_path / "good").symlink_to(folder / "a")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "records.jsonl").write_text("nonsense\n")
    with pytest.warns(UserWarning, match="bad: It is left out"):
        assert len(distpaml.results(tmp_path)) == 2


def test_a_folder_that_must_not_be_read_costs_nobody_elses_results(folder, tmp_path):
    hidden = tmp_path / "lost+found"
    (tmp_path / "good").symlink_to(folder / "a")
    hidden.mkdir(mode=0)
    obedient = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []

    def python(*words):
        command = [*obedient, sys.executable, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)

    read = python("-m", "distpaml.results", ".")
    assert len(read.stdout.splitlines()) == 3 and "found: It cannot be read: Permission denied" in read.stderr
    load = python("-c", "import distpaml; distpaml.load_run('lost+found')")
    assert "UserError: lost+found cannot be read: Permission denied" in load.stderr
    assert python("-m", "distpaml.report", "lost+found", "--out", "report").returncode == 0


@pytest.mark.filterwarnings("default")
def test_names_do_not_steer_the_terminal_and_data_stay_data(folder, tmp_path, monkeypatch, capsys):
    odd = tmp_path / "\x1b[31modd"
    shutil.copytree(folder / "a", odd / "\x1b[32mrun")
    (odd / "bad").mkdir()
    (odd / "bad" / "records.jsonl").write_text("nonsense\n")
    main = import_module("distpaml.results").main
    assert main([str(odd)]) == 0
    piped = capsys.readouterr()
    assert "\x1b[32mrun" in piped.out and r"\x1b[31modd" in piped.err and "\x1b" not in piped.err
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main([str(odd)]) == 0
    assert capsys.readouterr().out == piped.out.replace("\x1b", r"\x1b")
    for words in ([str(odd / "all.csv")], [str(odd / "all.parquet")], [str(odd)]):
        assert main([str(folder / "a"), "--out", *words]) == 0
    assert report([str(folder / "a"), "--out", str(odd / "report")]) == 0
    shown = capsys.readouterr().out
    assert shown.count(r"\x1b[31modd") == 4 and "\x1b" not in shown


@pytest.mark.parametrize("kept", [0, 1])
def test_lines_that_are_gone_are_not_left_out_silently(folder, tmp_path, kept):
    run = Path(shutil.copytree(folder / "a", tmp_path / "runs/a"))
    (tmp_path / "runs/c").symlink_to(folder / "c")
    (run / "round-02").mkdir()
    lines = (run / "records.jsonl").read_bytes().splitlines(keepends=True)
    (run / "records.jsonl").write_bytes(b"".join(lines[:kept]))
    with pytest.warns(UserWarning, match="a: Its records have lost their end: round 2 is there, but has no line"):
        assert len(distpaml.results(tmp_path / "runs").query("run == 'a'")) == kept


def test_nothing_to_show_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="has no run with a finished round"):
        distpaml.results(tmp_path)
    with pytest.raises(UserError, match="nowhere is not a directory"):
        distpaml.results(tmp_path / "nowhere")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_writes_the_same_table(folder, tmp_path, suffix):
    out = tmp_path / f"x.{suffix}"
    command = [sys.executable, "-m", "distpaml.results", str(folder), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "") and "6 rows" in done.stdout
    read = distpaml.results(out) if suffix == "csv" else pd.read_parquet(out).drop(columns=["chosen", "config"])
    pd.testing.assert_frame_equal(read, distpaml.results(folder), check_dtype=False)


def test_names_that_look_like_numbers_are_names(folder, tmp_path):
    export(folder, tmp_path / "x.csv")
    table = pd.read_csv(tmp_path / "x.csv").assign(experiment="001", **{"versions.commit": "567975118e81"})
    table.to_csv(tmp_path / "x.csv", index=False)
    read = distpaml.results(tmp_path / "x.csv")
    assert set(read["experiment"]) == {"001"} and set(read["versions.commit"]) == {"567975118e81"}


def test_a_wrong_suffix_is_one_sentence(folder, capsys):
    from distpaml.results import main

    assert main([str(folder), "--out", "x.xls"]) == 2
    assert capsys.readouterr().err == "error: --out is x.xls, but should end in .csv or .parquet.\n"
    assert callable(distpaml.results)  # although its module was imported


def export(source, out, *options):
    from distpaml.results import main

    assert main([str(source), "--out", str(out), *options]) == 0


@pytest.mark.parametrize("choices", [False, True])
def test_a_file_and_a_folder_of_files_read_as_the_runs_do(folder, tmp_path, choices):
    export(folder, tmp_path / "results")
    asked = distpaml.results(folder, choices)
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["cartpole.parquet"]
    for source in (tmp_path / "results", tmp_path / "results" / "cartpole.parquet"):
        read = distpaml.results(source, choices).sort_values(["run", "round"], kind="stable", ignore_index=True)
        pd.testing.assert_frame_equal(read, asked)


def test_a_file_holds_every_record_and_config_whole(folder, tmp_path):
    from distpaml.report.collect import collect

    export(folder, tmp_path / "x.parquet")
    there, back = (collect([path]).runs for path in (folder, tmp_path / "x.parquet"))
    assert [(run.name, run.config, run.records) for run in back] == [(r.name, r.config, r.records) for r in there]
    raw = pd.read_parquet(tmp_path / "x.parquet")
    assert raw["preset"].unique().tolist() == ["distpaml"] and raw["versions.torch"].notna().all()
    assert [len(chosen) for chosen in raw["chosen"]] == [3, 1] * 3


def test_merging_adds_runs_replaces_the_same_ones_and_does_not_depend_on_the_order(folder, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for name in "abc":
        export(folder / name, one)
    for name in "cabca":
        export(folder / name, two)
    assert (one / "cartpole.parquet").read_bytes() == (two / "cartpole.parquet").read_bytes()
    assert sorted(distpaml.results(one)["run"].unique()) == ["a", "b", "c"]
    longer = tmp_path / "longer"
    run_to_end(tiny("rounds=2", "method=uni"), shutil.copytree(folder / "a", longer))  # the same run, continued
    export(longer, one)
    assert distpaml.results(one).groupby("run").size().to_dict() == {"b": 2, "c": 2, "longer": 3}


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda t: t.iloc[:0], "its first row is not of round 0"),
        (lambda t: t.iloc[1:], "its first row is not of round 0"),
        (lambda t: t.assign(config="[" * 100_000), "recursion"),
        (lambda t: t.assign(rmse=[*t["rmse"][:-1], None]), "was written by another version"),
    ],
)
def test_a_damaged_file_is_left_out_and_never_replaced(folder, tmp_path, capsys, damage, said):
    both, file = [str(folder / "a"), str(folder / "c")], tmp_path / "cartpole.parquet"
    assert import_module("distpaml.results").main([*both, "--out", str(tmp_path)]) == 0
    damage(pd.read_parquet(file)).to_parquet(file)
    before = file.read_bytes()
    with pytest.warns(UserWarning, match=f"cartpole.parquet: It is left out.*{said}"), pytest.raises(UserError):
        distpaml.results(file)
    capsys.readouterr()
    assert import_module("distpaml.results").main([str(folder / "b"), "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.endswith("move it away or choose another --out.\n") and error.count("\n") == 1
    assert file.read_bytes() == before


def test_a_commit_is_given_to_runs_that_did_not_record_it(folder, tmp_path):
    old = shutil.copytree(folder / "a", tmp_path / "old")
    reseal(old, [json.loads(line) | {"versions": {}} for line in (old / "records.jsonl").read_text().splitlines()])
    export(tmp_path, tmp_path / "x.parquet", "--commit", "abc123")
    assert distpaml.results(tmp_path / "x.parquet")["versions.commit"].tolist() == ["abc123"] * 2
    export(folder, tmp_path / "y.parquet", "--commit", "abc123")
    assert "abc123" not in distpaml.results(tmp_path / "y.parquet")["versions.commit"].tolist()


def test_a_csv_file_is_read_as_it_is(folder, tmp_path):
    export(folder, tmp_path / "x.csv")
    read = pd.read_csv(tmp_path / "x.csv", dtype={"versions.commit": str})  # which may have digits only
    pd.testing.assert_frame_equal(distpaml.results(tmp_path / "x.csv"), read)
    assert len(distpaml.results([tmp_path / "x.csv", folder / "a"])) == 8
    with pytest.raises(UserError, match=r"x\.csv has a row per round, not per chosen task"):
        distpaml.results(tmp_path / "x.csv", choices=True)


def test_files_of_something_else_are_a_sentence(tmp_path):
    (tmp_path / "bad.parquet").write_text("nonsense")
    pd.DataFrame({"round": [0], "run": ["a"]}).to_parquet(tmp_path / "table.parquet")
    with (
        pytest.warns(UserWarning, match="bad.parquet cannot be read: it is not a parquet file"),
        pytest.warns(UserWarning, match="table.parquet is not a file of runs: it has no column chosen"),
        pytest.raises(UserError, match="has no run with a finished round"),
    ):
        distpaml.results(tmp_path)
    with pytest.raises(UserError, match="the list of sweeps, runs and files is empty"):
        distpaml.results([])
    with pytest.raises(UserError, match=r"nowhere\.parquet is not a file"):
        distpaml.results(tmp_path / "nowhere.parquet")
