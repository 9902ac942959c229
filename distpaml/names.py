"""What someone who wrote a wrong name may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 12
"""Most names that a sentence lists."""
LONGEST = 200
"""Characters of a wrong name that are compared with the valid ones."""


def near(wrong: str, valid: Iterable[str]) -> str | None:
    """The valid name most like `wrong`, if one is like it."""
    return next(iter(get_close_matches(wrong[:LONGEST], list(valid), n=1, cutoff=0.5)), None)


def nearest(wrong: str, valid: Iterable[str], otherwise: str = "") -> str:
    """The end of a sentence about a wrong name: "; the nearest is elbow", or else "; there are elbow, wrist"."""
    names = list(dict.fromkeys(valid))
    if found := near(wrong, names):
        return f"; the nearest is {found}"
    if not names:
        return "; there are none"
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    verb = otherwise or f"there {'is' if len(names) == 1 else 'are'}"
    return f"; {verb} {', '.join(names[:MOST])}{more}"
