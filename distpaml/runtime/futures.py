"""Results that Ray is still computing; errors come back as they were raised."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import RayTaskError

T = TypeVar("T")


def fetch(refs: Sequence[Any]) -> list[Any]:
    """The values of all refs; an actor's error is raised here as it was there."""
    try:
        return ray.get(list(refs))
    except RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise


@dataclass(frozen=True)
class Gathered(Generic[T]):
    """The parts of a value, and how to join them."""

    refs: Sequence[Any]
    join: Callable[[list[Any]], T]

    def result(self) -> T:
        return self.join(fetch(self.refs))
