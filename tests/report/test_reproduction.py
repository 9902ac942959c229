"""The page about the paper, from files alone."""

import runpy
import shutil
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

import distpaml
from distpaml.report import showcase
from distpaml.report.collect import collect
from distpaml.report.payload import payload
from distpaml.results import main

PAGE = Path(__file__).parents[2] / "notebooks" / "reproduction.py"


@pytest.fixture(scope="module")
def files(sweep_made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    assert main([str(sweep_made), "--out", str(folder)]) == 0
    assert showcase.main([str(sweep_made / "trials" / "cartpole-paml-seed0"), "--out", str(folder)]) == 0
    return folder


def page(results, out, monkeypatch):
    monkeypatch.setenv("DISTPAML_RESULTS", str(results))
    monkeypatch.setattr(sys, "argv", [str(PAGE), str(out)])
    with matplotlib.rc_context():
        runpy.run_path(str(PAGE))
    return (out / "summary.md").read_text(encoding="utf-8"), {path.stem for path in out.glob("*.png")}


def test_the_page_shows_what_there_is_and_names_what_is_missing(files, tmp_path, monkeypatch):
    said, figures = page(files, tmp_path / "out", monkeypatch)
    assert "cartpole, preset distpaml: paml-plus 0 of 10 seeds, uni 3 of 10 seeds, lhs 3 of 10 seeds" in said
    assert "cartpole, preset paper: no runs yet." in said and "cartpole_images, preset distpaml: no runs yet." in said
    assert "| 1 | distpaml | paml | cartpole | " in said and "24 tests in all, not corrected for their number" in said
    assert "### RMSE, seeds 0 to 4 alone" not in said  # no run of the default method
    assert "Claim 4: no runs of a method that chooses yet." in said
    assert "Latent space of experiment (iii): no run is kept for it yet" in said
    expected = {"overview", "curves-cartpole-distpaml", "chosen-cartpole-distpaml", "divisors-distpaml"}
    assert figures == expected | {"predictions-cartpole-distpaml-paml", "decoder-cartpole-distpaml-paml"}


def test_a_run_that_is_not_finished_is_left_out_and_counted(files, tmp_path, monkeypatch):
    """Its first rounds would pull the mean of these rounds only, and bend the curve."""
    rows = pd.read_parquet(files / "cartpole.parquet")
    last = rows["round"] == rows["round"].max()
    cut = rows[~(last & (rows["method"] == "uni") & (rows["seed"] == 0))]
    cut.to_parquet(tmp_path / "cartpole.parquet")
    said, _ = page(tmp_path, tmp_path / "out", monkeypatch)
    assert "Left out: 1 of 13 runs, which are not finished." in said and "uni 2 of 10 seeds" in said
    mean = rows[(rows["method"] == "uni") & (rows["seed"] > 0) & (rows["round"] == 0)]["rmse"].mean()
    assert f"| cartpole | distpaml | uni | 2 | {mean:.3f} |" in said


def test_without_any_file_the_page_says_so(tmp_path, monkeypatch):
    said, figures = page(tmp_path, tmp_path / "out", monkeypatch)
    assert said.count("no runs yet.") == 13 and not figures


def test_the_released_reading_stands_beside_the_numbers_of_the_authors_code(files, tmp_path, monkeypatch):
    shutil.copy(files / "cartpole.parquet", tmp_path / "released.parquet")
    said, figures = page(tmp_path, tmp_path / "out", monkeypatch)
    means = distpaml.results(files / "cartpole.parquet").groupby(["method", "round"])["rmse_paper"].mean()
    shown = " | ".join(f"{means['uni', number]:.3f}" for number in (0, 1, 2))
    assert f"| uni | 3 | {shown} |" in said and "| uni, the authors' code | 1 | 0.792 | 0.600 | 0.595 |" in said
    assert "a constant on the tasks of uni, the authors' code | 1 | 1.758 | 1.567 | 1.615 |" in said
    assert "| cartpole | released | uni | 3 |" in said and "| 1 | released | paml | cartpole |" in said
    assert {"curves-cartpole-released", "divisors-released"} <= figures


def test_utilities_stand_beside_lhs(files, tmp_path, monkeypatch):
    shutil.copy(files / "cartpole.parquet", tmp_path / "league.parquet")
    said, _ = page(tmp_path, tmp_path / "out", monkeypatch)
    mean = distpaml.results(files / "cartpole.parquet").groupby("method")["rmse"].mean()
    assert f"| uni | {mean['uni']:.3f} | {mean['uni'] / mean['lhs']:.3f} |" in said


def test_means_errors_and_areas_are_those_of_the_rows(files):
    """Recomputed from the data frame, without the report's code."""
    entry = payload(collect([files / "cartpole.parquet"]))["experiments"][0]
    table = distpaml.results(files / "cartpole.parquet").query("method == 'lhs'")
    (number,) = (n for n, group in enumerate(entry["groups"]) if group["method"] == "lhs")
    for measure in ("rmse", "nll_paper"):
        grouped = table.groupby("added")[measure]
        shown = entry["groups"][number]["measures"][measure]
        assert shown["mean"] == pytest.approx(grouped.mean().tolist(), rel=1e-5)
        assert shown["error"] == pytest.approx((grouped.std() / grouped.count() ** 0.5).tolist(), rel=1e-5)
        curves = table.pivot(index="seed", columns="added", values=measure).to_numpy()
        areas = ((curves[:, :-1] + curves[:, 1:]) / 2).mean(axis=1)  # steps of one task
        (row,) = (row for row in entry["table"][measure] if row["group"] == number)
        assert row["area"] == pytest.approx([areas.mean(), areas.std(ddof=1) / len(areas) ** 0.5], rel=1e-5)


def test_verdicts_of_files_are_those_of_the_sweep(files, sweep_made):
    there, here = (payload(collect([path])) for path in (sweep_made, files))
    assert [entry["claims"] for entry in here["experiments"]] == [entry["claims"] for entry in there["experiments"]]
    assert here["problems"] == [] and here["details"] == {}


def test_the_divisor_is_the_geometric_mean_of_standard_deviations(sweep_made):
    """exp(nll − nll_paper), the second trap's figure, from the data themselves."""
    from distpaml.config import ExperimentConfig
    from distpaml.data.tasks import TaskSet
    from distpaml.records import read_data
    from distpaml.runtime.local import LocalSimulator

    run = sweep_made / "trials" / "cartpole-uni-seed0"
    config = ExperimentConfig.from_yaml(run / "config.yaml")
    test = LocalSimulator(config).simulate(TaskSet(config).test()).result()
    trained, tested = (data.targets.reshape(-1, 4).std(axis=0) for data in (read_data(run, 1), test))
    row: pd.Series = distpaml.results(run).set_index("round").loc[1]
    assert np.exp(row["nll"] - row["nll_paper"]) == pytest.approx(np.exp(np.log(trained / tested).mean()), rel=1e-6)
