"""Connects to Ray: to a running cluster, or to one on this machine that ends with the command."""

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import psutil
import ray
from ray._private import ray_constants
from ray._private.services import get_ray_address_from_environment

from distpaml.arithmetic import KERNELS
from distpaml.config import ExperimentConfig
from distpaml.config.yaml_text import read
from distpaml.errors import UserError
from distpaml.plugins import own_modules
from distpaml.runtime.environment import own_environment
from distpaml.runtime.guard import guarded
from distpaml.runtime.lifeline import daemons_of, in_time, is_alive, watched, with_descendants, with_remedy
from distpaml.runtime.reachable import check_reachable
from distpaml.runtime.resources import check_fits

QUIET = {"RAY_DEDUP_LOGS": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}
HIDE_GPUS = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}
"""Read by Ray's workers: an actor that reserved no GPU sees none. Without it, it would see all of its machine's."""
BOOTSTRAP = Path("~/ray_bootstrap_config.yaml")
"""`ray up` leaves this file on the head of a cluster that can grow."""
START_LIMIT = 180.0
"""Seconds for Ray to start; five to twelve are usual."""
PATIENCE = 10.0
"""Seconds for Ray's processes to end after a shutdown; the rest are killed."""


@contextmanager
def connected(configs: Iterable[ExperimentConfig], verbose: bool = False) -> Iterator[bool]:
    """Connected to RAY_ADDRESS, to the cluster that `ray start` or `ray up` left here, or to a new local one.

    Yields whether the cluster was already running. The user's own modules that the configs name are sent to the
    machines of a cluster. A local one leaves no process behind.
    """
    with own_environment():
        for name, value in (QUIET | HIDE_GPUS).items():
            os.environ.setdefault(name, value)
        address = running()
        guard = nullcontext(lambda: None) if address else guarded()
        with guard as started, _connection(address, configs, verbose):
            started()
            yield bool(address)


@contextmanager
def _connection(address: str | None, configs: Iterable[ExperimentConfig], verbose: bool) -> Iterator[None]:
    quiet: dict[str, Any] = {} if verbose else {"log_to_driver": False, "logging_level": "error"}
    modules = own_modules(name for config in configs for name in plugin_names(config))
    terminate, before = signal.getsignal(signal.SIGTERM), set(psutil.Process().children())
    if address:
        check_reachable(address)
    try:
        try:
            with in_time(START_LIMIT, f"Ray has not started within {START_LIMIT:g} seconds"):
                if address:
                    sent = {"env_vars": HIDE_GPUS | _kernels()} | ({"py_modules": modules} if modules else {})
                    ray.init(address=address, runtime_env=sent, **quiet)
                else:
                    _stay_on_this_machine()
                    ray.init(address="local", include_dashboard=False, **quiet)
        except SystemExit as ended:  # what Ray makes of SIGTERM until it has started
            signal.alarm(0)  # Ray has set it, to abort in three seconds, which a shutdown may take
            raise KeyboardInterrupt from ended
        except Exception as error:  # Ray raises plain ones too, such as for a machine that is too busy
            said = " ".join(str(error).split()).rstrip(".")
            what = f"Ray cannot be reached at {address}" if address else "Ray did not start on this machine"
            raise UserError(with_remedy(f"{what}: {said}")) from error
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, terminate)  # Ray has installed its own, which aborts
        node: Any = ray._private.worker._global_node
        daemons = daemons_of(Path(node.get_session_dir_path()).name, node.raylet_socket_name)
        with watched(daemons, ours=not address):
            yield
    finally:
        started = with_descendants(set(psutil.Process().children()) - before)
        ray.shutdown()
        _end(started | with_descendants(started))


def _kernels() -> dict[str, str]:
    """For workers of a running cluster, which import numpy before they import distpaml."""
    return {KERNELS: os.environ[KERNELS]} if KERNELS in os.environ else {}


def _end(processes: Iterable[psutil.Process]) -> None:
    """Wait until the processes have ended, and kill those that have not after `PATIENCE` seconds.

    `ray.shutdown` waits for its daemons only: a worker notices that they are gone, and may take seconds to exit.
    """
    for last_chance in (False, True):
        end = time.monotonic() + PATIENCE
        while (alive := [process for process in processes if is_alive(process)]) and time.monotonic() < end:
            time.sleep(0.02)
        for process in () if last_chance else alive:
            with suppress(psutil.Error):
                process.kill()


@contextmanager
def ray_is_there(config: ExperimentConfig) -> Iterator[None]:
    """Use the Ray that this process is connected to, or connect for a while; checks that the config fits on it."""
    if ray.is_initialized():
        yield
    else:
        with connected([config]):
            if not can_grow():
                check_fits(config, nodes())
            yield


def running() -> str | None:
    """The address of a running cluster, if there is one."""
    return get_ray_address_from_environment(None, None)  # type: ignore[arg-type]


def _stay_on_this_machine() -> None:
    """Bind to loopback: Ray listens to the whole network unless it believes that clusters are unsupported."""
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"
    ray_constants.ENABLE_RAY_CLUSTER = False


def plugin_names(config: ExperimentConfig) -> list[str]:
    """The values of a config that may name a class or function of the user's own."""
    return [config.domain.name, config.descriptor.kind, config.utility, config.model.network]


def nodes() -> list[Mapping[str, float]]:
    """The resources of every machine that is alive."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def can_grow() -> bool:
    """Whether an autoscaler may add machines; a cluster of one's own machines (`provider: local`) cannot grow."""
    if "RAY_CLUSTER_NAME" in os.environ:
        return True
    file = BOOTSTRAP.expanduser()
    return file.exists() and read(file).get("provider", {}).get("type") != "local"
