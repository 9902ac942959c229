"""The soak notices what grows."""

from dataclasses import asdict, replace

import pytest
import soak


@pytest.mark.parametrize("name", soak.ROOM)
def test_more_than_there_is_room_for_has_grown(name):
    first = soak.State(entries=2, processes=100, mebibytes=4000, files=3000)
    limit = asdict(first)[name] + soak.ROOM[name]
    assert soak.grown(first, replace(first, **{name: limit})) == []
    assert soak.grown(first, replace(first, **{name: limit + 1})) == [f"{name} {asdict(first)[name]} → {limit + 1}"]


def test_everything_in_the_folder_for_temporary_files_counts(tmp_path):
    before = soak.State.of(tmp_path)
    (tmp_path / "somebody/else").mkdir(parents=True)
    (tmp_path / "tmpabc").touch()
    assert soak.grown(before, soak.State.of(tmp_path))[0] == "entries 0 → 3"
