"""Keys of the driver's environment are neither on a command line nor in a file while trials use them."""

import os
import shutil
import tempfile
from pathlib import Path

import psutil
import pytest
from actors import eventually
from sweeps import SweepProcess, small

pytestmark = pytest.mark.slow
SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIA" + "5ecre7" * 3,
    "AWS_SECRET_ACCESS_KEY": "aws" + "5ecre7" * 6,
    "AWS_SESSION_TOKEN": "token" + "5ecre7" * 6,
    "WANDB_API_KEY": "5ecre7a0" * 5,
}


@pytest.fixture
def ray_folder():
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # the names of its sockets have to be short
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def command_lines() -> str:
    """What `ps` shows of every process."""
    lines = []
    for process in psutil.process_iter():
        try:
            lines += process.cmdline()
        except psutil.Error:
            continue
    return "\n".join(lines)


def test_no_key_is_on_a_command_line_in_a_log_or_in_a_file(tmp_path, ray_folder):
    words = small("methods=[uni]", "seeds=2", "wandb=offline", "--out", "out")
    sweep = SweepProcess(*words, cwd=tmp_path, RAY_TMPDIR=str(ray_folder), TMPDIR=str(tmp_path), **SECRETS)
    seen = set[str]()

    def watched() -> bool:
        seen.update(name for name, secret in SECRETS.items() if secret in command_lines())
        return sweep.process.poll() is not None or bool(list(tmp_path.glob("out/trials/*/round-02")))

    eventually(watched, 240)
    trials = [process for process in sweep.alive() if "ray::" in " ".join(process.cmdline())]
    sweep.wait()
    assert sweep.code == 0, sweep.err
    assert not seen
    assert trials  # they ran while we looked
    files = [
        Path(folder) / name for top in (tmp_path, ray_folder) for folder, _, names in os.walk(top) for name in names
    ]
    found = {
        (name, str(file))
        for file in files
        if file.is_file()
        for name, secret in SECRETS.items()
        if secret.encode() in file.read_bytes()
    }
    assert not found and len(files) > 20
    assert not any(secret in sweep.out + sweep.err for secret in SECRETS.values())
