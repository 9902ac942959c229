"""Killed at any moment, an experiment loses nothing that was returned, and goes on as if nothing had happened."""

import multiprocessing
import shutil
import signal
from pathlib import Path

import pytest
from deadly import die_at_fsync
from spring import declared, run

from distpaml import Experiment
from distpaml.ask_tell.__main__ import main
from distpaml.ask_tell.journal import Journal
from distpaml.ask_tell.models import Models
from distpaml.durable_io import locked
from distpaml.errors import UserError

SMALL = declared(model={"inducing": 10}, fit={"evaluations": 3}, selection={"pool_size": 16})
ELSEWHERE = {"mass": 1.25, "stiffness": 2.0}
STEPS = [
    lambda e: e.ask(2),
    lambda e: e.tell(1, run(e.status().tasks[0].descriptor)),
    lambda e: e.fail(2, "no power"),
    lambda e: e.attach(ELSEWHERE, run(ELSEWHERE)),
    lambda e: e.ask(2),  # from here on with a model
    lambda e: e.tell(4, run(e.status().tasks[3].descriptor)),
    lambda e: e.ask(),
]


def go_on(folder: Path, returned: Path | None = None) -> None:
    """The steps that are not in the journal; `returned` has a line for each that came back."""
    experiment = Experiment(SMALL, folder)
    for step in STEPS[len(experiment.history()) :]:
        step(experiment)
        if returned:
            with open(returned, "a") as file:
                file.write("done\n")


def story(folder: Path) -> list[dict]:
    return [event.model_dump(exclude={"at"}) for event in Experiment.load(folder).history()]


def _die(folder: Path, returned: Path, at: int) -> None:
    """Go on in a process that kills itself at its `at`-th fsync, before or after it took place."""
    die_at_fsync(at)
    go_on(folder, returned)


def _process(target, *arguments) -> multiprocessing.Process:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["distpaml.ask_tell.experiment", "distpaml.ask_tell.ranking", "spring"])
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "experiment"
    go_on(folder)
    return folder


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_fsyncs(tmp_path, undisturbed, stride):
    whole, at, killed = story(undisturbed), 0, True
    while killed:
        at += stride
        folder, returned = tmp_path / str(at), tmp_path / f"{at}.txt"
        process = _process(_die, folder, returned, at)
        process.join()
        killed = process.exitcode == -signal.SIGKILL
        came_back = len(returned.read_text().splitlines()) if returned.exists() else 0
        if (folder / "experiment.yaml").exists():
            kept = story(folder)
            assert kept == whole[: len(kept)] and came_back <= len(kept) <= came_back + 1
        go_on(folder)
        assert story(folder) == whole
    assert at > 20


def test_a_line_that_was_cut_off_anywhere_is_dropped(tmp_path, undisturbed):
    contents = (undisturbed / "journal.jsonl").read_bytes()
    last = len(contents.splitlines(keepends=True)[-1])
    for cut in (1, 2, last // 2, last - 1):
        folder = Path(shutil.copytree(undisturbed, tmp_path / str(cut)))
        (folder / "journal.jsonl").write_bytes(contents[:-cut])
        assert story(folder) == story(undisturbed)[:-1]
        assert (folder / "journal.jsonl").read_bytes() == contents[:-cut]  # looking changes nothing
        go_on(folder)
        assert story(folder) == story(undisturbed)


def test_killed_in_the_middle_of_a_fit(tmp_path, undisturbed, monkeypatch):
    folder = tmp_path / "experiment"

    class Killed(BaseException):
        pass

    def deadly(*arguments):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Models, "_fit", deadly)
        with pytest.raises(Killed):
            go_on(folder)
    assert len(story(folder)) == 4
    go_on(folder)
    assert story(folder) == story(undisturbed)


