"""Errors whose text is a sentence for a person: what, where, which value, what to do."""


class UserError(Exception):
    """Something the user can fix; commands print it as one line and exit with status 2."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def printable(text: str) -> str:
    """The text on one line, with control characters escaped: a name from a file must not steer the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
