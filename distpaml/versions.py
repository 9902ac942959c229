"""Versions of what a result depends on, for its record."""

import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from distpaml import __version__
from distpaml.arithmetic import kernels_in_use, processor

HOME = Path(__file__).parents[1]
"""The clone, if the package is not installed as a wheel."""


@cache
def versions() -> Mapping[str, str]:
    """Of distpaml, with its commit in a clone, of the libraries that compute, and what decides how these round."""
    libraries = {name: version(name) for name in ("torch", "numpy", "mujoco")}
    rounding = {"kernels": kernels_in_use(), "processor": processor()}
    return MappingProxyType({"distpaml": __version__, "commit": commit(HOME)} | libraries | rounding)


def commit(folder: Path) -> str:
    """The commit of the clone in `folder`, with `-dirty` after it if files differ; empty if there is no clone."""
    if not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
