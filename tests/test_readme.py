"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from distpaml.config import ExperimentConfig, load, shipped
from distpaml.config.load import worked_examples

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SPRING, MODEL = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^```console\n\$ python (.*)\n((?:.*\n)*?)```$", README, re.MULTILINE)


@pytest.mark.parametrize("arguments, output", CONSOLE, ids=[arguments for arguments, _ in CONSOLE])
def test_console_examples(tmp_path, arguments, output):
    (tmp_path / "my_spring.py").write_text(SPRING)
    done = subprocess.run([sys.executable, *arguments.split()], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout + done.stderr == output


@pytest.mark.slow
def test_the_models_example():
    shapes = "print(mean.shape, variance.shape, len(latents))"
    done = subprocess.run([sys.executable, "-c", f"{MODEL}\n{shapes}"], capture_output=True, text=True)
    assert done.stdout + done.stderr == "(100, 99, 4) (100, 99, 4) 100\n"


def test_there_are_console_examples():
    assert len(CONSOLE) >= 2


def test_every_shipped_experiment_and_section_is_named():
    assert all(f"`{name}`" in README for name in shipped())
    sections = re.findall(r"^\| `(\w+)` \|.*\| (`.*`) \|$", README, re.MULTILINE)
    assert {section for section, _ in sections} == {
        name for name, value in ExperimentConfig() if hasattr(value, "model_dump")
    }
    for section, keys in sections:
        assert set(re.findall(r"`(\w+)`", keys)) <= load().model_dump()[section].keys()


def test_the_robot_in_ten_lines_is_the_worked_one():
    (shown,) = re.findall(r"^```yaml\n(domain:\n.*?)^```$", README, re.MULTILINE | re.DOTALL)
    worked = yaml.safe_load(worked_examples()["two_link_arm"].read_text(encoding="utf-8"))
    assert yaml.safe_load(shown)["domain"] == worked["domain"]
    assert len(shown.splitlines()) <= 10
    assert all(f"`{name}`" in README for name in worked_examples())
