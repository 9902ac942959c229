"""Is this machine fit for the job? `python -m distpaml.doctor` tries it and says what to do where it is not.

A check is one function with `@check`: what it returns is said of a machine that is fine, and the `UserError` it raises
is the problem, with what to do in its sentence.
"""

import platform
import sys
from collections.abc import Callable
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


def main() -> int:
    problems = 0
    for name, function in CHECKS.items():
        try:
            print(f"ok       {name}: {function()}", flush=True)
        except UserError as problem:
            problems += 1
            print(f"problem  {name}: {problem}", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
