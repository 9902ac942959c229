"""The checks of `python -m distpaml.doctor`.

A check is a function with `@check`. It returns what to say about a healthy machine, or raises a `UserError` that says
what is wrong and how to fix it.
"""

import os
import platform
from collections import Counter
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from packaging.requirements import Requirement

from distpaml.errors import UserError

if TYPE_CHECKING:
    from distpaml.doctor.survey import Machine

Check = Callable[[], str]
CHECKS: dict[str, Check] = {}
HOW = "install with `pip install -c constraints.txt -e .`"
SKEW = 2.0
"""Seconds that clocks may differ: event times are compared, and object storage rejects minutes."""
WANDB = "https://api.wandb.ai"


def check(function: Check) -> Check:
    """Add a check under its name."""
    CHECKS[function.__name__] = function
    return function


@check
def versions() -> str:
    """Python and every required package have versions that work."""
    found = []
    for text in requires("distpaml") or []:
        need = Requirement(text)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        try:
            have = version(need.name)
        except PackageNotFoundError as error:
            raise UserError(f"{need.name} is missing; {HOW}.") from error
        if not need.specifier.contains(have, prereleases=True):
            raise UserError(f"{need.name} is {have}, but should be {need.specifier}; {HOW}.")
        found.append(f"{need.name} {have}")
    shown = [entry for entry in found if entry.split()[0] in ("torch", "gpytorch", "mujoco", "ray")]
    return f"Python {platform.python_version()}, {', '.join(shown)} and {len(found) - len(shown)} more"


@check
def rendering() -> str:
    """Images can be drawn off screen; only experiments with descriptor.kind=image need it."""
    from distpaml.descriptors.render import working_backend

    return f"images are drawn off screen by {working_backend()}"


@check
def gpus() -> str:
    """torch can use the GPUs that the machine has; runtime.gpus and fit.device=cuda need one."""
    import torch

    there = len(list(Path("/dev").glob("nvidia[0-9]*")))
    if not torch.cuda.is_available():
        if there:
            raise UserError(
                f"The machine has {there} GPUs, but torch {torch.__version__} cannot use them; "
                "install its build for CUDA and a driver that fits."
            )
        return "none; everything runs on CPUs"
    return ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))


@check
def wandb() -> str:
    """Online, offline or off; being offline is a problem only if WANDB_MODE asks for online."""
    from distpaml.tracking.network import why_offline

    mode = os.environ.get("WANDB_MODE") or "auto"
    if mode == "disabled":
        return "off, by WANDB_MODE"
    if mode in ("offline", "dryrun"):
        return "offline, by WANDB_MODE; `wandb sync` uploads later"
    why = why_offline(os.environ.get("WANDB_BASE_URL") or WANDB)
    if why and mode == "online":
        raise UserError(f"WANDB_MODE is online, but {why}; give a key and a network, or unset it.")
    return f"offline, since {why}; `wandb sync` uploads later" if why else "online"


@check
def ray() -> str:
    """The running cluster's resources (none is started); its machines agree in clocks and versions."""
    from distpaml.doctor.survey import survey
    from distpaml.runtime.start import can_grow, connected, nodes, running

    if not running():
        return f"no cluster is running; a sweep starts one on this machine, with {os.cpu_count()} CPUs"
    with connected([]):
        resources, machines = nodes(), survey()
    if len(machines) < len(resources):
        raise UserError(
            f"{len(resources) - len(machines)} of {len(resources)} machines did not answer; look at their "
            "/tmp/ray/session_latest/logs, or take them out of the cluster."
        )
    check_agreement(machines)
    total = {kind: sum(node.get(kind, 0.0) for node in resources) for kind in ("CPU", "GPU")}
    if not total["CPU"] and not can_grow():
        raise UserError("The cluster has no CPUs for trials; start workers with `ray start --address=…`.")
    growing = "; it can grow" if can_grow() else ""
    return f"{len(resources)} machines with {total['CPU']:g} CPUs and {total['GPU']:g} GPUs{growing}"


def check_agreement(machines: "list[Machine]") -> None:
    """Raise unless all machines have the same versions and the same time."""
    for machine in machines:
        if abs(machine.ahead) > SKEW:
            how = f"{abs(machine.ahead):.1f} s {'ahead' if machine.ahead > 0 else 'behind'}"
            raise UserError(f"The clock of {machine.name} is {how}; start chrony or systemd-timesyncd there.")
    for package in machines[0].versions if machines else ():
        found = Counter(machine.versions[package] for machine in machines)
        if len(found) > 1:
            usual = found.most_common(1)[0][0]
            odd = next(machine for machine in machines if machine.versions[package] != usual)
            raise UserError(
                f"{odd.name} has {package} {odd.versions[package]}, but others have {usual}; "
                "run `bash cluster/setup.sh` there, which installs what is pinned."
            )


def storage(where: str) -> str:
    """A file written here is visible on all machines and can be deleted."""
    from distpaml.doctor.survey import survey
    from distpaml.runtime.start import connected, running
    from distpaml.sweep.credentials import handed_out
    from distpaml.sweep.storage import Storage

    trial = Storage.of(where).inside(f".doctor-{uuid4().hex[:8]}")
    missing = trial.missing_folders()
    seen = Storage(trial.where, trial.identify())
    machines: list[Machine] = []
    try:
        if running():
            with connected([]), handed_out():
                machines = survey(seen)
    finally:
        trial.remove()
        seen.forget_copy()
        trial.remove_empty(missing)
    for machine in machines:
        if machine.trouble:
            raise UserError(machine.trouble.replace(trial.where, where).replace("the sweep's folder", "the folder"))
    return f"{where} can be written here" + (f" and is seen by {len(machines)} machines" if machines else "")
