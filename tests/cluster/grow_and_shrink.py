"""A sweep on a head that starts with no workers: `grow_and_shrink.py FOLDER OUT WORDS…` in namespaces of its own.

The node types are those of cluster/cluster.yaml with one CPU each; Ray's fake provider makes processes of them. Prints
one JSON line: how many machines of each type were alive over time, and how the sweep ended.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import ray
import yaml
from ray.autoscaler._private.fake_multi_node.node_provider import FAKE_HEAD_NODE_ID, FAKE_HEAD_NODE_TYPE

TYPES = yaml.safe_load((Path(__file__).parents[2] / "cluster" / "cluster.yaml").read_text())["available_node_types"]

LISTS = (
    "cluster_synced_files",
    "head_setup_commands",
    "head_start_ray_commands",
    "initialization_commands",
    "setup_commands",
    "worker_setup_commands",
    "worker_start_ray_commands",
)


def config() -> dict:
    workers = {
        name: kind | {"node_config": {}, "resources": {"CPU": 1, name: 1}, "max_workers": 2}
        for name, kind in TYPES.items()
        if name.startswith("cores")
    }
    return {
        "cluster_name": "fake",
        "max_workers": 2,
        "idle_timeout_minutes": 0.1,
        "provider": {"type": "fake_multinode", "launch_multiple": True, "head_node_id": FAKE_HEAD_NODE_ID},
        "head_node_type": FAKE_HEAD_NODE_TYPE,
        "available_node_types": workers
        | {FAKE_HEAD_NODE_TYPE: {"node_config": {}, "resources": {"CPU": 0}, "max_workers": 0}},
        **{key: {} for key in ("auth", "docker", "file_mounts")},
        **{key: [] for key in LISTS},
        "file_mounts_sync_continuously": False,
    }


def alive() -> list[str]:
    """The types of the living machines, the head left out."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return sorted(kind for node in nodes for kind in TYPES if kind in node)


def main(folder: Path, out: str, *words: str) -> None:
    os.environ |= {
        "HOME": str(folder),
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_FAKE_CLUSTER": "1",
        "RAY_enable_autoscaler_v2": "1",
        "RAY_CLOUD_INSTANCE_ID": FAKE_HEAD_NODE_ID,
        "RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD_NODE_ID,
    }
    bootstrap = folder / "ray_bootstrap_config.yaml"
    bootstrap.write_text(json.dumps(config()))
    start = ["ray", "start", "--head", "--num-cpus=0", f"--autoscaling-config={bootstrap}", "--include-dashboard=false"]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name in ("RAY_OVERRIDE_NODE_ID_FOR_TESTING", "RAY_CLOUD_INSTANCE_ID"):
        del os.environ[name]
    ray.init(address="auto", logging_level="error", log_to_driver=False)
    history = [alive()]
    with open(folder / "printed", "w") as printed:
        command = [sys.executable, "-m", "distpaml.sweep", *words, "--out", out]
        sweep = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
    end = time.monotonic() + 450
    while (sweep.poll() is None or alive()) and time.monotonic() < end:
        if alive() != history[-1]:
            history.append(alive())
        time.sleep(0.5)
    history.append(alive())
    said = Path("/tmp/ray/session_latest/logs/monitor.log").read_text()
    asked = re.findall(r"Adding (\d+) node\(s\) of type (\S+)\.", said)
    print(json.dumps({"code": sweep.poll(), "history": history, "asked": asked}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
