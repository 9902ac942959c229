"""What is installed works without the clone: the wheel has the sweeps, the experiments, the page and its types."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tiny import SIZE

REPOSITORY = Path(__file__).parents[1]
FOLDERS = ("tune_configs", "distpaml/experiments")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The wheel, unpacked as pip would."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def python(installed: Path, cwd: Path, *words: str) -> str:
    """What Python prints in an empty folder, with the unpacked wheel before anything else on its path."""
    environment = os.environ | {"PYTHONPATH": str(installed), "WANDB_MODE": "disabled"}
    done = subprocess.run([sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_has_everything_that_the_clone_has(installed, tmp_path):
    assert (installed / "distpaml" / "py.typed").exists()
    code = "import distpaml, distpaml.sweep.load as s, distpaml.config as c; print(distpaml.__file__)\n"
    code += "print(sorted(s.shipped_sweeps()), sorted(c.shipped()))"
    where, shipped = python(installed, tmp_path, "-c", code).splitlines()
    assert Path(where).is_relative_to(installed)
    names = [sorted(file.stem for file in (REPOSITORY / folder).glob("*.yaml")) for folder in FOLDERS]
    assert shipped == f"{names[0]} {names[1]}"
    assert not list(installed.glob("tests*"))


@pytest.mark.slow
def test_the_quickstart_runs_from_an_empty_folder(installed, tmp_path):
    out = python(installed, tmp_path, "-m", "distpaml.sweep", *SIZE, "seeds=1", "methods=[uni]", "--out", "out")
    assert "out/report/index.html" in out
    assert (tmp_path / "out" / "trials" / "cartpole-uni-seed0" / "records.jsonl").exists()
