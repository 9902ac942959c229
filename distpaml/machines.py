"""What `python -m distpaml.doctor` says of GPUs, W&B, the cluster and the storage."""

import os
from collections import Counter
from pathlib import Path
from uuid import uuid4

from distpaml.errors import UserError
from distpaml.runtime.survey import Machine

SKEW = 2.0
"""Seconds that clocks may differ: the times of events are compared, and object storage refuses minutes."""
WANDB = "https://api.wandb.ai"


def seen_gpus() -> str:
    """What torch can use, which should be what the machine has."""
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


def wandb_mode() -> str:
    """Online, offline or off; not being online is a problem only where it was asked for."""
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


def cluster() -> str:
    """The resources of the running cluster; clocks and versions must agree on its machines."""
    from distpaml.runtime.start import can_grow, connected, nodes, running
    from distpaml.runtime.survey import survey

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


def check_agreement(machines: list[Machine]) -> None:
    """All machines compute the same, at the same time."""
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
    """A file that is written here can be seen on all machines, and removed again."""
    from distpaml.runtime.start import connected, running
    from distpaml.runtime.survey import survey
    from distpaml.sweep.environment import handed_out
    from distpaml.sweep.folder import Folder

    trial = Folder.of(where).inside(f".doctor-{uuid4().hex[:8]}")
    seen = Folder(trial.where, trial.identify())
    machines: list[Machine] = []
    try:
        if running():
            with connected([]), handed_out():
                machines = survey(seen)
    finally:
        trial.remove()
    for machine in machines:
        if machine.trouble:
            raise UserError(machine.trouble.replace(trial.where, where).replace("the sweep's folder", "the folder"))
    return f"{where} can be written here" + (f" and is seen by {len(machines)} machines" if machines else "")
