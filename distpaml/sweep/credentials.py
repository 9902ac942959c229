"""The driver's W&B and object-storage keys, for trials on other machines.

Trials ask an actor for them, and they stay in memory. In a trial's config Tune would write them to disk; in a runtime
environment Ray would write them to its logs and onto command lines. A Ray of this machine's own needs nothing of this:
its processes inherit the driver's environment.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.tune.execution import class_cache
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

NAME = "distpaml-credentials"
PREFIXES = ("WANDB_", "AWS_")
OWN = ("WANDB_DIR", "WANDB_SERVICE")
"""Variables that each process sets for itself."""


class Credentials:
    """Holds the variables; they arrive by a call, since Ray stores constructor arguments."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}

    def put(self, variables: dict[str, str]) -> None:
        self.variables = variables

    def get(self) -> dict[str, str]:
        return self.variables


def keep_off_command_lines() -> None:
    """Keep Tune from passing AWS keys on by itself: it puts them into the runtime environment of every trial, which Ray
    writes onto the command lines of its workers, for all users of a machine to see."""
    class_cache.ENV_VARS_TO_PROPAGATE -= {name for name in class_cache.ENV_VARS_TO_PROPAGATE if name.startswith("AWS_")}


@contextmanager
def handed_out() -> Iterator[None]:
    """Inside this context, every process of the driver can `take_over` its variables."""
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
