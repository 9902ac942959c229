"""A cluster without workers grows to what a sweep needs, and shrinks again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ray.autoscaler._private.fake_multi_node import node_provider
from tiny import SIZE, tiny

from distpaml.records import read_records
from distpaml.runtime.run_experiment import run_to_end


@pytest.mark.root
@pytest.mark.slow
def test_from_no_workers_up_and_down_again(tmp_path):
    """In namespaces of its own, since `ray stop`, ports and /tmp/ray belong to the whole machine."""
    apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c"]
    fake = Path(node_provider.__file__).parent
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "example.yaml").write_text("{}\n")  # Ray reads it, but its wheel does not have it
    prepared = (
        "ip link set lo up && mkdir -p /tmp/ray && mount -t tmpfs tmpfs /tmp/ray && "
        f'mount -t overlay overlay -o lowerdir={tmp_path / "shown"}:{fake} {fake} && "$@"'
    )
    program = [
        sys.executable,
        str(Path(__file__).parent / "grow_and_shrink.py"),
        str(tmp_path),
        str(tmp_path / "sweep"),
    ]
    words = ["quickstart", "methods=[uni]", "seeds=3", *SIZE, "wandb=off"]
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*apart, prepared, "bash", *program, *words],
        env=surroundings | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=560,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    printed = (tmp_path / "printed").read_text()
    assert told["code"] == 0 and "Waiting for the cluster to grow" in printed, printed
    assert told["history"][0] == [] and told["history"][-1] == []
    assert told["asked"] == [["2", "cores-spot"]], told[
        "asked"
    ]  # at once, since more trials wait than there is room for
    assert ["cores-spot", "cores-spot"] in told["history"]  # two at most, and the kind that is preferred
    for seed in range(3):
        alone = run_to_end(tiny("method=uni", f"seed={seed}"), tmp_path / f"alone{seed}")
        there = read_records(tmp_path / "sweep" / "trials" / f"cartpole-uni-seed{seed}")
        assert [record.result() for record in there] == [record.result() for record in alone]
