import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from many import SMALL
from sealing import reseal
from tiny import SIZE, tiny

from distpaml.report import write_report
from distpaml.report.__main__ import main
from distpaml.report.collect import collect
from distpaml.report.groups import experiments
from distpaml.runtime.run_experiment import run_to_end


def tree_of(page: Path) -> dict:
    """The data of a page, as its script reads them."""
    text = page.read_text()
    begin = text.index('id="data">') + len('id="data">')
    return json.loads(text[begin : text.index("</script>", begin)])


def test_what_is_damaged_is_named_and_the_rest_is_reported(sweep):
    trials = sweep / "trials"
    runs = len(list(trials.iterdir()))
    (trials / "cartpole-paml-seed0" / "config.yaml").write_text("name: [")
    lines = (trials / "cartpole-paml-seed1" / "records.jsonl").read_bytes().splitlines(keepends=True)
    (trials / "cartpole-paml-seed1" / "records.jsonl").write_bytes(lines[0] + b'{"round": 1}\n' + lines[2])
    cut = trials / "cartpole-uni-seed0" / "records.jsonl"
    cut.write_bytes(cut.read_bytes()[:-40])
    (trials / "cartpole-uni-seed1" / "records.jsonl").write_bytes(lines[1])
    (trials / "cartpole-lhs-seed0" / "config.yaml").write_text("seed: 3\n")
    (trials / "cartpole-lhs-seed1" / "records.jsonl").unlink()
    (trials / "cartpole-lhs-seed2" / "round-02" / "arrays.npz").write_bytes(b"no zip")
    (trials / "fresh").mkdir()
    (trials / "fresh" / "lock").touch()
    (sweep / "events.jsonl").write_text('{"event": "trial failed", "trial": "x"}\nno json\n[1]\n' + "[" * 100_000)
    tree = tree_of(write_report([sweep, sweep / "nowhere"], sweep / "report"))
    said = {Path(problem["path"]).name: problem["said"] for problem in tree["problems"]}
    assert said.keys() == {
        *("cartpole-paml-seed0", "cartpole-paml-seed1", "cartpole-uni-seed0", "cartpole-uni-seed1"),
        *("cartpole-lhs-seed0", "cartpole-lhs-seed2", "events.jsonl", "nowhere"),
    }
    assert "is not valid YAML" in said["cartpole-paml-seed0"]
    assert "records.jsonl is damaged" in said["cartpole-paml-seed1"]
    assert "cut off" in said["cartpole-uni-seed0"]
    assert "records.jsonl is damaged in line 1" in said["cartpole-uni-seed1"]
    assert "name is None" in said["cartpole-lhs-seed0"]
    assert "arrays.npz is damaged" in said["cartpole-lhs-seed2"]
    assert said["events.jsonl"] == "3 of its lines cannot be read."
    assert {Path(path).name for path in tree["waiting"]} == {"fresh", "cartpole-lhs-seed1"}
    assert tree["runs"] == runs - 5  # four damaged, one without records; the cut one and the one without arrays count
    cartpole = next(entry for entry in tree["experiments"] if entry["name"] == "cartpole")
    assert {group["label"]: group["seeds"] for group in cartpole["groups"]} == {
        "paml": [2],
        "paml-pool": [0, 1, 2],
        "uni": [0, 2],
        "lhs": [2],
        "oracle": [0],
    }
    assert [run["rounds"] for run in cartpole["runs"] if run["name"] == "cartpole-uni-seed0"] == [1]


def test_sweeps_runs_and_folders_of_runs_are_found_once(sweep_made, tmp_path):
    trials = sweep_made / "trials"
    shutil.copytree(trials / "cartpole-uni-seed0", tmp_path / "a" / "deep" / "one")
    shutil.copytree(trials / "cartpole-uni-seed1", tmp_path / "a" / "two")
    assert {run.name for run in collect([tmp_path / "a"]).runs} == {"one", "two"}
    assert [run.name for run in collect([tmp_path / "a" / "two"]).runs] == ["two"]
    both = collect([tmp_path / "a" / "two", tmp_path])
    assert sorted(run.name for run in both.runs) == ["one", "two"]
    assert len(collect([sweep_made, trials, trials / "cartpole-uni-seed0"]).runs) == len(list(trials.iterdir()))


