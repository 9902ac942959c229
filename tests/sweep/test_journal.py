"""The journal of a sweep may have been cut off or edited: what is no event is passed over."""

import pytest

from distpaml.errors import UserError
from distpaml.sweep.__main__ import main
from distpaml.sweep.journal import Journal

ODD = ["[1]", "3", "null", '"x"', "[" * 100_000, "9" * 5_000, '{"trial": ["x"]}', '{"trial": "x", "event": {}}', "\xff"]


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_a_line_that_is_no_event_is_passed_over(tmp_path, line):
    journal = Journal(tmp_path / "events.jsonl")
    journal.add("trial failed", "one", "why")
    with open(journal.path, "a") as file:
        file.write(f"{line}\n")
    journal.add("trial finished", "two")
    assert {name: event["event"] for name, event in journal.last().items()} == {
        "one": "trial failed",
        "two": "trial finished",
    }


def test_an_event_of_which_parts_are_missing_has_no_message(tmp_path):
    journal = Journal(tmp_path / "events.jsonl")
    journal.path.write_text('{"trial": "x"}\n{"trial": "y", "event": "trial failed"}\n')
    assert journal.last() == {
        "x": {"event": None, "trial": "x", "message": ""},
        "y": {"event": "trial failed", "trial": "y", "message": ""},
    }


def test_a_journal_that_cannot_be_read_is_a_sentence(tmp_path, capsys):
    (tmp_path / "sweep.yaml").write_text("experiments: [cartpole]\n")
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        Journal(tmp_path / "events.jsonl").last()
    assert main(["--resume", str(tmp_path), "--dry-run"]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}/events.jsonl cannot be read: Is a directory.\n"
