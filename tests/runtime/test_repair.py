"""A damaged run goes back to its last whole round, says so, keeps what goes, and ends like an undisturbed one."""

import os
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny import SIZE, tiny

from distpaml.errors import UserError
from distpaml.records import read_records
from distpaml.run import main
from distpaml.runtime.repair import repair
from distpaml.runtime.run_experiment import run_to_end

WORDS = ["cartpole", *SIZE, "method=paml-pool", "--wandb", "offline"]
CONFIG = tiny("method=paml-pool")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run from the command line, with report/, tensorboard/ and wandb/ in its folder."""
    path = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETRC", str(path.parent / "no-netrc"))
        assert main([*WORDS, "--out", str(path)]) == 0
    assert {"report", "tensorboard", "wandb"} <= {file.name for file in path.iterdir()}
    return path


@pytest.fixture
def run(whole, tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(whole, tmp_path / "run").name)


def results(path: Path) -> list[dict]:
    return [record.result() for record in read_records(path)]


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def rounds_in(folder: Path) -> dict[str, bytes]:
    """What a run cannot do without."""
    ours = re.compile(r"(damaged-\d+/)?(round-\d\d/.*|records\.jsonl|config\.yaml)")
    return {name: contents for name, contents in contents_of(folder).items() if ours.fullmatch(name)}


def flip(file: Path) -> None:
    contents = bytearray(file.read_bytes())
    contents[len(contents) // 2] ^= 1
    file.write_bytes(contents)


def break_line(file: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1].replace(b'"tasks":4', b'"tasks":5') + lines[2])


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES = {
    "arrays of round 0": ("round-00/arrays.npz", flip, "3 rounds are set aside; the run begins anew"),
    "arrays of round 1": (
        "round-01/arrays.npz",
        flip,
        "the model of round 0 is fitted again, 2 rounds are set aside; the run goes on after round 0",
    ),
    "arrays of round 2": (
        "round-02/arrays.npz",
        Path.unlink,
        "the model of round 1 is fitted again, 1 round is set aside; the run goes on after round 1",
    ),
    "model": (
        "round-02/model.safetensors",
        flip,
        "the model of round 2 is fitted again; the run goes on after round 2",
    ),
    "no model": (
        "round-02/model.safetensors",
        Path.unlink,
        "the model of round 2 is fitted again; the run goes on after round 2",
    ),
    "line": (
        "records.jsonl",
        break_line,
        "the model of round 0 is fitted again, 2 rounds are set aside; the run goes on after round 0",
    ),
    "no records": ("records.jsonl", Path.unlink, "3 rounds are set aside; the run begins anew"),
    "config": ("config.yaml", flip, "config.yaml is written again; the run goes on after round 2"),
    "no config": ("config.yaml", Path.unlink, "config.yaml is written again; the run goes on after round 2"),
    "config that is not text": (
        "config.yaml",
        lambda file: file.write_bytes(b"\xff\xfe"),
        "config.yaml is written again; the run goes on after round 2",
    ),
    "config that is a folder": (
        "config.yaml",
        make_folder,
        "config.yaml is written again; the run goes on after round 2",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_refused_then_repaired_and_ends_like_an_undisturbed_one(run, whole, capsys, damage):
    name, harm, said = DAMAGES[damage]
    harm(run / name)
    before = contents_of(run)
    assert main([*WORDS, "--out", str(run)]) == 2
    refusal = capsys.readouterr().err
    assert refusal.count("\n") == 1 and str(run / name).removesuffix(".npz") in refusal and "--repair" in refusal
    assert contents_of(run) == before
    if "config" in damage:
        assert main(["--repair", "--out", str(run)]) == 2  # which experiment?
        assert "repeat the command that began the run" in capsys.readouterr().err
        assert contents_of(run) == before
        words = [*WORDS, "--repair", "--out", str(run)]
    else:
        words = shlex.split(re.search(r"`python -m distpaml\.run (.*)`", refusal)[1])  # typed as it is
    assert main(words) == 0
    assert f"Repaired: {said}, and what was damaged is in run/damaged-1.\n" in capsys.readouterr().out
    assert results(run) == results(whole)
    now = list(rounds_in(run).values())
    lost = {file for file, contents in rounds_in(whole).items() if contents not in now}
    assert lost <= {name}  # the damage itself, and nothing else
    run_to_end(CONFIG, run)


def test_nothing_that_is_whole_is_touched(run, capsys):
    before = rounds_in(run)
    assert main(["--repair", "--out", str(run)]) == 0
    assert "Nothing is damaged in run.\n" in capsys.readouterr().out and rounds_in(run) == before
    (run / "round-03").mkdir()  # of a run that was killed
    assert repair(CONFIG, run) == "Nothing is damaged in run." and rounds_in(run) == before


def test_another_experiment_is_refused_and_stays_as_it_is(run, capsys):
    (run / "round-01/arrays.npz").write_bytes(b"")
    before = contents_of(run)
    with pytest.raises(UserError, match="holds another experiment: seed is 0 there and 1 here"):
        repair(tiny("method=paml-pool", "seed=1"), run)
    (run / "config.yaml").unlink()
    with pytest.raises(UserError, match="the experiment that is given here is not the one that"):
        repair(tiny("method=paml-pool", "seed=1"), run)
    del before["config.yaml"]
    assert contents_of(run) == before


def test_a_config_that_was_extended_is_written_again(run, whole):
    run_to_end(tiny("method=paml-pool", "rounds=3"), run)
    (run / "config.yaml").unlink()
    repair(tiny("method=paml-pool", "rounds=4"), run)
    run_to_end(tiny("method=paml-pool", "rounds=4"), run)
    assert results(run)[:3] == results(whole) and len(results(run)) == 5


def test_a_model_that_cannot_be_fitted_to_the_same_bits_takes_its_rounds_along(run, whole, monkeypatch):
    """As on another processor: the records would be of another model."""
    (run / "round-02/model.safetensors").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("distpaml.runtime.local.seeds.rng", lambda *_: np.random.default_rng(7))
        said = repair(CONFIG, run)
    assert "the model of round 2 cannot be fitted again, 3 rounds are set aside; the run begins anew" in said
    run_to_end(CONFIG, run)
    assert results(run) == results(whole)


def test_repaired_twice_everything_is_kept(run, whole):
    for number in (1, 2):
        flip(run / "round-02/arrays.npz")
        assert f"run/damaged-{number}." in repair(CONFIG, run)
        run_to_end(CONFIG, run)
    assert results(run) == results(whole)
    assert {folder.name for folder in run.glob("damaged-*/round-02")} == {"round-02"}
    assert len(list(run.glob("damaged-*/round-02/arrays.npz"))) == 2


def test_a_trial_is_mended_where_it_is_and_goes_on_in_its_sweep(run, whole, tmp_path, capsys):
    trial = tmp_path / "sweeps/my sweep/trials/one"
    trial.parent.mkdir(parents=True)
    shutil.move(run, trial)
    (trial.parent.parent / "sweep.yaml").touch()
    flip(trial / "round-02/arrays.npz")
    with pytest.raises(UserError) as refusal:
        run_to_end(CONFIG, trial)
    command = shlex.split(re.search("`(.*)`", str(refusal.value))[1])
    assert command[:3] == ["python", "-m", "distpaml.run"] and main(command[3:]) == 0
    out = capsys.readouterr().out
    assert "continue with: python -m distpaml.sweep --resume 'sweeps/my sweep' --retry-failed\n" in out
    assert len(read_records(trial)) == 2 and "round 2/2" not in out
    run_to_end(CONFIG, trial)
    assert results(trial) == results(whole)


def test_killed_at_any_step_of_a_repair_the_next_one_ends_it(run, whole, monkeypatch):
    class Killed(BaseException):
        pass

    flip(run / "round-01/arrays.npz")
    for at in range(1, 9):
        calls = []

        def deadly(*arguments, real=os.replace, at=at, calls=calls):
            calls.append(1)
            if len(calls) == at:
                raise Killed
            real(*arguments)

        copy = Path(shutil.copytree(run, f"copy-{at}"))
        with monkeypatch.context() as patch:
            patch.setattr("os.replace", deadly)
            try:
                repair(CONFIG, copy)
            except Killed:
                pass
            else:
                break
        repair(CONFIG, copy)
        run_to_end(CONFIG, copy)
        assert results(copy) == results(whole)
    assert at > 3
