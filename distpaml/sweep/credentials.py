"""The driver's accounts, for its trials on other machines: keys of W&B and of object storage.

Trials ask for them, and they are kept in memory only. In a trial's config Tune would write them to disk, and in a
runtime environment Ray would write them to its logs.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

NAME = "distpaml-credentials"
PREFIXES = ("WANDB_", "AWS_")
OWN = ("WANDB_DIR", "WANDB_SERVICE")
"""What every process has for itself."""


class Credentials:
    """Variables and their values; they come by a call, since Ray keeps the arguments of constructors."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}

    def put(self, variables: dict[str, str]) -> None:
        self.variables = variables

    def get(self) -> dict[str, str]:
        return self.variables


@contextmanager
def handed_out() -> Iterator[None]:
    """While it lasts, every process of this driver can `take_over` its variables."""
    given = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES) and name not in OWN}
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    options: dict[str, Any] = {"name": NAME, "num_cpus": 0, "scheduling_strategy": here}
    actor: Any = ray.remote(**options)(Credentials).remote()
    ray.get(actor.put.remote(given))
    try:
        yield
    finally:
        ray.kill(actor)


def take_over() -> None:
    """Use the driver's variables, if it hands them out."""
    try:
        actor = ray.get_actor(NAME)
    except ValueError:
        return
    os.environ.update(ray.get(actor.get.remote()))
