import json
import subprocess
import sys

import numpy as np
import pytest

from distpaml.bench import rollout
from distpaml.bench.__main__ import main


def test_rollout_writes_its_comparisons(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rollout, "TASKS", 10)
    monkeypatch.setattr(rollout, "REPEATS", 1)
    assert main(["rollout", "--json", str(tmp_path / "bench.jsonl")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "bench.jsonl").read_text().splitlines()]
    assert [line["name"] for line in lines] == ["rollout", "rollout-steps", "rollout-bare"]
    for line in lines:
        assert line.keys() == {"name", "ratio", "ours", "other", "unit"}
        assert line["unit"] == "steps/s"
        assert (line["ratio"] > 1.0) == (line["ours"] > line["other"] > 0.0)  # more steps a second are better
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_sides_that_disagree_are_not_compared():
    sides = {"batch": lambda: np.zeros((2, 3, 4)), "other": lambda: np.full((1, 3, 4), 1e-16)}
    with pytest.raises(RuntimeError, match="'other' are not those of the batched path"):
        rollout._steps_per_second(sides, 1)


def test_unknown_name_is_a_sentence(capsys):
    assert main(["rolout"]) == 2
    assert "no benchmark 'rolout'; the nearest is rollout." in capsys.readouterr().err


def test_unwritable_file_is_a_sentence_before_anything_runs(tmp_path):
    command = [sys.executable, "-m", "distpaml.bench", "rollout", "--json", str(tmp_path / "no" / "file")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "cannot write" in done.stderr
