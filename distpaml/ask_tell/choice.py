"""Which descriptors may be asked for, and which come first while there is no model to choose."""

from distpaml.ask_tell.journal import Asked
from distpaml.ask_tell.space import Space
from distpaml.ask_tell.state import State


def free_rows(space: Space, state: State, retry_after: int) -> list[int]:
    """Candidates that may be asked for; failed ones only if nothing else is left."""
    out_of_reach = [task.descriptor for task in state.tasks.values() if task.state != "failed"]
    resting = [task.descriptor for task in state.resting(retry_after)]
    left = [row for row, descriptor in enumerate(space.candidates) if descriptor not in out_of_reach]
    return [row for row in left if space.candidates[row] not in resting] or left


def spread(space: Space, state: State, n: int, retry_after: int) -> list[Asked]:
    """The next descriptors in the order of the space."""
    rows = free_rows(space, state, retry_after)[:n]
    return [Asked(id=state.next_id + i, descriptor=space.candidates[row]) for i, row in enumerate(rows)]
