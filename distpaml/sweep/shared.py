"""Whether a machine sees the sweep's folder, and not one of its own at the same path: else results would be lost."""

import socket
import time
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from distpaml.errors import UserError
from distpaml.sweep.environment import take_over
from distpaml.sweep.folder import Folder

PATIENCE = 15.0
"""Seconds until a new file must be seen on all machines."""


def trouble(folder: Folder, patience: float = PATIENCE) -> str | None:
    """One sentence on why this machine must not take part; None if it may."""
    end = time.monotonic() + patience
    try:
        while not _seen(folder):
            if time.monotonic() > end:
                return (
                    f"{socket.gethostname()} does not see the sweep's folder at {folder.where}; "
                    "choose one with --out that all machines share, or object storage such as s3://…."
                )
            time.sleep(0.5)
    except UserError as error:
        return f"On {socket.gethostname()}, {error}"
    return None


def check_machines(folder: Folder) -> None:
    """Ask every machine of the cluster that this process is connected to."""

    def ask(node: str) -> Any:
        options: dict[str, Any] = {
            "num_cpus": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        }
        return ray.remote(**options)(_trouble_there).remote(folder)

    machines = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    for answer in [ask(node) for node in machines]:
        try:
            sentence = ray.get(answer)
        except RayError:
            continue  # it went away; trials ask again
        if sentence:
            raise UserError(sentence)


def _trouble_there(folder: Folder) -> str | None:
    take_over()
    return trouble(folder)


def _seen(folder: Folder) -> bool:
    folder.pull("id")
    file = folder.local / "id"
    return file.exists() and file.read_text() == folder.id
