"""Addresses of numbers in a MuJoCo model: `geom.payload.mass`, `geom.upper.fromto.5`, `option.gravity.2`.

    KIND.NAME.ATTRIBUTE          an element of an MjSpec by its kind and name; names may hold dots
    KIND.INDEX.ATTRIBUTE         one that has no name, counted from 0 in the order of the file
    option.ATTRIBUTE             what the whole model has
    ….INDEX                      one component; without it a single value goes to the first, as in MJCF

`fromto[5]` is the same as `fromto.5`, but has to be quoted in the braces of YAML. Only what is a real number, or an
array of them, can be addressed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from distpaml.errors import UserError
from distpaml.names import nearest

if TYPE_CHECKING:
    from mujoco import MjSpec

KINDS = {
    "body": "bodies", "joint": "joints", "geom": "geoms", "site": "sites", "actuator": "actuators",
    "tendon": "tendons", "equality": "equalities", "pair": "pairs", "mesh": "meshes", "hfield": "hfields",
}  # fmt: skip
"""Kinds of elements, each with the list of an MjSpec that holds them."""
WHOLE = ("option",)
"""Kinds of which a model has one, without a name."""


class AddressError(UserError):
    """Nothing is at an address; the text says why, to go after "but"."""


@dataclass(frozen=True)
class Address:
    """Where a number is, checked against a model."""

    text: str
    kind: str
    name: str
    """Of the element; "" if it has none."""
    index: int
    """Of the element among those of its kind; 0 for `option`."""
    attribute: str
    component: int | None

    @classmethod
    def find(cls, spec: MjSpec, text: str) -> Address:
        """The address that `text` says, or an `AddressError` with the nearest valid one."""
        kind, *rest = re.sub(r"\[(\d+)\]", r".\1", text).split(".")
        kinds = (*KINDS, *WHOLE)
        if kind not in kinds:
            raise AddressError(f"there is no kind of element {kind!r}{nearest(kind, kinds)}")
        last = rest.pop() if len(rest) > (1 if kind in WHOLE else 2) and rest[-1].isdecimal() else None
        if len(rest) < (1 if kind in WHOLE else 2) or not all(rest):
            raise AddressError(f"should be an address such as {_example(spec, kind)}")
        *name, attribute = rest
        index = 0 if kind in WHOLE else _index(spec, kind, ".".join(name))
        element = getattr(spec, kind) if kind in WHOLE else getattr(spec, KINDS[kind])[index]
        if attribute not in (valid := attributes(element)):
            raise AddressError(f"a {kind} has no number {attribute!r}{nearest(attribute, valid)}")
        component = None if last is None else int(last)
        size = np.size(getattr(element, attribute))
        if component is not None and (not is_array(element, attribute) or component >= size):
            sizes = f"components 0 to {size - 1}" if is_array(element, attribute) else "one value and no components"
            raise AddressError(f"{attribute} of a {kind} has {sizes}, but this is {component}")
        return cls(text, kind, "" if kind in WHOLE else element.name, index, attribute, component)

    def element(self, spec: MjSpec) -> Any:
        """The element in `spec`, a copy of the one that the address was found in."""
        if self.kind in WHOLE:
            return getattr(spec, self.kind)
        return getattr(spec, self.kind)(self.name) if self.name else getattr(spec, KINDS[self.kind])[self.index]

    def read(self, spec: MjSpec) -> np.ndarray:
        """The present value, as an array; nan where the file leaves it open."""
        values = np.atleast_1d(np.array(getattr(self.element(spec), self.attribute), float))
        return values if self.component is None else values[[self.component]]

    def write(self, spec: MjSpec, values: np.ndarray) -> None:
        """Give it one value, or all those of an array."""
        element = self.element(spec)
        if not is_array(element, self.attribute):
            setattr(element, self.attribute, float(values[0]))
        elif len(values) == 1:
            getattr(element, self.attribute)[self.component or 0] = values[0]
        else:
            getattr(element, self.attribute)[: len(values)] = values

    def room(self, spec: MjSpec) -> int:
        """How many values it takes."""
        return len(self.read(spec))


def names_of(spec: MjSpec, kind: str) -> list[str]:
    """How the elements of a kind are addressed: `geom.payload`, or `geom.3` where there is no name."""
    elements = getattr(spec, KINDS[kind])
    return [f"{kind}.{element.name}" if element.name else f"{kind}.{i}" for i, element in enumerate(elements)]


def attributes(element: Any) -> list[str]:
    """The names of an element's real numbers."""
    return [name for name in dir(element) if not name.startswith("_") and _is_real(element, name)]


def is_array(element: Any, attribute: str) -> bool:
    """Whether it has components."""
    return isinstance(getattr(element, attribute), np.ndarray)


def _is_real(element: Any, name: str) -> bool:
    value = getattr(element, name)
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 1)


def _index(spec: MjSpec, kind: str, name: str) -> int:
    """Of the element with this name, or with this number if no name is."""
    names = [element.name for element in getattr(spec, KINDS[kind])]
    if name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < len(names):
        return int(name)
    valid = [other for other in names_of(spec, kind) if other != "body.world"]
    raise AddressError(f"there is no {kind} {name!r}{nearest(f'{kind}.{name}', valid)}")


def _example(spec: MjSpec, kind: str) -> str:
    if kind in WHOLE:
        return f"{kind}.gravity.2"
    first = next((name for name in names_of(spec, kind) if name != "body.world"), f"{kind}.NAME")
    return f"{first}.{ {'geom': 'mass', 'joint': 'damping', 'actuator': 'gear', 'body': 'mass'}.get(kind, 'pos.0') }"


def number(values: np.ndarray) -> str:
    """An array as it would stand in YAML, without zeros that nobody set."""
    shown = [f"{value:.6g}" for value in values]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"


def is_open(values: np.ndarray) -> bool:
    """Whether the file leaves the value to the compiler, as a mass that follows from a density."""
    return any(math.isnan(value) for value in values)
