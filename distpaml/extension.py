"""More rounds for a run: its `config.yaml` is rewritten in one step, and its checksum still holds.

The checksum of a config is that of the text in which it was first written. An extended config says at its end how many
rounds that text had, so that it can be restored and verified.

    rounds: 20
    …
    # begun with rounds: 15
"""

import re

_ROUNDS = re.compile(r"^rounds: (\d+)$", re.MULTILINE)
_BEGUN = re.compile(r"^# begun with rounds: (\d+)\n\Z", re.MULTILINE)


def extended(text: str, rounds: int) -> str:
    """The config with more rounds."""
    first = as_begun(text)
    begun = _ROUNDS.search(first)
    assert begun is not None
    return f"{_ROUNDS.sub(f'rounds: {rounds}', first, count=1)}# begun with rounds: {begun[1]}\n"


def as_begun(text: str) -> str:
    """The config as it was first written."""
    begun = _BEGUN.search(text)
    return text if begun is None else _ROUNDS.sub(f"rounds: {begun[1]}", _BEGUN.sub("", text), count=1)
