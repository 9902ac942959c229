"""A small sweep on a real Ray, from the command line: what it leaves, and that it goes on rather than begin again."""

import json
import shutil
from pathlib import Path

import pytest
from sweeps import SweepProcess, in_process, results, small

from distpaml.config import ExperimentConfig
from distpaml.sweep.__main__ import main

KEY = "0123456789abcdef0123456789abcdef01234567"
METHODS = ("uni", "paml-pool")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    words = small("methods=[uni, paml-pool]", "seeds=2", "wandb=auto", "--out", str(folder / "out"))
    sweep = SweepProcess(*words, cwd=folder, WANDB_API_KEY=KEY, WANDB_BASE_URL="http://127.0.0.1:9").wait()
    assert sweep.code == 0, sweep.err
    assert not sweep.alive()
    sweep.folder = folder / "out"
    return sweep


@pytest.fixture
def copied(finished, tmp_path):
    return Path(shutil.copytree(finished.folder, tmp_path / "copy"))


def bytes_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.glob("trials/*/**/*")) if path.is_file()}


def test_every_trial_has_the_records_of_one_process(finished, tmp_path):
    runs = {f"cartpole-{m}-seed{s}": (f"method={m}", f"seed={s}") for m in METHODS for s in (0, 1)}
    assert results(finished.folder) == in_process(tmp_path, runs)


def test_a_line_per_trial_and_a_table_with_both_measures(finished):
    lines = finished.out.splitlines()
    trials = [line for line in lines if " 2/2 " in line]
    assert len(trials) == 4 and all(" rmse " in line and " nll " in line for line in trials)
    assert trials[-1].endswith("(4 of 4)") and max(map(len, trials)) <= 80
    assert not finished.err
    table = next(line for line in lines if "│ paml-pool " in line and "±" in line)
    values = [
        [run[-1][measure] for name, run in results(finished.folder).items() if "paml-pool" in name]
        for measure in ("rmse", "nll", "rmse_paper", "nll_paper")
    ]
    for a, b in values:
        assert f"{(a + b) / 2:.4f} ± {abs(a - b) / 2:.4f}" in table  # of two values: s / sqrt(2) = |a - b| / 2


def test_a_report_is_written(finished):
    assert (finished.folder / "report" / "index.html").stat().st_size > 10_000
    assert f"Report: {finished.folder.name}/report/index.html\n" in finished.out


def test_the_next_commands_can_be_copied(finished):
    where = finished.folder.name
    for command in (
        f"tensorboard --logdir {where}/tensorboard",
        f"wandb sync --yes {where}/wandb/offline-run-*",
        f"python -m distpaml.results {where} --out all.csv",
        f"python -m distpaml.sweep --resume {where}",
    ):
        assert f"\n  {command}\n" in finished.out
    page = (finished.folder / "README.md").read_text()
    assert "tensorboard --logdir tensorboard\n" in page and "wandb sync --yes wandb/offline-run-*\n" in page


def test_every_trial_has_wandb_and_tensorboard_files(finished):
    assert len(list(finished.folder.glob("wandb/offline-run-*/*.wandb"))) == 4
    assert len(list(finished.folder.glob("tensorboard/*/events.*"))) == 4


def test_no_key_is_written_or_said(finished):
    files = [path for path in finished.folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in finished.out + finished.err


def test_the_journal_says_what_happened(finished):
    events = [json.loads(line) for line in (finished.folder / "events.jsonl").read_text().splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds == ["sweep started", *["trial finished"] * 4, "sweep finished"]


def test_a_finished_sweep_is_not_run_again(copied, capsys):
    before = bytes_of(copied)
    assert main(["--resume", str(copied)]) == 0
    said = capsys.readouterr().out
    assert bytes_of(copied) == before and "±" in said
    assert "4 of 4 trials done; 0 left, with 0 of 12 rounds to go." in said


def test_another_sweep_is_not_mixed_in(copied, capsys):
    assert main([*small("methods=[lhs]"), "--out", str(copied)]) == 2
    assert "holds another sweep" in capsys.readouterr().err


def test_more_seeds_recompute_nothing_that_was_finished(copied):
    before = bytes_of(copied)
    sweep = SweepProcess("--resume", str(copied), "seeds=3", "methods=[uni]", cwd=copied).wait()
    assert sweep.code == 0, sweep.err
    after = bytes_of(copied)
    assert all(after[path] == contents for path, contents in before.items())
    new = {path.relative_to(copied).parts[1] for path in after.keys() - before.keys()}
    assert new == {"cartpole-uni-seed2"}
    events = [json.loads(line) for line in (copied / "events.jsonl").read_text().splitlines()]
    assert [event["trial"] for event in events[6:] if event["trial"]] == ["cartpole-uni-seed2"]


def test_a_changed_experiment_is_refused(copied, capsys):
    assert main(["--resume", str(copied), "model.inducing=41"]) == 2
    said = capsys.readouterr().err
    assert "holds another experiment: model.inducing is 40 there and 41 here" in said
    assert main(["--resume", str(copied)]) == 0  # the sweep is as it was


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--resume", "nowhere"], "has no sweep.yaml"),
        (["quickstart", "--resume", "x"], "no file and no --out"),
        (["quickstar"], "the nearest is quickstart"),
        (["methods=[uni", "--out", "x"], "not valid YAML"),
        (["runtime.threads=65", "--out", "x"], "needs 65 CPU at once"),
        (["runtime.kind=ray", "runtime.workers=99", "--out", "x"], "needs 100 CPU at once"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(tmp_path, words, said):
    sweep = SweepProcess(*words, cwd=tmp_path).wait()
    assert sweep.code == 2 and sweep.err.startswith("error: ") and said in sweep.err
    assert len(sweep.err.splitlines()) == 1 and not list(tmp_path.glob("**/records.jsonl"))


def test_a_trial_that_fails_for_its_own_reason_does_not_stop_the_others(tmp_path):
    words = small("methods=[uni]", "seeds=1", "grid.domain.control_limit=[25.0, 1e6]", "--out", "out")
    sweep = SweepProcess(*words, cwd=tmp_path).wait()
    assert sweep.code == 1
    good, bad = "cartpole-uni-domain.control_limit=25.0-seed0", "cartpole-uni-domain.control_limit=1000000.0-seed0"
    assert {name: len(records) for name, records in results(tmp_path / "out").items()} == {good: 3}
    (sentence,) = [line for line in sweep.out.splitlines() if line.startswith(f"{bad} failed: ")]
    assert "pole_mass" in sentence
    assert "Failed trials run again with: python -m distpaml.sweep --resume out --retry-failed\n" in sweep.out
    again = SweepProcess("--resume", "out", cwd=tmp_path).wait()
    assert again.code == 1 and "/2 " not in again.out and sentence in again.out


def test_trials_may_have_actors_of_their_own(tmp_path):
    words = small("methods=[paml-pool]", "seeds=1", "runtime.kind=ray", "--out", "out")
    sweep = SweepProcess(*words, cwd=tmp_path).wait()
    assert sweep.code == 0, sweep.err
    assert results(tmp_path / "out") == in_process(tmp_path, {"cartpole-paml-pool-seed0": ("method=paml-pool",)})
    assert (
        ExperimentConfig.from_yaml(tmp_path / "out/trials/cartpole-paml-pool-seed0/config.yaml").runtime.kind == "ray"
    )
