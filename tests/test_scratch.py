"""Temporary folders go with their process, at the latest when the next one begins."""

import subprocess
import sys

import pytest

from distpaml.scratch import scratch, temporary_folder

HOLD = """
import time
from distpaml.scratch import temporary_folder
with temporary_folder() as folder:
    (folder / "large").write_text("left behind")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_it_is_there_inside_and_gone_after():
    with temporary_folder() as folder:
        (folder / "file").write_text("text")
    assert not folder.exists() and [path.name for path in scratch().iterdir()] == ["lock"]


def test_what_a_killed_process_left_goes_when_the_next_begins_and_not_before():
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        name = process.stdout.readline().strip()
        with temporary_folder() as folder:
            assert {path.name for path in scratch().glob("process-*")} == {folder.name, name.rpartition("/")[2]}
        process.kill()
        process.wait(timeout=100)
    assert len(list(scratch().glob("process-*"))) == 1
    with temporary_folder() as folder:
        assert [path.name for path in scratch().glob("process-*")] == [folder.name]
