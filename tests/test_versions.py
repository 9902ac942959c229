import subprocess

import torch

import distpaml
from distpaml.versions import commit, versions


def test_versions_are_those_that_are_installed():
    assert versions()["distpaml"] == distpaml.__version__ and versions()["torch"] == torch.__version__


def test_the_commit_is_that_of_a_clone_and_tells_of_changes(tmp_path):
    assert commit(tmp_path) == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x"]
    (tmp_path / "file").write_text("one")
    for command in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert commit(tmp_path) == head[:12]
    (tmp_path / "file").write_text("two")
    assert commit(tmp_path) == f"{head[:12]}-dirty"
