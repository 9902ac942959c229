"""Checks that a machine sees the sweep's folder, not its own folder at the same path: results would be lost."""

import socket
import time
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from distpaml.errors import UserError
from distpaml.sweep.credentials import take_over
from distpaml.sweep.storage import Storage

PATIENCE = 30.0
"""Seconds for a new file to become visible on all machines."""


def trouble(storage: Storage, patience: float = PATIENCE) -> str | None:
    """Why this machine must not take part, in one sentence; None if it may."""
    end, sentence = time.monotonic() + patience, ""
    while True:
        try:
            if _seen(storage):
                return None
            sentence = (
                f"{socket.gethostname()} does not see the sweep's folder at {storage.where}; "
                "choose one with --out that all machines share, or object storage such as s3://…."
            )
        except UserError as error:
            sentence = f"On {socket.gethostname()}, {error}"
        if time.monotonic() > end:
            return sentence
        time.sleep(0.5)


def check_machines(storage: Storage) -> None:
    """Ask every machine of the cluster that this process is connected to."""

    def ask(node: str) -> Any:
        options: dict[str, Any] = {
            "num_cpus": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        }
        return ray.remote(**options)(_trouble_there).remote(storage)

    machines = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    for answer in [ask(node) for node in machines]:
        try:
            sentence = ray.get(answer)
        except RayError:
            continue  # it is gone; trials check again
        if sentence:
            raise UserError(sentence)


def _trouble_there(storage: Storage) -> str | None:
    take_over()
    return trouble(storage)


def _seen(storage: Storage) -> bool:
    storage.pull("id")
    file = storage.local / "id"
    return file.exists() and file.read_text() == storage.id
