"""A run may go on with more rounds, on other machines, and with nothing else changed.

For more rounds its `config.yaml` is rewritten in one step, and its checksum still holds.

The checksum of a config is that of the text in which it was first written. An extended config says at its end how many
rounds that text had, so that it can be restored and verified.

    rounds: 20
    …
    # begun with rounds: 15
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distpaml.errors import UserError

if TYPE_CHECKING:
    from distpaml.config import ExperimentConfig

FREE = ("out", "runtime")
"""Keys that may differ when a run is continued: they change no result by more than rounding."""
_ROUNDS = re.compile(r"^rounds: (\d+)$", re.MULTILINE)
_BEGUN = re.compile(r"^# begun with rounds: (\d+)\n\Z", re.MULTILINE)


def extended(text: str, rounds: int) -> str:
    """The config with more rounds."""
    first = as_begun(text)
    begun = _ROUNDS.search(first)
    assert begun is not None
    return f"{with_rounds(first, rounds)}# begun with rounds: {begun[1]}\n"


def with_rounds(text: str, rounds: int | str) -> str:
    """The config with another number of rounds."""
    return _ROUNDS.sub(f"rounds: {rounds}", text, count=1)


def as_begun(text: str) -> str:
    """The config as it was first written."""
    begun = _BEGUN.search(text)
    return text if begun is None else with_rounds(_BEGUN.sub("", text), begun[1])


def check_same(kept: "ExperimentConfig", now: "ExperimentConfig", path: Path) -> None:
    """Raise if `now` is another experiment than the one in `path`; more rounds are the same experiment, continued."""
    if now.rounds < kept.rounds:
        dropped = (
            f"rounds {now.rounds + 1} to {kept.rounds}" if kept.rounds > now.rounds + 1 else f"round {kept.rounds}"
        )
        raise UserError(
            f"{path} holds {kept.rounds} rounds, and rounds={now.rounds} would drop {dropped}; choose another "
            f"directory, or rounds={kept.rounds} or more."
        )
    now = now.model_copy(update={"rounds": kept.rounds})
    before, after = (dict(_leaves(config.model_dump())) for config in (kept, now))
    for key in {**before, **after}:
        if before.get(key) != after.get(key) and key.partition(".")[0] not in FREE:
            raise UserError(
                f"{path} holds another experiment: {key} is {before.get(key)!r} there and {after.get(key)!r} here; "
                "choose another directory or the same config."
            )


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and key not in ("box", "superfluous"):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
