"""Declarations at and beyond the limits: each is taken and asked for tasks, or refused in one printable sentence."""

import numpy as np
import pytest
from spring import declared, run

from distpaml import Experiment
from distpaml.ask_tell.__main__ import main
from distpaml.config.yaml_text import dump
from distpaml.errors import UserError

HUGE = int("9" * 400)
REFUSED = [
    ({"descriptors": {"mass": [0.0, 1e308]}}, "descriptors.mass"),
    ({"descriptors": {"mass": [-1e308, 1e308]}}, "descriptors.mass"),
    ({"descriptors": {"mass": [0, HUGE]}}, "descriptors.mass"),
    ({"descriptors": {"screws": {"integers": [0, HUGE]}}}, "descriptors.screws"),
    ({"selection": {"pool_size": 1_000_000_000}}, "selection.pool_size is 1000000000"),
    ({"selection": {"pool_size": HUGE}}, "selection.pool_size"),
    ({"threads": HUGE}, "threads"),
    ({"initial": HUGE}, "initial"),
    ({"dt": HUGE}, "dt"),
    ({"choices": [[HUGE, 1.0]]}, "should be a number"),
    ({"descriptors": {"screws": {"integers": [0, 10**12]}}}, "low < high, up to 2147483647"),
    ({"states": ["a\x1b[2J"], "angles": ["b\x1b[2J"]}, r"'b\\x1b\[2J' is none"),
]
TAKEN = [
    {"descriptors": {"mass": [0.0, 1e100]}},
    {"descriptors": {"mass": [-1e100, 1e100]}},
    {"descriptors": {"mass": [0.0, 5e-324]}},
    {"descriptors": {"mass": [1.0, 1.0 + 2**-52]}},
    {"descriptors": {"screws": {"integers": [-(2**31) + 1, 2**31 - 1]}}},
    {"seed": HUGE},
    {"initial": 2**31 - 1},
    {"dt": 1e100},
]


def test_a_key_that_is_missing_is_named(tmp_path):
    declaration = declared()
    del declaration["states"]
    with pytest.raises(UserError, match=r"In the declaration, states is missing\."):
        Experiment(declaration, tmp_path / "lab")


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_what_cannot_be_computed_with_is_refused(tmp_path, changes, said):
    with pytest.raises(UserError, match=said) as caught:
        Experiment(declared(**changes), tmp_path / "lab")
    assert str(caught.value).isprintable() and not (tmp_path / "lab/experiment.yaml").exists()


@pytest.mark.parametrize("changes", TAKEN, ids=lambda changes: str(changes)[:60])
def test_what_is_odd_but_possible_is_asked_for(tmp_path, changes):
    experiment = Experiment(declared(**changes), tmp_path / "lab")
    tasks = experiment.ask(3)
    assert 1 <= len(tasks) <= 3
    assert np.isfinite(experiment.space.encode([task.descriptor for task in tasks])).all()
    assert Experiment.load(tmp_path / "lab").history() == experiment.history()


def test_names_units_and_reasons_reach_the_terminal_escaped(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    odd = declared(
        name="lab\x1b]0;owned\x07",
        descriptors={"mass\x1b[31m": [0.5, 2.0], "wheel": {"categories": ["a\x1b[2J", "b\r"]}},
        units={"mass\x1b[31m": "kg\x1b[5m"},
    )
    (tmp_path / "odd.yaml").write_text(dump(odd))
    np.savez("run.npz", **run({}))
    for words in ("new lab odd.yaml", "ask --dir lab", "tell 1 run.npz --dir lab", "ask --dir lab", "status --dir lab"):
        assert main(words.split()) == 0
    assert main(["fail", "2", "broke\x1b[2J", "--dir", "lab"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\x07" not in said and "\r" not in said and r"mass\x1b[31m = " in said
