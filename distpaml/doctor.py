"""Is this machine, or the cluster it belongs to, fit for the job? `python -m distpaml.doctor [--storage DIR|s3://…]`.

A check is one function with `@check`: what it returns is said of a machine that is fine, and the `UserError` it raises
is the problem, with what to do in its sentence.
"""

import platform
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from distpaml.errors import UserError

Check = Callable[[], str]
CHECKS: dict[str, Check] = {}
HOW = "install with `pip install -c constraints.txt -e .`"


def check(function: Check) -> Check:
    """Add a check under its name."""
    CHECKS[function.__name__] = function
    return function


@check
def versions() -> str:
    """Python and every package that distpaml needs, in versions it works with."""
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
    """Images can be drawn off screen; only experiments with descriptor.kind=pixels need it."""
    from distpaml.descriptors.render import working_backend

    return f"images are drawn off screen by {working_backend()}"


@check
def gpus() -> str:
    """Only experiments with runtime.gpus or fit.device=cuda need one."""
    from distpaml.machines import seen_gpus

    return seen_gpus()


@check
def wandb() -> str:
    """Where runs will be shown."""
    from distpaml.machines import wandb_mode

    return wandb_mode()


@check
def ray() -> str:
    """The cluster that sweeps would use; none is started."""
    from distpaml.machines import cluster

    return cluster()


def main(arguments: Sequence[str] = ()) -> int:
    parser = ArgumentParser(prog="python -m distpaml.doctor", description="What works here, and what to do if not.")
    parser.add_argument("--storage", metavar="DIR", help="try a sweep's --out on all machines: a folder or s3://…")
    where = parser.parse_args(arguments).storage
    checks = dict(CHECKS)
    if where:
        from distpaml.machines import storage

        checks["storage"] = partial(storage, where)
    problems = 0
    for name, function in checks.items():
        try:
            print(f"ok       {name}: {function()}", flush=True)
        except UserError as problem:
            problems += 1
            print(f"problem  {name}: {problem}", flush=True)
        except Exception as error:  # a machine so broken that the check itself is
            problems += 1
            said = " ".join(str(error).split())
            print(f"problem  {name}: {type(error).__name__}, {said}; install distpaml anew.", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
