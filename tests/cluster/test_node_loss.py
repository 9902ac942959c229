"""A machine that is lost in the middle of a sweep costs its trials the round that they were in, and nothing else."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest
import ray
from actors import eventually, processes
from ray.cluster_utils import Cluster
from tiny import SIZE, tiny

from distpaml.records import read_records
from distpaml.runtime.environment import own_environment
from distpaml.runtime.run_experiment import run_to_end

pytestmark = pytest.mark.slow

QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 2,
}
SEEDS = (0, 1, 2)


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """A head without room for trials, to which nodes can be added."""
    own = mkdtemp(prefix="dp", dir="/tmp")  # a short path, for sockets; in /tmp/ray other tests would find the cluster
    for name, value in {"RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": own, "TMPDIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK_TO_NOTICE},
    )
    yield cluster
    cluster.shutdown()
    shutil.rmtree(own, ignore_errors=True)


def sweep(cluster, out, *words):
    """`python -m distpaml.sweep` on the cluster."""
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    command = [sys.executable, "-m", "distpaml.sweep", "quickstart", "methods=[uni]", *SIZE, "wandb=off"]
    return subprocess.Popen(
        [*command, *words, "--out", out],
        env=surroundings | {"RAY_ADDRESS": cluster.address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(folder: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in folder.glob("trials/*/records.jsonl"))


@pytest.mark.parametrize("storage", ["shared folder", "object storage"])
def test_a_lost_node_costs_at_most_the_round_of_its_trials(cluster, tmp_path, storage):
    lost = cluster.add_node(num_cpus=2)
    folder = tmp_path / "sweep"
    out = str(folder) if storage == "shared folder" else folder.as_uri()
    running = sweep(cluster, out, f"seeds={len(SEEDS)}", "rounds=3")
    try:
        eventually(lambda: lines(folder) >= 2 and processes("ray::ResourceTrainable.train"), 180)
        before = {path.parent.name: path.read_text() for path in folder.glob("trials/*/records.jsonl")}
        cluster.remove_node(lost, allow_graceful=False)
        cluster.add_node(num_cpus=1)
        printed, errors = running.communicate(timeout=300)
    finally:
        running.kill()
    assert running.returncode == 0, printed + errors

    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert "trial retried" in {event["event"] for event in events}
    names = [f"cartpole-uni-seed{seed}" for seed in SEEDS]
    for seed, name in zip(SEEDS, names, strict=True):
        path = folder / "trials" / name
        assert (path / "records.jsonl").read_text().startswith(before.get(name, ""))  # times and all: not made again
        alone = run_to_end(tiny("rounds=3", "method=uni", f"seed={seed}"), tmp_path / "alone" / name)
        assert [record.result() for record in read_records(path)] == [record.result() for record in alone]


@pytest.mark.root
def test_a_machine_that_does_not_see_the_folder_is_refused(cluster, tmp_path):
    """It sees an empty folder at the same path, in a mount namespace of its own."""
    folder = tmp_path / "sweep"
    folder.mkdir()
    own = f"mount -t tmpfs tmpfs $RAY_TMPDIR/ray && mount -t tmpfs tmpfs {folder}"
    script = f"{own} && exec ray start --address={cluster.address} --num-cpus=1 --block"
    stranger = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", script],
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with own_environment(), ray.init(address=cluster.address, log_to_driver=False, logging_level="error"):
            eventually(lambda: len(ray.nodes()) == 2)
        done = sweep(cluster, str(folder), "seeds=1")
        printed, errors = done.communicate(timeout=500)
    finally:
        stranger.kill()
    assert done.returncode == 2, printed + errors
    assert "does not see the sweep's folder at" in errors and errors.count("\n") == 1
    assert not list(folder.glob("trials/*"))
