import json

from tiny import SIZE

from distpaml.bench import choose
from distpaml.bench.__main__ import main
from distpaml.select.utilities import UTILITIES


def test_a_choice_by_every_utility_is_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "TASKS", 3)
    overrides = [word for override in SIZE if "rounds" not in override for word in ("--set", override)]
    assert main(["choose", "--json", str(tmp_path / "found"), *overrides]) == 0
    rows = [json.loads(line) for line in (tmp_path / "found").read_text().splitlines()]
    assert [row["name"] for row in rows] == [f"choose-{name}" for name in UTILITIES]
    assert all(row["ours"] > 0 and row["ratio"] > 0 for row in rows) and len({row["other"] for row in rows}) == 1
