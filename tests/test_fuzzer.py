"""A fuzzer of all that comes from outside: configs, overrides, sweeps, declarations, recordings, and damaged files.

Whatever it is, it is taken, and then kept as it was understood, or it is refused in one printable sentence; within ten
seconds, and without a change to what is on disk. What was damaged is then repaired, and nothing is lost by that. A few
cases of each kind run with the fast tests, 12 000 with `pytest -m slow tests/test_fuzzer.py`, 1200 in CI.
"""

import os
import shutil
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from spring import declared, run
from tiny import tiny

from distpaml import Experiment
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.journal import Journal
from distpaml.ask_tell.learning import LearningPoint
from distpaml.ask_tell.recordings import record
from distpaml.config import ExperimentConfig, load, shipped
from distpaml.config.load import worked_examples
from distpaml.config.validation_errors import dotted_keys
from distpaml.config.yaml_text import dump
from distpaml.errors import UserError
from distpaml.records import read_records
from distpaml.runtime.repair import repair
from distpaml.runtime.run_experiment import run_to_end
from distpaml.sweep.load import load_sweep, shipped_sweeps, to_yaml
from distpaml.sweep.schema import SweepConfig
from distpaml.sweep.trials import grid_trials, search_corners

FEW, MANY = 40, 200 if "CI" in os.environ else 2_000  # cases of each of the six kinds

SCALARS = st.sampled_from(
    ["", "~", "null", "true", "no", "0", "1", "-1", "2", "3.5", "1e-9", "1e308", "-1e308", "1e999", ".nan", "-.inf",
     "9" * 30, "9" * 400, "9" * 5000, "0x10", "010", "1_000", "paml", "uni", "lhs", "cartpole", "ray", "auto", "off",
     "''", '"\\e[31m"', '"\\u202e"', '"a\\0b"', "!!bool x", "!!float ''", "!!int 1.5", "!!timestamp x", "!!set {a}",
     "!!binary '?'", "!!python/name:os.system", "&a [*a]", "*b", "&b x", "&b [1, 2]", "<<", "? x", "- x", "a: b", "%",
     "@", "`", "|", ">", "[", "]", "{", "}", "'", "os:path", "a:b", ":", "../../etc/passwd", "/dev/zero",
     "mine.yaml", "x" * 5000]
) | st.text(max_size=12)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(SCALARS, inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=8,
)
CONFIG_KEYS, DECLARATION_KEYS = tuple(dotted_keys(ExperimentConfig)), tuple(dotted_keys(Declaration))
SWEEP_KEYS = (*dotted_keys(SweepConfig), "include", "parts")


def keys(valid):
    """Valid dotted keys, and some that are nearly so."""
    return st.sampled_from(valid) | st.sampled_from(valid).map(lambda key: key + "x") | st.text(max_size=8)


@st.composite
def damaged(draw, contents: bytes) -> bytes:
    """Bytes with a few of them changed, taken out, put in, repeated or cut off."""
    for _ in range(draw(st.integers(1, 3))):
        here = draw(st.integers(0, len(contents)))
        there = min(len(contents), here + draw(st.sampled_from([0, 1, 1, 4, 64, 10_000])))
        piece = draw(st.binary(max_size=4) | st.sampled_from([b"", b"\n", b"\0" * 8, contents[here:there] * 2]))
        contents = contents[:here] + piece + contents[there:]
    return contents


@st.composite
def edited(draw, sources: list[str], valid: tuple[str, ...]) -> bytes:
    """A YAML file with lines put in, and perhaps damage."""
    lines = draw(st.sampled_from(sources)).splitlines()
    for _ in range(draw(st.integers(0, 4))):
        key, value = draw(keys(valid)), draw(VALUES)
        section, _, name = key.rpartition(".")
        line = f"{section}: {{{name}: {value}}}" if section else f"{key}: {value}"
        lines.insert(draw(st.integers(0, len(lines))), line)
    text = "\n".join(lines).encode(errors="surrogateescape")
    return draw(damaged(text)) if draw(st.booleans()) else text


