"""What families from data have in common: a domain whose attributes come from a file instead of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from distpaml.domains.base import Domain
from distpaml.domains.expressions import ExpressionError, names_in
from distpaml.errors import UserError
from distpaml.names import nearest

Expression = str | float
Limits = tuple[float, float]


class FamilyError(UserError):
    """Something is wrong with a family; `key` says where in its description, `said` goes after "but"."""

    def __init__(self, key: Sequence[str | int], said: str) -> None:
        super().__init__(f"{'.'.join(map(str, key))}: {said}.")
        self.key, self.said = tuple(key), said


def give(domain: Domain, **attributes: Any) -> None:
    """Attributes of this one domain, in place of those that a class would have."""
    for name, value in attributes.items():
        setattr(domain, name, value)


def selected(wanted: Sequence[str] | None, there: Sequence[str], key: str, what: str) -> list[str]:
    """Those of the names `there` that are wanted, in the order wanted; all of them unless given."""
    if wanted is None:
        return list(there)
    for name in wanted:
        if name not in there:
            raise FamilyError((key,), f"there is no {what} {name!r}{nearest(name, there)}")
    if len(set(wanted)) < len(wanted):
        raise FamilyError((key,), f"should name each {what} once")
    if not wanted:
        raise FamilyError((key,), f"should name at least one {what}{nearest('', there)}")
    return list(wanted)


def check_used(box: Mapping[str, object], settings: Mapping[tuple[str | int, ...], Expression]) -> None:
    """Every name in an expression is a parameter, and every parameter is in an expression."""
    mentioned: set[str] = set()
    for key, expression in settings.items():
        try:
            names = names_in(expression)
        except ExpressionError as error:
            raise FamilyError(key, str(error)) from error
        for name in sorted(names - box.keys() - {"pi", "e"}):
            raise FamilyError(key, f"there is no parameter {name!r}{nearest(name, box)}")
        mentioned |= names
    for parameter in box:
        if parameter not in mentioned:
            raise FamilyError(("parameters", parameter), "has no effect: nothing that is set or scaled depends on it")


def control_limit(limits: Mapping[str, Limits | None]) -> float | None:
    """C, the largest magnitude that any control may have; None if one of them has no limits."""
    if None in limits.values():
        return None
    return max(abs(end) for interval in limits.values() if interval for end in interval)
