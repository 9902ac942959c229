"""Kinds of descriptors. Each knows the values a person reads and the numbers, in [-1, 1], that the model sees.

payload: [0.0, 2.0]                      a number of an interval
screws: {integers: [1, 8]}               a whole number, both ends included
wheel: {categories: [rubber, steel]}     one of some names, one number for each name
part: {images: photos, components: 3}    one of the images of a folder or an npz file, by its principal components
"""

from abc import abstractmethod
from collections.abc import Mapping
from math import floor, log10
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer, SerializeAsAny, field_validator

from distpaml.config.section import Interval, List, Positive, Section
from distpaml.errors import UserError
from distpaml.types import Array

Value = float | int | str


class Dimension(Section):
    """One named part of a descriptor."""

    @property
    @abstractmethod
    def finite(self) -> list[Value] | None:
        """All values, if they can be listed."""

    @abstractmethod
    def at(self, u: float) -> Value:
        """The value at u in [0, 1): a uniform u gives a uniform value."""

    @abstractmethod
    def read(self, value: Any) -> Value:
        """The value as it is kept, or a ValueError that ends "…, which " + error."""

    def outside(self, value: Value) -> str | None:
        """Why a value that was read cannot be asked for, in the same words; None if it can."""
        return None

    def check(self, value: Any) -> Value:
        """The value as it is kept if it can be asked for, or a ValueError."""
        read = self.read(value)
        if said := self.outside(read):
            raise ValueError(said)
        return read

    @abstractmethod
    def encode(self, value: Value) -> list[float]:
        """Its numbers."""

    @abstractmethod
    def plain(self) -> Any:
        """As it is declared in YAML."""


class Box(Dimension):
    """A number of an interval."""

    interval: Interval

    @property
    def finite(self) -> None:
        return None

    def at(self, u: float) -> float:
        low, high = self.interval
        places = 4 - floor(log10(high - low))  # what a person can set: ten thousandths of the interval
        return min(max(round(low + (high - low) * u, places), low), high)

    def read(self, value: Any) -> float:
        return _number(value)

    def outside(self, value: Value) -> str | None:
        low, high = self.interval
        return None if low <= float(value) <= high else f"should lie in [{low:g}, {high:g}]"

    def encode(self, value: Value) -> list[float]:
        return [_scaled(value, *self.interval)]

    def plain(self) -> list[float]:
        return list(self.interval)


class Integers(Dimension):
    """A whole number, both ends included."""

    integers: Annotated[List[int], Field(min_length=2, max_length=2)]

    @field_validator("integers")
    @classmethod
    def _ordered(cls, ends: tuple[int, int]) -> tuple[int, int]:
        if not -(2**31) < ends[0] < ends[1] < 2**31:
            raise ValueError(f"should be [low, high], two whole numbers with low < high, up to {2**31 - 1}")
        return ends

    @property
    def finite(self) -> list[Value] | None:
        low, high = self.integers
        return list(range(low, high + 1)) if high - low < 10_000 else None

    def at(self, u: float) -> int:
        low, high = self.integers
        return min(low + int(u * (high - low + 1)), high)

    def read(self, value: Any) -> int:
        number = _number(value)
        if number != int(number):
            raise ValueError(self._range)
        return int(number)

    def outside(self, value: Value) -> str | None:
        return None if self.integers[0] <= int(value) <= self.integers[1] else self._range

    @property
    def _range(self) -> str:
        return f"should be a whole number from {self.integers[0]} to {self.integers[1]}"

    def encode(self, value: Value) -> list[float]:
        return [_scaled(value, *self.integers)]

    def plain(self) -> dict[str, Any]:
        return {"integers": list(self.integers)}


class Named(Dimension):
    """One of some names."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """All of them."""

    @property
    def finite(self) -> list[Value]:
        return list(self.names)

    def at(self, u: float) -> str:
        return self.names[min(int(u * len(self.names)), len(self.names) - 1)]

    def read(self, value: Any) -> str:
        if str(value) not in self.names:
            few = ", ".join(self.names[:5]) + (", …" if len(self.names) > 5 else "")
            raise ValueError(f"should be one of {few}")
        return str(value)


class Categories(Named):
    """One of some names, one number for each of them: 1 for its own, -1 for the others."""

    categories: Annotated[List[str], Field(min_length=2, max_length=100)]

    @field_validator("categories")
    @classmethod
    def _distinct(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("should be different names")
        return names

    @property
    def names(self) -> tuple[str, ...]:
        return self.categories

    def encode(self, value: Value) -> list[float]:
        return [1.0 if value == name else -1.0 for name in self.categories]

    def plain(self) -> dict[str, Any]:
        return {"categories": list(self.categories)}


class Images(Named):
    """One of the images of a folder or an npz file; its numbers are principal components of the pixels."""

    images: Annotated[str, Field(min_length=1)]
    components: Positive = 3
    codes: dict[str, List[float]] | None = None
    """The numbers of every image by its name; computed once, when the experiment is made."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.codes or ())

    def encode(self, value: Value) -> list[float]:
        return list((self.codes or {})[str(value)])

    def plain(self) -> dict[str, Any]:
        codes = {} if self.codes is None else {"codes": {name: list(code) for name, code in self.codes.items()}}
        return {"images": self.images, "components": self.components, **codes}


KINDS: dict[str, type[Dimension]] = {"integers": Integers, "categories": Categories, "images": Images}


def _parsed(value: Any) -> Dimension:
    if isinstance(value, Dimension):
        return value
    if isinstance(value, Mapping):
        for key, kind in KINDS.items():
            if key in value:
                return kind.model_validate(dict(value))
    elif isinstance(value, list | tuple):
        return Box.model_validate({"interval": list(value)})
    raise ValueError("should be [low, high], {integers: [low, high]}, {categories: [a, b]} or {images: FOLDER}")


AnyDimension = Annotated[
    SerializeAsAny[Dimension], BeforeValidator(_parsed), PlainSerializer(lambda dimension: dimension.plain())
]


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError("should be a number") from error
    if not np.isfinite(number):
        raise ValueError("should be a finite number")
    return number


def _scaled(value: Value, low: float, high: float) -> float:
    return 2.0 * (float(value) - low) / (high - low) - 1.0


def principal_components(images: Array, components: int) -> Array:
    """Scores [K, C] of images [K, …] on their first principal components, the largest of them 1."""
    pixels = images.reshape(len(images), -1).astype(float)
    left, singular, _ = np.linalg.svd(pixels - pixels.mean(axis=0), full_matrices=False)
    scores = (left * singular)[:, :components]
    scores = scores * np.where(scores.sum(axis=0) < 0, -1.0, 1.0)  # the sign is free
    largest = np.abs(scores).max()
    if not largest > 0:
        raise UserError("The images are all the same, so that nothing can be chosen among them.")
    return scores / largest
