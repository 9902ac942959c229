"""Asks every machine of a cluster for its versions, clock and view of the storage."""

import platform
import socket
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from distpaml.sweep.credentials import take_over
from distpaml.sweep.storage import Storage
from distpaml.sweep.storage_check import trouble

PACKAGES = ("distpaml", "gpytorch", "mujoco", "numpy", "ray", "torch")
"""Packages that results depend on."""
SECONDS = 60.0
"""Time limit for a machine's answer."""


@dataclass(frozen=True)
class Machine:
    """One machine, seen from here."""

    name: str
    ahead: float
    """Seconds that its clock is ahead of ours, within the precision of a call."""
    versions: dict[str, str]
    trouble: str | None
    """What is wrong with the storage, if it was checked."""


class Probe:
    """Runs on the machine and answers."""

    def about(self, storage: Storage | None) -> tuple[str, dict[str, str], str | None]:
        take_over()
        versions = {"Python": platform.python_version()} | {name: version(name) for name in PACKAGES}
        problem = trouble(storage, 5.0) if storage else None
        if storage:
            storage.forget_copy()
        return socket.gethostname(), versions, problem

    def time(self) -> float:
        return time.time()


def survey(storage: Storage | None = None) -> list[Machine]:
    """Every machine of the connected cluster that answers."""
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    probes = [_start(node) for node in nodes]
    asked = [probe.about.remote(storage) for probe in probes]
    machines = []
    for probe, answer in zip(probes, asked, strict=True):
        try:
            name, versions, problem = ray.get(answer, timeout=SECONDS)
            machines.append(Machine(name, _ahead(probe), versions, problem))
        except RayError:
            continue
        finally:
            ray.kill(probe)
    return machines


def _start(node: str) -> Any:
    options: dict[str, Any] = {
        "num_cpus": 0,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
    }
    return ray.remote(**options)(Probe).remote()


def _ahead(probe: Any) -> float:
    """From the fastest of three calls: the remote clock was read halfway, give or take half the call."""
    measured = []
    for _ in range(3):
        begin = time.time()
        there = ray.get(probe.time.remote(), timeout=SECONDS)
        end = time.time()
        measured.append((end - begin, there - (begin + end) / 2))
    duration, ahead = min(measured)
    return max(0.0, abs(ahead) - duration / 2) * (1 if ahead > 0 else -1)
