"""What the doctor says of GPUs, W&B, storage and clusters."""

import os
import sys
from pathlib import Path

import pytest
import ray

from distpaml.doctor import checks
from distpaml.doctor.__main__ import main
from distpaml.doctor.survey import Machine, survey
from distpaml.errors import UserError
from distpaml.runtime.environment import own_environment
from distpaml.sweep.storage import Storage


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("RAY_ADDRESS", "WANDB_MODE", "WANDB_API_KEY", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", "/nowhere")


def machine(name="one", ahead=0.0, trouble=None, **versions):
    return Machine(name, ahead, {"Python": "3.11.7", "ray": "2.60.0"} | versions, trouble)


def test_offline_is_a_problem_only_where_online_was_asked_for(monkeypatch):
    assert checks.wandb().startswith("offline, since there is no key")
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert checks.wandb().startswith("offline, by WANDB_MODE")
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert checks.wandb() == "off, by WANDB_MODE"
    monkeypatch.setenv("WANDB_MODE", "online")
    with pytest.raises(UserError, match=r"WANDB_MODE is online, but there is no key .*; give a key and a network"):
        checks.wandb()


def test_a_key_for_a_server_that_does_not_answer(monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    assert checks.wandb().startswith("offline, since http://127.0.0.1:9 cannot be reached")


@pytest.mark.parametrize("where", ["{0}/new", "file://{0}/new"])
def test_storage_is_written_and_left_as_it_was(tmp_path, where):
    (tmp_path / "new").mkdir()
    assert checks.storage(where.format(tmp_path)) == f"{where.format(tmp_path)} can be written here"
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.parametrize("where", ["{0}/a/b", "file://{0}/a/b"])
def test_storage_that_did_not_exist_does_not_exist_afterwards(tmp_path, where, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    assert checks.storage(where.format(tmp_path)) == f"{where.format(tmp_path)} can be written here"
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


def test_storage_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/\.doctor-\w+ cannot be written: .*Not a directory"):
        checks.storage(str(tmp_path / "file"))


def test_the_doctor_tries_the_storage_that_it_is_given(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(checks, "CHECKS", {"wandb": checks.wandb})
    assert main(["--storage", str(tmp_path)]) == 0
    assert f"ok       storage: {tmp_path} can be written here" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    assert main(["--storage", str(tmp_path / "file")]) == 1


def test_a_check_that_breaks_is_a_problem(capsys, monkeypatch):
    monkeypatch.setattr(checks, "CHECKS", {"gl": lambda: 1 / 0})
    assert main() == 1
    assert capsys.readouterr().out == "problem  gl: ZeroDivisionError, division by zero; reinstall distpaml.\n"


def test_a_gpu_that_torch_cannot_use(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [Path("/dev/nvidia0")])
    with pytest.raises(UserError, match=r"has 1 GPUs, but torch 2\.\S+ cannot use them; install its build for CUDA"):
        checks.gpus()


def test_no_cluster_is_started():
    assert checks.ray() == (f"no cluster is running; a sweep starts one on this machine, with {os.cpu_count()} CPUs")
    assert not ray.is_initialized()


def test_clocks_and_versions_must_agree():
    checks.check_agreement([machine(), machine("two", ahead=-1.5)])
    with pytest.raises(UserError, match=r"The clock of two is 7\.0 s behind; start chrony"):
        checks.check_agreement([machine(), machine("two", ahead=-7.0)])
    with pytest.raises(UserError, match=r"three has ray 2\.55\.0, but others have 2\.60\.0; run `bash cluster/setup"):
        checks.check_agreement([machine(), machine("two"), machine("three", ray="2.55.0")])


@pytest.mark.slow
def test_a_survey_of_this_machine(tmp_path):
    """Its clock is the one here, and it sees the folder if the id is right."""
    storage = Storage.of(str(tmp_path))
    with own_environment(), ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False):
        (fine,) = survey(Storage(storage.where, storage.identify()))
        (wrong,) = survey(Storage(storage.where, "another"))
    assert abs(fine.ahead) < 0.1 and fine.trouble is None
    assert fine.versions["Python"] == sys.version.split()[0]
    assert wrong.trouble.startswith(f"{fine.name} does not see the sweep's folder at {tmp_path}")
