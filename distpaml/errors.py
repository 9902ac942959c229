"""Errors whose text is a sentence for a person: what, where, which value, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Something the user can fix; commands print it as one line and exit with status 2."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """`the nearest is X`, or nothing if no choice is like `name`."""
    near = get_close_matches(name, list(choices), n=1)
    return f"the nearest is {near[0]}" if near else ""


def hint(name: str, choices: Iterable[str], otherwise: str = "there are") -> str:
    """What someone who wrote `name` may have meant: the nearest choice, or else all of them, twenty at most."""
    known = list(choices)
    return nearest(name, known) or f"{otherwise} {', '.join(known[:20]) or 'none'}"
