"""`ray up` of on-premise.yaml, a sweep, a killed host, `ray down`: on hosts in namespaces of this machine."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "cluster" / "try-on-one-machine.sh"


@pytest.mark.root
@pytest.mark.slow
def test_the_whole_road_on_one_machine():
    done = subprocess.run(["bash", SCRIPT, sys.executable], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 trials, equal to the bit" in done.stdout and "nothing is left; all is well" in done.stdout