def test_damage_is_named(tmp_path, undisturbed):
    folder = Path(shutil.copytree(undisturbed, tmp_path / "experiment"))
    journal, declaration, data = folder / "journal.jsonl", folder / "experiment.yaml", folder / "data" / "0002.npz"
    lines = journal.read_bytes().splitlines(keepends=True)
    for damaged, number in (
        ([*lines[:2], b"{}\n", *lines[3:]], 3),
        (lines[1:], 1),
        ([*lines[:2], lines[2].replace(b"no power", b"no bower"), *lines[3:]], 3),
    ):
        journal.write_bytes(b"".join(damaged))
        with pytest.raises(UserError, match=f"journal.jsonl is damaged in line {number}, .* `distpaml repair"):
            Experiment.load(folder)
        assert journal.read_bytes() == b"".join(damaged)
    journal.write_bytes(b"".join(lines))
    whole = declaration.read_text()
    declaration.write_text(whole.replace("seed: 0", "seed: 1"))
    with pytest.raises(UserError, match=r"experiment.yaml is damaged: .* restore it from a copy"):
        Experiment.load(folder)
    declaration.write_text(whole)
    (model,) = folder.glob("model-*")
    model.write_bytes(model.read_bytes()[:-1] + b"!")
    with pytest.raises(UserError, match=r"model-.* is damaged: .* delete it, and it will be fitted again"):
        Experiment.load(folder).ask()
    model.unlink()
    data.write_bytes(data.read_bytes()[:-1] + b"!")
    with pytest.raises(UserError, match=r"0002.npz is damaged: .* .distpaml fail 1 damaged."):
        Experiment.load(folder).ask()


def test_a_damaged_journal_is_cut_only_when_asked_and_nothing_is_lost(tmp_path, undisturbed, capsys):
    folder = Path(shutil.copytree(undisturbed, tmp_path / "experiment"))
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:3], lines[3].replace(b"1.25", b"1.26"), *lines[4:]])
    journal.write_bytes(damaged)
    told = {number: (folder / "data" / f"{number:04d}.npz").read_bytes() for number in (2, 4, 6)}
    (folder / "damaged-1").symlink_to("nowhere")
    for name in ("0002 (copy).npz", "2.npz", "٠٠٠٩.npz", "notes.txt"):
        (folder / "data" / name).write_bytes(b"somebody else's")
    assert main(["repair", "--dir", str(folder)]) == 0
    assert capsys.readouterr().out == f"Kept 3 lines; the rest is in {folder / 'damaged-2'}.\n"
    assert (folder / "damaged-2" / "journal.jsonl").read_bytes() == damaged
    aside = {int(file.stem): file.read_bytes() for file in (folder / "damaged-2" / "data").iterdir()}
    assert aside == {4: told[4], 6: told[6]}
    assert story(folder) == story(undisturbed)[:3]
    go_on(folder)
    assert story(folder) == story(undisturbed)
    assert main(["repair", "--dir", str(folder)]) == 0
    assert "All 7 lines are whole" in capsys.readouterr().out
    Experiment.load(folder).save(tmp_path / "copy")
    assert all(len(file.stem) == 4 for file in (tmp_path / "copy/data").iterdir())


def test_where_there_is_no_experiment_nothing_is_repaired(tmp_path, capsys):
    assert main(["repair", "--dir", str(tmp_path / "nothing")]) == 2
    assert "is not the directory of an experiment: it has no experiment.yaml" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()


def _work(folder: Path, rounds: int) -> None:
    experiment = Experiment.load(folder)
    for _ in range(rounds):
        (task,) = experiment.ask()
        experiment.tell(task.id, run(task.descriptor, steps=5))


def test_two_processes_take_turns(tmp_path):
    experiment = Experiment({**SMALL, "initial": 100}, tmp_path / "experiment")
    processes = [_process(_work, tmp_path / "experiment", 6) for _ in range(2)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    tasks = experiment.status().tasks
    assert [task.id for task in tasks] == list(range(1, 13)) and {task.state for task in tasks} == {"observed"}
    assert len({tuple(task.descriptor.values()) for task in tasks}) == 12


def test_who_waits_too_long_is_told(tmp_path, monkeypatch):
    from distpaml.ask_tell import journal

    monkeypatch.setattr(journal, "PATIENCE", 0.1)
    experiment = Experiment(SMALL, tmp_path / "experiment")
    with locked(experiment.directory, "A test"), pytest.raises(UserError, match="Another process is writing"):
        experiment.ask()
    assert len(experiment.ask()) == 1


@pytest.mark.parametrize("kept", [None, 0, 1, 2])
def test_a_journal_that_lost_its_end_is_not_taken_for_a_shorter_one(tmp_path, kept):
    experiment = Experiment(declared(initial=10), tmp_path / "lab")
    for task in experiment.ask(3):
        experiment.tell(task.id, run(task.descriptor))
    file = tmp_path / "lab/journal.jsonl"
    if kept is None:
        file.unlink()
    else:
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:kept]))
    kept = kept or 0
    with pytest.raises(UserError, match=rf"ends after line {kept}, but data/0004.npz belongs to a later one.*repair"):
        Experiment.load(tmp_path / "lab")
    lines, aside = Journal(tmp_path / "lab").repair()
    assert lines == kept == len(Experiment.load(tmp_path / "lab").history())
    assert (aside / "data/0004.npz").exists()
