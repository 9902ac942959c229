"""The soak notices what grows, and sums up."""

from dataclasses import asdict, replace

import pytest
import soak

FIRST = soak.State(entries=2, processes=100, shared=4000, used=9000, files=3000)


@pytest.mark.parametrize("name", soak.ROOM)
def test_more_than_there_is_room_for_has_grown(name):
    limit = asdict(FIRST)[name] + soak.ROOM[name]
    assert soak.grown(FIRST, replace(FIRST, **{name: limit}, used=60_000)) == []
    assert soak.grown(FIRST, replace(FIRST, **{name: limit + 1})) == [f"{name} {asdict(FIRST)[name]} → {limit + 1}"]


def test_everything_in_the_folder_for_temporary_files_counts(tmp_path):
    before = soak.State.of(tmp_path)
    (tmp_path / "somebody/else").mkdir(parents=True)
    (tmp_path / "tmpabc").touch()
    assert soak.grown(before, soak.State.of(tmp_path))[0] == "entries 0 → 3"


def test_a_table_sums_up():
    states = [FIRST, replace(FIRST, files=9999), replace(FIRST, used=9100, files=3010)]
    rows = soak.table(3, 1, ["kill all", "stop ray::", "kill all"], 2, states, 61.2).splitlines()
    assert rows[2:5] == [
        "| sweeps | 3 |",
        "| of them with the undisturbed records | 2 |",
        "| blows | 3 (2 kill all, 1 stop ray::) |",
    ]
    assert {"| resumes | 2 |", "| used, first → last | 9000 → 9100 |", "| seconds | 61 |"} <= set(rows)