def refusal(error: UserError) -> str:
    sentence = str(error)
    assert sentence.isprintable() and sentence.endswith((".", "…")) and len(sentence) < 3_000, sentence
    event("refused")
    return sentence


def config_file(contents: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mine.yaml"
        file.write_bytes(contents)
        try:
            config = load(file)
        except UserError as error:
            refusal(error)
        else:
            event("taken")
            assert ExperimentConfig.from_yaml(config.to_yaml()) == config


def overrides(pairs: list[tuple[str, str]]) -> None:
    try:
        config = load("cartpole", [f"{key}={value}" for key, value in pairs])
    except UserError as error:
        refusal(error)
    else:
        event("taken")
        assert ExperimentConfig.from_yaml(config.to_yaml()) == config


def sweep_file(contents: bytes) -> None:
    with TemporaryDirectory() as folder:
        file, again = Path(folder) / "mine.yaml", Path(folder) / "again.yaml"
        file.write_bytes(contents)
        for shipped_file in shipped_sweeps().values():
            (Path(folder) / shipped_file.name).symlink_to(shipped_file)
        try:
            parts = load_sweep(file)
            if sum(part.size for part in parts) < 300:
                trials = search_corners(parts[0]) if parts[0].search else grid_trials(parts)
                assert len({trial.name for trial in trials}) == len(trials) > 0
        except UserError as error:
            refusal(error)
        else:
            event("taken")
            again.write_text(to_yaml(parts))
            assert load_sweep(again) == parts


def declaration(contents: bytes) -> None:
    with TemporaryDirectory() as folder:
        file, lab = Path(folder) / "mine.yaml", Path(folder) / "lab"
        file.write_bytes(contents)
        try:
            experiment = Experiment(file, lab)
        except UserError as error:
            refusal(error)
            assert not (lab / "experiment.yaml").exists()
        else:
            event("taken")
            (task,) = experiment.ask()
            assert Experiment.load(lab).declaration == experiment.declaration
            assert Experiment.load(lab).status().tasks[0].descriptor == task.descriptor


@cache
def recordings() -> dict[str, bytes]:
    """Good recordings, by the name of their file."""
    frame = pandas.DataFrame(run({}, steps=12) | {"time": np.arange(12) * 0.1})
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("run.csv", "run.npz", "run.parquet")}
        frame.to_csv(files["run.csv"], index=False)
        np.savez(files["run.npz"], **{name: frame[name].to_numpy() for name in frame})
        frame.to_parquet(files["run.parquet"])
        return {name: file.read_bytes() for name, file in files.items()}


def recording(case: tuple[str, bytes]) -> None:
    name, contents = case
    with TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(contents)
        try:
            told = record(file, Declaration.of(declared(angles=["x"])))
        except UserError as error:
            refusal(error)
        else:
            event("taken")
            assert told.transitions > 0
            assert all(np.isfinite(part).all() for part in (*told.states, *told.controls))
        assert file.read_bytes() == contents


@cache
def kept() -> Path:
    """A finished run and an experiment for ask and tell, whose files are damaged in copies."""
    folder = Path(mkdtemp(prefix="fuzzer"))
    run_to_end(tiny("method=uni"), folder / "run")
    experiment = Experiment(declared(initial=10), folder / "lab")
    for task in experiment.ask(3):
        experiment.tell(task.id, run(task.descriptor))
    data = experiment._state.data
    point = LearningPoint(data=data, squares=((0.1, 0.2),) * 3, coverage=(0.9,) * 3, scale=(1.0, 2.0))
    experiment._learning.add(point, data)
    return folder


@pytest.fixture(scope="module", autouse=True)
def tidy():
    yield
    if kept.cache_info().currsize:
        shutil.rmtree(kept())


def contents_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


@st.composite
def damages(draw):
    """A file of a run or of an experiment, and what it holds now; None if it is gone."""
    name, contents = draw(st.sampled_from(sorted(contents_of(kept()).items())))
    return name, draw(st.none() | damaged(contents))


