import json
import re

import pytest
import torch
from pretend import PRETENDED, pretend_device

from distpaml.bench import gpu, problem
from distpaml.bench.__main__ import main
from distpaml.config import load

SMALL = ["domain.trajectory_length=20", "model.inducing_cap=20", "fit.evaluations=5", "fit.restarts=1"]
STAGES = ("evaluation", "inference", "prediction")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(problem, "load", lambda name, overrides: load(name, [*overrides, *SMALL]))
    monkeypatch.setattr(gpu, "SIZES", (2, 4))
    monkeypatch.setattr(gpu, "FLOAT32_TASKS", 3)


def test_without_a_gpu_it_measures_the_cpu_and_says_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["gpu", "--json", str(tmp_path / "gpu")]) == 0
    out = capsys.readouterr().out
    lines = re.findall(
        r"gpu-(\w+)-(\d): \d+ ms on the CPU; [\d.]+ GFLOP, [\d.]+ GB, \d+ operations; expected ms: H", out
    )
    assert lines == [(stage, tasks) for tasks in "24" for stage in STAGES]
    assert out.endswith("There is no GPU that torch can use here, so only the CPU was measured.\n")
    assert re.search(r"off by \S+ nats per number; a fit in float32 ends \S+ nats per number below", out)
    assert (tmp_path / "gpu").read_text() == ""


def test_with_a_gpu_it_compares(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(gpu, "GPU", PRETENDED)
    monkeypatch.setattr(gpu, "SIZES", (2,))
    monkeypatch.setattr(gpu, "_float32", lambda *arguments: None)
    with pretend_device():
        assert main(["gpu", "--json", str(tmp_path / "gpu")]) == 0
    found = [json.loads(line) for line in (tmp_path / "gpu").read_text().splitlines()]
    assert [line["name"] for line in found] == [f"gpu-{stage}-2" for stage in STAGES]
    assert all(line["ratio"] == line["other"] / line["ours"] > 0.0 for line in found)


def test_work_is_counted_by_its_formulas():
    a, b = torch.ones(3, 5), torch.ones(5, 7)
    assert gpu.Work.of(lambda: a @ b) == gpu.Work(2.0 * 3 * 5 * 7, 4.0 * (15 + 35 + 21), 1)
    assert gpu.Work.of(lambda: a.T.expand(4, 5, 3)) == gpu.Work(0.0, 0.0, 0)  # only looks at it
    assert gpu.Work.of(lambda: a[:1].expand(3, 5) + a) == gpu.Work(0.0, 4.0 * (15 + 15 + 15), 1)
    lower = torch.eye(5)
    assert gpu.Work.of(lambda: torch.linalg.solve_triangular(lower, b, upper=False)).flops == 5 * 5 * 7
    assert gpu.Work(2e12, 1e9, 100).seconds(1e12, 1e9) == pytest.approx(2.0 + 100 * gpu.START)
