"""Results as one table, in Python and from the shell."""

import subprocess
import sys

import pandas as pd
import pytest
from tiny import tiny

import distpaml
from distpaml.catalogue import MEASURES
from distpaml.errors import UserError
from distpaml.records import read_records
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


def test_nothing_to_show_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="has no run with a finished round"):
        distpaml.results(tmp_path)
    with pytest.raises(UserError, match="nowhere is not a directory"):
        distpaml.results(tmp_path / "nowhere")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_writes_the_same_table(folder, tmp_path, suffix):
    out = tmp_path / f"x.{suffix}"
    command = [sys.executable, "-m", "distpaml.results", str(folder), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and "6 rows" in done.stdout
    read = pd.read_csv(out) if suffix == "csv" else pd.read_parquet(out)
    pd.testing.assert_frame_equal(read, distpaml.results(folder), check_dtype=False)


def test_a_wrong_suffix_is_one_sentence(folder, capsys):
    from distpaml.results import main

    assert main([str(folder), "--out", "x.xls"]) == 2
    assert capsys.readouterr().err == "error: --out is x.xls, but should end in .csv or .parquet.\n"
    assert callable(distpaml.results)  # although its module was imported
