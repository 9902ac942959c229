"""Methods and measures are declared once: everything else follows."""

import re
from pathlib import Path

import pytest
from tiny import tiny

import distpaml
from distpaml.catalogue import METHODS, MethodInfo, planned_rounds
from distpaml.report.collect import collect
from distpaml.report.figures import curves
from distpaml.report.payload import payload
from distpaml.runtime.run_experiment import run_to_end
from distpaml.select.methods import CLASSES, Method, Selection, implements
from distpaml.sweep.driver import Sweep
from distpaml.sweep.schema import SweepConfig
from distpaml.sweep.status import is_finished
from distpaml.sweep.storage import Storage

PACKAGE = Path(distpaml.__file__).parent


def test_every_method_has_a_class():
    assert CLASSES.keys() == METHODS.keys()


def test_no_other_file_lists_the_methods():
    """A file that names most of them in quotes has a list of its own."""
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.js")]:
        named = [name for name in METHODS if re.search(rf"""["']{name}["']""", path.read_text())]
        if path.name != "catalogue.py" and path != PACKAGE / "select" / "methods.py":
            assert len(named) <= 2, f"{path} lists {', '.join(named)}"


@pytest.fixture
def corner(monkeypatch):
    """A method that is registered while the program runs: always the lowest corner of the box."""
    info = MethodInfo("corner", "Corner", "sky", "5 5", "square")
    monkeypatch.setitem(METHODS, "corner", info)
    monkeypatch.setitem(CLASSES, "corner", Method)  # restored afterwards

    @implements("corner")
    class Corner(Method):
        def choose(self, model, data, rank):
            return Selection(self.task_set.descriptor.low[None])

    return info


def test_a_new_method_runs_and_is_shown_everywhere(corner, tmp_path):
    sweep = Sweep([SweepConfig(methods=["corner"], overrides={"rounds": 1})], Storage.of(str(tmp_path)))
    (trial,) = sweep.trials
    config = tiny("method=corner", "rounds=1")
    assert trial.runs.keys() == {"cartpole-corner-seed0"} and planned_rounds("corner", 1) == 1
    for name, method in (("cartpole-corner-seed0", "corner"), ("cartpole-paml-pool-seed0", "paml-pool")):
        run_to_end(tiny(f"method={method}", "rounds=1"), tmp_path / "trials" / name)
    assert is_finished(tmp_path, type(trial)(trial.name, {"cartpole-corner-seed0": config}, {}))
    tree = payload(collect([tmp_path]))
    (entry,) = tree["experiments"]
    pool, added = entry["groups"]
    assert (added["label"], added["has_rounds"], added["chooses"]) == ("corner", True, False)
    assert added["style"] == {"colour": "sky", "dashes": "5 5", "marker": "square"} != pool["style"]
    assert tree["methods"]["corner"]["label"] == "Corner" and "corner" in tree["baselines"]
    assert entry["table"]["rmse"][0]["area-corner"]["seeds"] == 1
    assert "corner" in [line.get_label() for line in curves(entry, ("rmse", "nll")).axes[0].get_lines()]
