import json
import re

import pytest

from distpaml.bench import fit, infer, problem
from distpaml.bench.__main__ import main
from distpaml.config import load

SMALL = [
    "domain.trajectory_length=30",
    "model.inducing=30",
    "fit.evaluations=10",
    "fit.restarts=1",
    "evaluation.grid=2",
]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(problem, "load", lambda name, overrides: load(name, [*overrides, *SMALL]))


def lines(path):
    return {line["name"]: line for line in map(json.loads, path.read_text().splitlines())}


def test_fit_races_and_reports(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(fit, "SIZES", (2, 3))
    monkeypatch.setattr(fit, "ORACLES", ("pendubot",))
    monkeypatch.setattr(fit, "COSTS", (2, 4))
    monkeypatch.setattr(fit, "MEMORY", ((2, 1),))
    assert main(["fit", "--steps", "20", "--against", "gpytorch", "--json", str(tmp_path / "fit")]) == 0
    found = lines(tmp_path / "fit")
    raced = {"fit-2", "fit-2-gpytorch", "fit-3", "fit-3-gpytorch", "gap-2", "gap-3"}
    assert found.keys() == raced | {"core-300", "core-600"}
    assert found["fit-3"]["unit"] == "s" and found["fit-3"]["ours"] < found["fit-3"]["other"]
    out = capfd.readouterr().out
    assert "extrapolated from 20" in out
    for name in ("oracle-pendubot: rmse", "cost-4: ", "memory-2: "):
        assert name in out
    above = [float(gap) for gap in re.findall(r"early, (-?[0-9.]+) nats per number above", out)]
    assert len(above) == 2 and min(above) > -0.05  # latents count as points meanwhile, so it may end a little below


def test_infer_is_faster_than_the_papers_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(infer, "TASKS", 3)
    assert main(["infer", "--json", str(tmp_path / "infer")]) == 0
    (line,) = lines(tmp_path / "infer").values()
    assert line["unit"] == "s" and line["ours"] < line["other"] and line["ratio"] > 1.0
