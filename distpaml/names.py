"""The nearest of the names that would have been right."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 12
"""Names that a sentence may list."""


def nearest(wrong: str, valid: Iterable[str]) -> str:
    """The end of a sentence about a name that there is not: "; the nearest is elbow", or what there is."""
    names = list(dict.fromkeys(valid))
    near = get_close_matches(wrong, names, n=1, cutoff=0.5)
    if near:
        return f"; the nearest is {near[0]}"
    if not names:
        return "; there are none"
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(names[:MOST])}{more}"
