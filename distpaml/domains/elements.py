"""Addresses of numbers in a MuJoCo model: `geom.payload.mass`, `geom.upper.fromto[5]`, `option.gravity[2]`.

    KIND.NAME.ATTRIBUTE          an element of an MjSpec by its kind and name; names may hold dots
    KIND[INDEX].ATTRIBUTE        one that has no name, counted from 0 in the order of the file
    option.ATTRIBUTE             what the whole model has
    …[INDEX]                     one component; without it a single value goes to the first, as in MJCF

Only what is a real number, or an array of them, can be addressed.
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

_ADDRESS = re.compile(r"^(?P<kind>[a-z]+)(\[(?P<number>\d{1,6})\])?\.(?P<rest>.+?)(\[(?P<component>\d{1,6})\])?$")


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
        match = _ADDRESS.match(text)
        kinds = (*KINDS, *WHOLE)
        if match is None:
            kind = re.split(r"[.\[]", text)[0]
            hint = "" if kind in kinds else nearest(kind, kinds)
            raise AddressError(f"is no address such as geom.payload.mass{hint}")
        kind, rest = match["kind"], match["rest"]
        if kind not in kinds:
            raise AddressError(f"there is no kind of element {kind!r}{nearest(kind, kinds)}")
        index, attribute = (0, rest) if kind in WHOLE else _element(spec, kind, match["number"], rest)
        element = getattr(spec, kind) if kind in WHOLE else getattr(spec, KINDS[kind])[index]
        if attribute not in (valid := attributes(element)):
            raise AddressError(f"a {kind} has no number {attribute!r}{nearest(attribute, valid)}")
        component = None if match["component"] is None else int(match["component"])
        size = np.size(getattr(element, attribute))
        if component is not None and (not is_array(element, attribute) or component >= size):
            sizes = f"components 0 to {size - 1}" if is_array(element, attribute) else "one value and no components"
            raise AddressError(f"{attribute} of a {kind} has {sizes}, but this is [{component}]")
        name = "" if kind in WHOLE else element.name
        return cls(text, kind, name, index, attribute, component)

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
    """How the elements of a kind are addressed: `geom.payload`, or `geom[3]` where there is no name."""
    elements = getattr(spec, KINDS[kind])
    return [f"{kind}.{element.name}" if element.name else f"{kind}[{i}]" for i, element in enumerate(elements)]


def attributes(element: Any) -> list[str]:
    """The names of an element's real numbers."""
    return [name for name in dir(element) if not name.startswith("_") and _is_real(element, name)]


def is_array(element: Any, attribute: str) -> bool:
    """Whether it has components."""
    return isinstance(getattr(element, attribute), np.ndarray)


def _is_real(element: Any, name: str) -> bool:
    value = getattr(element, name)
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 1)


def _element(spec: MjSpec, kind: str, number: str | None, rest: str) -> tuple[int, str]:
    """The index of the element, and what is left of the address: the attribute."""
    elements = list(getattr(spec, KINDS[kind]))
    if number is not None:
        if int(number) >= len(elements):
            raise AddressError(f"the model has {len(elements)} of the kind {kind}, counted from 0")
        return int(number), rest
    name, dot, attribute = rest.rpartition(".")
    names = [element.name for element in elements]
    if not dot:
        said = "an element and a number of it" if rest not in names else f"a number of {kind}.{rest}"
        first = f"{kind}.{rest if rest in names else names[0] or 0}" if names else kind
        raise AddressError(f"should name {said}, such as {first}.{'mass' if kind == 'geom' else 'pos[0]'}")
    if name not in names:
        valid = [other for other in names_of(spec, kind) if other != "body.world"]
        raise AddressError(f"there is no {kind} {name!r}{nearest(f'{kind}.{name}', valid)}")
    return names.index(name), attribute


def number(values: np.ndarray) -> str:
    """An array as it would stand in YAML, without zeros that nobody set."""
    shown = [f"{value:.6g}" for value in values]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"


def is_open(values: np.ndarray) -> bool:
    """Whether the file leaves the value to the compiler, as a mass that follows from a density."""
    return any(math.isnan(value) for value in values)
