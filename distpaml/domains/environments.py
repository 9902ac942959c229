"""Single gymnasium environments: how they are made, what of them can be set, and what to call it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distpaml.domains.family import Expression, FamilyError, Limits
from distpaml.domains.sketch import Links
from distpaml.names import nearest


@dataclass(frozen=True)
class Attributes:
    """One parameter: its interval, and the attributes of the environment that follow from it."""

    interval: tuple[float, float]
    sets: Mapping[str, Expression]


@dataclass(frozen=True)
class GymnasiumSettings:
    """What one may say of a family beside its environment and parameters."""

    states: Sequence[str] | None = None
    """Names of the components, in their order."""
    angles: Sequence[str] = ()
    controls: Sequence[str] | None = None
    """Names of the components of an action."""
    dt: float | None = None
    start: Mapping[str, Expression] = field(default_factory=dict)
    noise: float = 0.01
    limits: Mapping[str, Limits] = field(default_factory=dict)
    observe: str | None = None
    """`state` or `observation`; the state where it can be set, unless given."""
    links: Links = ()
    """What a film shows: the angle of every link and its length."""


DEFAULTS = GymnasiumSettings()


@contextmanager
def quietly() -> Iterator[None]:
    """Inside of this, warnings are not shown, not even those of code that sets filters of its own."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("ignore")
        yield


def label(make: str) -> str:
    """A name for reports: Pendulum-v1 is `pendulum`."""
    name = make.rpartition("/")[2].removeprefix("CARL")
    return (name.rpartition("-v")[0] or name).lower()


def bare_environment(make: str, options: Mapping[str, Any]) -> Any:
    """The bare environment, without wrappers that end episodes."""
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise FamilyError(("gymnasium",), "gymnasium is not installed: pip install 'distpaml[gymnasium]'") from error
    if make not in gymnasium.registry and ":" not in make:
        raise FamilyError(("gymnasium",), f"gymnasium has no environment {make!r}{nearest(make, gymnasium.registry)}")
    try:
        return gymnasium.make(make, disable_env_checker=True, **options).unwrapped
    except Exception as error:  # whatever an environment raises while it is made
        raise FamilyError(("gymnasium",), f"{make} cannot be made: {plain(error)}") from error


def check_attribute(environment: Any, attribute: str, key: tuple[str, ...]) -> None:
    numbers = [name for name in dir(environment) if not name.startswith("_") and _is_number(environment, name)]
    if attribute not in numbers:
        raise FamilyError(key, f"the environment has no number {attribute!r}{nearest(attribute, numbers)}")


def _is_number(environment: Any, name: str) -> bool:
    try:
        value = getattr(environment, name)
    except Exception:  # a property that needs more than is there
        return False
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def access_to(environment: Any, wanted: str | None, key: tuple[str, ...]) -> str:
    base = environment.unwrapped
    settable = hasattr(base, "set_state") or (
        isinstance(getattr(base, "state", None), np.ndarray | tuple | list) and np.ndim(base.state) == 1
    )
    if wanted == "state" and not settable:
        raise FamilyError(key, "the environment has no state that can be set; take observation")
    return wanted or ("state" if settable else "observation")


def numbered(name: str, size: int) -> list[str]:
    return [name] if size == 1 else [f"{name}_{i}" for i in range(size)]


def plain(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
