"""The session on the page about ask and tell and the Python after it, tried in an empty folder as a new user would."""

import re
import subprocess
import sys
from pathlib import Path

import distpaml.ask_tell

PAGE = (Path(distpaml.ask_tell.__file__).parent / "README.md").read_text(encoding="utf-8")


def block(kind):
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


def test_the_session_and_the_python_after_it(tmp_path):
    (tmp_path / "arm.yaml").write_text(block("yaml arm.yaml"))
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block("shell-session"), re.MULTILINE):
        program, _, words = command.partition(" ")
        line = f"{sys.executable} {'-m distpaml ' if program == 'distpaml' else ''}{words}"
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout + done.stderr == output, command
    done = subprocess.run([sys.executable, "-c", block("python")], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (block("text"), "")
