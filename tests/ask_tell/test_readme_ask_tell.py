"""The README's session and its Python, tried in an empty folder as a new user would."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(kind, holding=""):
    blocks = re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (found,) = (text for text in blocks if holding in text)
    return found


def test_the_session_and_the_python_after_it(tmp_path):
    (tmp_path / "arm.yaml").write_text(block("yaml", holding="descriptors:"))
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block("shell-session"), re.MULTILINE):
        program, _, words = command.partition(" ")
        line = f"{sys.executable} {'-m distpaml ' if program == 'distpaml' else ''}{words}"
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout + done.stderr == output, command
    done = subprocess.run([sys.executable, "-c", block("py")], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("3 (21, 2) (21, 2) (2,)\n", "")
