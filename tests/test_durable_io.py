"""Links that somebody planted in a folder are never written through."""

import os
from pathlib import Path

import pytest

from distpaml.checksums import sealed
from distpaml.durable_io import append_durably, cut, locked, write_durably
from distpaml.errors import UserError
from distpaml.sweep.journal import Journal
from distpaml.sweep.storage import Storage


@pytest.fixture
def precious(tmp_path):
    file = tmp_path / "precious"
    file.write_bytes(b"precious")
    yield file
    assert file.read_bytes() == b"precious"


@pytest.fixture
def planted(tmp_path, precious):
    link = tmp_path / "planted"
    link.symlink_to(precious)
    return link


def test_a_file_replaces_a_link(planted):
    write_durably(planted, b"new")
    assert planted.read_bytes() == b"new" and not planted.is_symlink()


def test_the_name_beside_a_file_cannot_be_guessed(tmp_path, monkeypatch):
    opened = set()
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.add(Path(path).name) or real(path, *rest))
    for _ in range(20):
        write_durably(tmp_path / "config.yaml", b"new")
    assert len(opened) == 20
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_nothing_is_appended_to_a_link_or_cut_from_it(planted):
    with pytest.raises(OSError, match="symbolic"):
        append_durably(planted, b"new\n")
    with pytest.raises(OSError, match="symbolic"):
        cut(planted, 0)


def test_a_link_to_nothing_is_not_made_into_a_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="exists"):
        append_durably(tmp_path / "link", b"new\n")
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_and_a_journal_that_are_links_are_refused_in_a_sentence(tmp_path, precious):
    (tmp_path / "lock").symlink_to(precious)
    with pytest.raises(UserError, match="cannot be written"), locked(tmp_path, "Another"):
        pass
    (tmp_path / "events.jsonl").symlink_to(precious)
    with pytest.raises(UserError, match="cannot be written"):
        Journal(tmp_path / "events.jsonl").add("sweep started")


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_folder_that_cannot_exist_is_a_sentence(tmp_path, name):
    with (
        pytest.raises(UserError, match="; choose another directory"),
        locked(tmp_path / name, "It"),
    ):
        pass


@pytest.mark.parametrize("theirs", ["a link", "open to all"])
def test_copies_of_object_storage_are_kept_where_nobody_else_can_write(tmp_path, monkeypatch, theirs):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"distpaml-{os.getuid()}"
    if theirs == "a link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(UserError, match="that only you can write to"):
        _ = Storage("s3://bucket/sweep").local
    folder.unlink() if folder.is_symlink() else folder.rmdir()
    assert Storage("s3://bucket/sweep").local.parent == folder and folder.stat().st_mode & 0o777 == 0o700


def test_a_cut_file_ends_where_it_was_cut(tmp_path):
    line, _ = sealed('{"a":1}', {}, "")
    (tmp_path / "lines").write_bytes(line + b'{"half')
    cut(tmp_path / "lines", len(line))
    assert (tmp_path / "lines").read_bytes() == line