def damaged_file(case: tuple[str, bytes | None]) -> None:
    name, contents = case
    with TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(kept(), Path(temporary) / "kept"))
        whole, file = (folder / name).read_bytes(), folder / name
        file.unlink() if contents is None else file.write_bytes(contents)
        before = contents_of(folder)
        cut_off = contents is None or whole.startswith(contents) or not contents.endswith(b"\n")
        try:
            if name.startswith("run/"):
                run_to_end(tiny("method=uni"), folder / "run")
                mine, theirs = (read_records(top / "run") for top in (folder, kept()))
                assert [record.result() for record in mine] == [record.result() for record in theirs]
            else:
                same_experiment(folder / "lab", kept() / "lab", shorter=cut_off)
        except UserError as error:
            refusal(error)
            assert contents_of(folder) == before  # nothing was rewritten, nothing is lost
            (repaired_run if name.startswith("run/") else repaired_experiment)(folder / name.partition("/")[0])


def repaired_run(run: Path) -> None:
    """Refused in a sentence, or the undisturbed records in the end; less in between is said, and nothing is deleted."""
    before = contents_of(run)
    try:
        said = repair(tiny("method=uni"), run)
    except UserError as error:
        refusal(error)
        assert contents_of(run) == before
        return
    event("repaired")
    now, theirs = contents_of(run).values(), read_records(kept() / "run")
    assert all(contents in now for contents in before.values() if contents)
    left = read_records(run) if (run / "records.jsonl").exists() else []
    assert (f"{len(theirs) - len(left)} round" in said) == (len(left) < len(theirs)), said
    mine = run_to_end(tiny("method=uni"), run)
    assert [record.result() for record in mine] == [record.result() for record in theirs]


def repaired_experiment(lab: Path) -> None:
    """Refused in a sentence, or the first events of the whole; the others are set aside, and nothing is deleted."""
    before = contents_of(lab)
    try:
        lines, aside = Journal(lab).repair()
    except UserError as error:
        refusal(error)
        assert contents_of(lab) == before
        return
    now = contents_of(lab).values()
    assert all(contents in now for contents in before.values() if contents)
    if aside is not None:
        event("repaired")
        same_experiment(lab, kept() / "lab", shorter=True)
        assert len(Experiment.load(lab).history()) == lines


def same_experiment(mine: Path, theirs: Path, shorter: bool) -> None:
    """The same events and data, fewer of them only if the end of a file was cut off; the same errors, or none."""
    experiment, whole = Experiment.load(mine), Experiment.load(theirs)
    found, there = experiment.history(), whole.history()
    assert found == there[: len(found)] and (shorter or len(found) == len(there))
    assert experiment.status().learning in (None, whole.status().learning)
    for line, one in enumerate(found, start=1):
        if one.event == "tell":
            pairs = zip(experiment._journal.recording(line).states, whole._journal.recording(line).states, strict=True)
            assert all(np.array_equal(one, other) for one, other in pairs)


CONFIGS = [file.read_text() for file in (*shipped().values(), *worked_examples().values())]
SWEEPS = [file.read_text() for file in shipped_sweeps().values()]
DECLARATIONS = [
    dump(declared()),
    dump(declared(descriptors={"n": {"integers": [1, 9]}, "c": {"categories": ["a", "b"]}})),
]
KINDS = {
    "configs": (edited(CONFIGS, CONFIG_KEYS), config_file),
    "overrides": (st.lists(st.tuples(keys(CONFIG_KEYS), VALUES), min_size=1, max_size=3), overrides),
    "sweeps": (edited(SWEEPS, SWEEP_KEYS), sweep_file),
    "declarations": (edited(DECLARATIONS, DECLARATION_KEYS), declaration),
    "recordings": (
        st.sampled_from(sorted(recordings())).flatmap(
            lambda name: st.tuples(st.just(name), damaged(recordings()[name]))
        ),
        recording,
    ),
    "damaged files": (damages(), damaged_file),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_whatever_comes_is_taken_as_it_is_or_refused_in_a_sentence(kind, cases):
    inputs, check = KINDS[kind]
    settings(
        max_examples=cases,
        deadline=timedelta(seconds=10),
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=True,
    )(given(inputs)(check))()
