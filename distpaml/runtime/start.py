"""A Ray to run on: the cluster that is there, or one on this machine that ends with the command."""

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray._private import ray_constants
from ray._private.services import get_ray_address_from_environment

from distpaml.config import ExperimentConfig
from distpaml.config.yaml_text import read
from distpaml.errors import UserError
from distpaml.plugins import own_modules
from distpaml.runtime.resources import check_fits

QUIET = {"RAY_DEDUP_LOGS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}
BOOTSTRAP = Path("~/ray_bootstrap_config.yaml")
"""What `ray up` leaves on the head of a cluster that can grow."""


@contextmanager
def connected(configs: Iterable[ExperimentConfig], verbose: bool = False) -> Iterator[bool]:
    """Connected to RAY_ADDRESS, to the cluster that `ray start` or `ray up` left here, or to one of its own.

    What comes of it is whether the cluster was there before. Modules of the user's own that the configs name travel
    to the machines of a cluster.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    address = running()
    quiet: dict[str, Any] = {} if verbose else {"log_to_driver": False, "logging_level": "error"}
    modules = own_modules(name for config in configs for name in plugin_names(config))
    terminate = signal.getsignal(signal.SIGTERM)
    try:
        if address:
            ray.init(address=address, runtime_env={"py_modules": modules} if modules else None, **quiet)
        else:
            _stay_on_this_machine()
            ray.init(address="local", include_dashboard=False, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(
            f"Ray cannot be reached at {address or 'this machine'}: {' '.join(str(error).split())}"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)  # Ray has put its own there, which aborts
    try:
        yield bool(address)
    finally:
        ray.shutdown()


@contextmanager
def ray_is_there(config: ExperimentConfig) -> Iterator[None]:
    """The Ray that this process is connected to already, or one for the time being; large enough for the config."""
    if ray.is_initialized():
        yield
    else:
        with connected([config]):
            if not can_grow():
                check_fits(config, nodes())
            yield


def running() -> str | None:
    """The address of the cluster that is there, if one is."""
    return get_ray_address_from_environment(None, None)  # type: ignore[arg-type]


def _stay_on_this_machine() -> None:
    """Ray listens to the whole network unless it believes that clusters are not supported, as on Windows."""
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"
    ray_constants.ENABLE_RAY_CLUSTER = False


def plugin_names(config: ExperimentConfig) -> list[str]:
    """The keys of a config that may name a class or function of the user's own."""
    return [config.domain.name, config.descriptor.kind, config.selection.utility, config.model.network]


def nodes() -> list[Mapping[str, float]]:
    """The resources of every living machine."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def can_grow() -> bool:
    """Whether an autoscaler may add machines; those of one's own (`provider: local`) are what they are."""
    if "RAY_CLUSTER_NAME" in os.environ:
        return True
    file = BOOTSTRAP.expanduser()
    return file.exists() and read(file).get("provider", {}).get("type") != "local"
