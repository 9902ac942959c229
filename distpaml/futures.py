"""A value that is ready, or is being computed in another process."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Future(Protocol[T_co]):
    """What `concurrent.futures.Future` and `Ready` have in common."""

    def result(self) -> T_co:
        """Wait for the value; errors are raised here."""


@dataclass(frozen=True)
class Ready(Generic[T]):
    """A value that is ready."""

    value: T

    def result(self) -> T:
        return self.value
