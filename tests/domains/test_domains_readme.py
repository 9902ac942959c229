"""What the page about domains shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import distpaml.domains
from distpaml.config import DomainConfig
from distpaml.config.families import KEYS
from distpaml.config.signal import SignalConfig
from distpaml.domains.expressions import FUNCTIONS

README = (Path(distpaml.domains.__file__).parent / "README.md").read_text(encoding="utf-8")
FAMILIES = re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^\$ python (.*)\n((?:(?!\$ |```).*\n)*)", README, re.MULTILINE)
PENDULUM = """<mujoco>
<option timestep="0.05" integrator="RK4"/>
<worldbody><body name="rod"><joint name="hinge" axis="0 1 0" damping="0.1"/>
<geom name="rod" type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="1"/></body></worldbody>
<actuator><motor name="motor" joint="hinge" ctrlrange="-1 1"/></actuator>
</mujoco>"""


@pytest.mark.parametrize("command, output", CONSOLE, ids=[command for command, _ in CONSOLE])
def test_console_examples(tmp_path, command, output):
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    for name, text in zip(("pendulum", "gym"), FAMILIES, strict=False):
        (tmp_path / f"{name}.yaml").write_text(text)
    words = [word.replace("'", "") for word in re.findall(r"(?:'[^']*'|\S)+", command)]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout + done.stderr == output


def test_the_signal_that_is_shown_is_one():
    assert SignalConfig.model_validate(yaml.safe_load(FAMILIES[3])["domain"]["signal"]).shape == "chirp"


def test_every_key_and_function_is_named():
    assert all(f"`{key}`" in README for key in {*KEYS} - {"gymnasium", "carl"})
    assert all(f"`{name}`" in README for name in FUNCTIONS)
    assert set(KEYS) < set(DomainConfig.model_fields)
