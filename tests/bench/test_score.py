import json

import numpy as np
import pytest

from distpaml.bench import score
from distpaml.bench.__main__ import main
from distpaml.data.designs import grid
from distpaml.select.scoring import BLOCK


@pytest.mark.slow
def test_the_scorer_is_compared_and_needs_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr(score, "SIZES", (10**5,))
    monkeypatch.setattr(score, "IN_BLOCKS", 10**5)
    assert main(["score", "--json", str(tmp_path / "score")]) == 0
    found = {line["name"]: line for line in map(json.loads, (tmp_path / "score").read_text().splitlines())}
    speeds = {"score-1e5", "score-1e5-scipy", "score-1e5-blocks"}
    assert found.keys() == speeds | {"memory-1e5", "memory-1e5-scipy"}
    for name in speeds:
        assert found[name]["unit"] == "candidates/s" and found[name]["ours"] > found[name]["other"]
    table = 8 * score.TASKS * 10**5 / 2**20
    assert found["memory-1e5"]["ours"] < 0.5 * table < table < found["memory-1e5"]["other"]


def test_what_does_not_fit_is_left_out_and_said(monkeypatch, capsys):
    monkeypatch.setattr(score, "_fits", lambda size: False)
    monkeypatch.setattr(score, "_peak", lambda side, size: 1.5)
    assert list(score._speed(10**4)) == list(score._memory(10**4)) == []
    out = capsys.readouterr().out
    assert "score-1e4: the others are left out, their tables need 0 GiB" in out
    assert "the making of the grid included" in out and "memory-1e4: 1.5 MiB; the others are left out" in out


def test_sides_that_disagree_are_not_compared():
    with pytest.raises(RuntimeError, match="chose different candidates"):
        score._take_turns({"one": lambda h: 1, "two": lambda h: 2}, np.zeros((3, 2)))


def test_a_grid_in_blocks_is_the_grid():
    lazy = score.Grid(90**2)
    whole = grid(*lazy.corners, 90)
    blocks = [lazy.take(slice(i, i + BLOCK)).mean for i in range(0, len(lazy), BLOCK)]
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
