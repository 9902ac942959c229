"""What the parameters of a family do to a parsed MuJoCo model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from distpaml.domains.elements import Address, AddressError, is_open
from distpaml.domains.expressions import ExpressionError, evaluate
from distpaml.domains.family import Expression, FamilyError, check_used

if TYPE_CHECKING:
    from mujoco import MjModel, MjSpec

Values = Mapping[str, float]
Key = tuple[str | int, ...]
Edit = Callable[["MjSpec", Values], None]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a family: its interval, and what of the model follows from it."""

    interval: tuple[float, float]
    sets: Mapping[str, Expression | Sequence[Expression]] = field(default_factory=dict)
    """Addresses, each with the expression, or the list of them, that it is set to."""
    scales: Sequence[str] = ()
    """Addresses whose value in the file is multiplied by the parameter."""


@dataclass(frozen=True)
class Setting:
    """Gives an address the value of expressions."""

    address: Address
    values: tuple[Expression, ...]
    key: Key

    def __call__(self, spec: MjSpec, values: Values) -> None:
        try:
            self.address.write(spec, np.array([evaluate(value, values) for value in self.values]))
        except ExpressionError as error:
            raise FamilyError(self.key, str(error)) from error


@dataclass(frozen=True)
class Scaling:
    """Multiplies what is at an address by a parameter."""

    address: Address
    parameter: str

    def __call__(self, spec: MjSpec, values: Values) -> None:
        self.address.write(spec, values[self.parameter] * self.address.read(spec))


def model_edits(spec: MjSpec, parameters: Mapping[str, Parameter]) -> list[Edit]:
    """All edits, in the order of the parameters; addresses and expressions are checked against the parsed model."""
    edits: list[Edit] = []
    expressions: dict[Key, Expression] = {}
    for name, given in parameters.items():
        for text, value in given.sets.items():
            key: Key = ("parameters", name, "sets", text)
            address, values = _found(spec, text, key), [value] if isinstance(value, str | int | float) else value
            room = address.room(spec)
            if not 1 <= len(values) <= room:
                raise FamilyError(key, f"should be at most {room} value{'s' if room > 1 else ''}, not {len(values)}")
            expressions |= {(*key, *([i] if len(values) > 1 else [])): one for i, one in enumerate(values)}
            edits.append(Setting(address, tuple(values), key))
        for place, text in enumerate(given.scales):
            key = ("parameters", name, "scales", place)
            address = _found(spec, text, key)
            if is_open(address.read(spec)):
                raise FamilyError(key, "is not in the file, so that it cannot be scaled; set it instead")
            expressions[key] = name if name.isidentifier() else 1.0
            edits.append(Scaling(address, name))
    check_used(parameters, expressions)
    return edits


def _found(spec: MjSpec, text: str, key: Key) -> Address:
    try:
        return Address.find(spec, text)
    except AddressError as error:
        raise FamilyError(key, str(error)) from error


UNSEEN = ("vis", "mat_", "tex_", "light_", "cam_", "name", "text", "skin", "mesh_", "signature")
"""What has no part in the dynamics."""


def differ(one: MjModel, other: MjModel) -> bool:
    """Whether two compiled models differ in anything that moves them."""
    for first, second in ((one, other), (one.opt, other.opt)):
        for name in dir(first):
            if not name.startswith(("_", *UNSEEN)) and not name.endswith(("rgba", "matid")):
                a, b = getattr(first, name), getattr(second, name)
                if isinstance(a, np.ndarray | float | int) and not np.array_equal(a, b):
                    return True
    return False