def test_the_same_experiment_and_seed_counts_once(sweep_made, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(sweep_made / "trials" / "cartpole-uni-seed0", tmp_path / name)
    found = collect([tmp_path])
    (experiment,) = experiments(found)
    assert [run.name for run in experiment.runs] == ["one"]
    assert [Path(problem.path).name for problem in found.problems] == ["two"]


def test_keys_that_differ_make_variants(sweep_made, tmp_path):
    for inducing in (25, 50):
        for method in ("uni", "lhs"):
            run = shutil.copytree(sweep_made / "trials" / f"cartpole-{method}-seed0", tmp_path / f"{method}{inducing}")
            text = (run / "config.yaml").read_text().replace("inducing: 25", f"inducing: {inducing}")
            (run / "config.yaml").write_text(text)
            reseal(run)
    (experiment,) = experiments(collect([tmp_path]))
    labels = [group.label for group in experiment.groups]
    assert labels == ["uni inducing=25", "uni inducing=50", "lhs inducing=25", "lhs inducing=50"]
    assert experiment.baseline(experiment.groups[3], "uni") is experiment.groups[1]


def test_the_command_writes_where_it_is_told_and_says_where(sweep_made, tmp_path, capsys):
    run = shutil.copytree(sweep_made / "trials" / "cartpole-uni-seed0", tmp_path / "run")
    assert main([str(run)]) == 0
    assert capsys.readouterr().out == f"Report: {run / 'report' / 'index.html'}\n"
    assert main([str(run), "--out", str(tmp_path / "here"), "--figures"]) == 0
    assert (tmp_path / "here" / "index.html").exists()
    figures = {path.name for path in (tmp_path / "here" / "figures").iterdir()}
    assert {"cartpole-curves.pdf", "cartpole-curves.png", "cartpole-latent.pdf", "cartpole-chosen.png"} <= figures
    assert (tmp_path / "here" / "figures" / "cartpole-curves.pdf").read_bytes().startswith(b"%PDF")
    assert main([str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.endswith("is not a directory; name that of a sweep or of a run.\n")
    (tmp_path / "file").touch()
    assert main([str(run), "--out", str(tmp_path / "file" / "x")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_directory_without_runs_has_a_page_too(tmp_path):
    tree = tree_of(write_report([tmp_path], tmp_path / "report"))
    assert tree["experiments"] == [] and tree["runs"] == 0


def test_a_report_in_a_run_does_not_disturb_the_run(sweep_made, tmp_path):
    run = shutil.copytree(sweep_made / "trials" / "cartpole-uni-seed0", tmp_path / "run")
    write_report([run], run / "report")
    records = run_to_end(tiny("method=uni", "seed=0", *SMALL), run)
    assert len(records) == 3


@pytest.mark.slow
def test_the_report_of_a_sweep_as_the_command_leaves_it(tmp_path):
    """Not of a directory made by hand: locks, journals and all."""
    values = dict(text.split("=") for text in (*SIZE, *SMALL))
    sets = "".join(f"  {key}: {value}\n" for key, value in values.items())
    (tmp_path / "two.yaml").write_text(f"methods: [uni, lhs]\nseeds: 2\nwandb: 'off'\noverrides:\n{sets}")
    command = [sys.executable, "-m", "distpaml.sweep", str(tmp_path / "two.yaml"), "--out", str(tmp_path / "out")]
    environment = os.environ | {"RAY_AUTH_MODE": "disabled"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "out" / "report" / "index.html"
    assert f"Report: {page}" in done.stdout
    tree = tree_of(page)
    assert (tree["runs"], tree["complete"], tree["problems"], tree["waiting"]) == (4, 4, [], [])
    (sweep,) = tree["sweeps"]
    assert (sweep["trials"], sweep["complete"], sweep["counts"]["trial finished"]) == (4, 4, 4)
    (entry,) = tree["experiments"]
    assert [group["label"] for group in entry["groups"]] == ["uni", "lhs"]
