"""A family of systems from CARL: the context features of one of its environments are the parameters.

CARL (`carl-bench`) wraps gymnasium environments and says for each which features may vary. Where a feature has no
bounds, one's own `range` is taken, or half to twice its default.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from distpaml.domains.environments import DEFAULTS, Attributes, GymnasiumSettings, plain, quietly
from distpaml.domains.family import FamilyError
from distpaml.domains.gymnasium import GymnasiumDomain
from distpaml.names import nearest
from distpaml.types import Array


class CarlDomain(GymnasiumDomain):
    """The contexts of one environment; those that are no parameter keep their default or what `context` says."""

    source = "carl"

    def __init__(
        self,
        make: str,
        parameters: Mapping[str, tuple[float, float] | None],
        settings: GymnasiumSettings = DEFAULTS,
        context: Mapping[str, float] | None = None,
        name: str | None = None,
    ) -> None:
        self._class = environment_class(make)
        self._context = dict(context or {})
        with quietly():  # its bounds are infinite, and ConfigSpace divides by their difference
            features = self._class.get_context_features()
        for where, names in ((("parameters",), parameters), (("carl", "context"), self._context)):
            for feature in names:
                if feature not in features:
                    raise FamilyError(
                        (*where, feature), f"{make} has no context feature {feature!r}{nearest(feature, features)}"
                    )
        boxes = {f: interval or added_range(f, features[f]) for f, interval in parameters.items()}
        super().__init__(make, {f: Attributes(box, {f: f}) for f, box in boxes.items()}, settings, name=name)

    def environment(self, values: Mapping[str, float], check: bool = False) -> Any:
        given = {} if check else dict(values)
        with quietly():
            environment = self._class(contexts={0: {**self._context, **given}})
            environment.reset(seed=0)  # applies the context
        return environment

    def _flat(self, environment: Any, observation: Any) -> Array:
        return super()._flat(environment, observation["obs"])

    def _space(self, environment: Any) -> Any:
        return environment.base_observation_space

    @property
    def _vectorised(self) -> bool:
        return False

    def _check_expressions(self) -> None:
        """A feature is its own expression."""


def environment_class(make: str) -> Any:
    """The class of `carl.envs` with this name."""
    try:
        with quietly(), _without_display():  # CARL warns of every package that its other environments would need
            import carl.envs
    except Exception as error:  # CARL imports pygame and old gymnasium interfaces
        raise FamilyError(
            ("carl",), f"CARL cannot be imported ({plain(error)}): see distpaml/domains/README.md for how to install it"
        ) from error
    names = [name for name in dir(carl.envs) if name.startswith("CARL")]
    if make not in names:
        raise FamilyError(("carl",), f"CARL has no environment {make!r}{nearest(make, names)}")
    return getattr(carl.envs, make)


@contextmanager
def _without_display() -> Iterator[None]:
    """Let pygame, which CARL imports, neither open a display nor greet; afterwards the variables are as they were."""
    wanted = {"PYGAME_HIDE_SUPPORT_PROMPT": "1", "SDL_VIDEODRIVER": "dummy"}
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def added_range(name: str, feature: Any) -> tuple[float, float]:
    """The bounds of a feature; half to twice its default, within its bounds, where it has none."""
    low, high = float(getattr(feature, "lower", -math.inf)), float(getattr(feature, "upper", math.inf))
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    try:
        default = float(feature.default_value)
    except (TypeError, ValueError) as error:
        raise FamilyError(("parameters", name), "is no number, so that it cannot be varied") from error
    around = sorted((default / 2, default * 2)) if default else [-1.0, 1.0]
    return max(low, around[0]), min(high, around[1])
