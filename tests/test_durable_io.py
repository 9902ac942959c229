"""Links that somebody planted in a folder are never written through; pipes and devices are never read."""

import os
from pathlib import Path

import pandas
import pytest
from pydantic import ValidationError

from distpaml import Experiment
from distpaml.ask_tell.dimensions import Images
from distpaml.ask_tell.images import with_codes
from distpaml.ask_tell.journal import Journal as AskTellJournal
from distpaml.ask_tell.tables import read_table
from distpaml.bench.__main__ import write as write_bench
from distpaml.checksums import sealed
from distpaml.config import load
from distpaml.config.signal import SignalConfig
from distpaml.domains.film_strip import draw_corners
from distpaml.durable_io import append_durably, cut, locked, read_regular, write_durably
from distpaml.errors import UserError
from distpaml.records import read_records
from distpaml.report.archive import read_archive
from distpaml.results import main, results
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


@pytest.mark.parametrize("target", ["/dev/null", "pipe"])
def test_a_device_or_a_pipe_is_not_replaced(tmp_path, target):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(target)
    for path in (tmp_path / "pipe", tmp_path / "link"):
        with pytest.raises(OSError, match="not a regular file"):
            write_durably(path, b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_results_film_strips_and_benchmarks_replace_a_link(tmp_path, precious, monkeypatch):
    monkeypatch.setattr("distpaml.results.results", lambda *_: pandas.DataFrame({"a": [1]}))
    domain = load("two_link_arm").domain
    for name, write in {
        "rows.csv": lambda path: main(["here", "--out", str(path)]),
        "rows.parquet": lambda path: main(["here", "--choices", "--out", str(path)]),
        "strip.png": lambda path: list(draw_corners(domain.make(), domain, path)),
        "bench.jsonl": lambda path: write_bench(path, []),
    }.items():
        (tmp_path / name).symlink_to(precious)
        write(tmp_path / name)
        assert not (tmp_path / name).is_symlink()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    write_durably(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_durably(tmp_path / "file", b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"old")]


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


def plant(kind, path):
    """Something that would never answer, or never end; /dev/null stands for all devices."""
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/null")


READERS = {
    "file": read_regular,
    "config.yaml": load,
    "records.jsonl": lambda file: read_records(file.parent),
    "experiment.yaml": lambda file: Experiment.load(file.parent),
    "journal.jsonl": lambda file: AskTellJournal(file.parent).refresh(),
    "told.csv": read_table,
    "told.npz": read_table,
    "told.parquet": read_table,
    "signal.csv": lambda file: SignalConfig(recorded=str(file)),
    "images.npz": lambda file: with_codes(Images(images=str(file))),
    "image.png": lambda file: with_codes(Images(images=str(file.parent))),
    "results.csv": results,
    "runs.parquet": lambda file: list(read_archive(file)),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.timeout(20)
def test_only_regular_files_are_read(tmp_path, kind, name):
    plant(kind, tmp_path / name)
    with pytest.raises((OSError, UserError, ValidationError), match="it is not a regular file"):
        READERS[name](tmp_path / name)


@pytest.mark.timeout(20)
def test_a_lock_that_is_a_pipe_is_refused(tmp_path):
    plant("pipe", tmp_path / "lock")
    with pytest.raises(UserError, match="cannot be written: it is not a regular file"), locked(tmp_path, "Another"):
        pass


def test_a_file_is_read_up_to_a_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 1000)
    assert read_regular(tmp_path / "file", 1000) == b"x" * 1000
    with pytest.raises(OSError, match=r"more than 0\.000999 MB"):
        read_regular(tmp_path / "file", 999)
