"""A value that may still be on its way: computed in another process while this one goes on, or there already."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Future(Protocol[T_co]):
    """What `concurrent.futures.Future` and `Ready` have in common."""

    def result(self) -> T_co:
        """The value, waited for if need be; what went wrong is raised here."""


@dataclass(frozen=True)
class Ready(Generic[T]):
    """A value that is there."""

    value: T

    def result(self) -> T:
        return self.value
