"""What a journal says: the tasks, which of them are out, observed or failed, and the models that chose."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from distpaml.ask_tell.dimensions import Value
from distpaml.ask_tell.journal import Ask, Attach, Event, Fail, Tell

Data = tuple[tuple[int, tuple[int, ...]], ...]
"""Observed tasks in the order of their first observation, each with the lines of the journal that tell of it."""


@dataclass(frozen=True)
class Task:
    """A task by its number."""

    id: int
    descriptor: dict[str, Value]
    state: Literal["out", "observed", "failed"]
    lines: tuple[int, ...] = ()
    """Lines of the journal that hold its trajectories."""
    transitions: int = 0
    latent: tuple[float, ...] | None = None
    reason: str | None = None
    """Why it failed."""
    failed_after: int = 0
    """Observations there had been when it failed."""


@dataclass(frozen=True)
class Fitted:
    """A model that chose tasks: its name, what it was fitted to, and which model it was fitted from."""

    name: str
    data: Data
    parent: "Fitted | None"


@dataclass
class State:
    """Everything that follows from the lines of a journal so far."""

    tasks: dict[int, Task] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    """Observed tasks, in the order of their first observation."""
    observations: int = 0
    """Trajectories that were told or attached."""
    last: Fitted | None = None
    """The model that chose last."""
    lines: int = 0

    def apply(self, events: Iterable[Event]) -> None:
        """The next lines of the journal."""
        for event in events:
            self.lines += 1
            match event:
                case Ask():
                    for asked in event.tasks:
                        self.tasks[asked.id] = Task(asked.id, asked.descriptor, "out", latent=asked.latent)
                    if event.model is not None and (self.last is None or self.last.name != event.model):
                        self.last = Fitted(event.model, self.data, self.last)
                case Attach():
                    self.tasks[event.id] = Task(event.id, event.descriptor, "out")
                    self._observe(event.id, event.transitions)
                case Tell():
                    self._observe(event.id, event.transitions)
                case Fail():
                    self.order = [id for id in self.order if id != event.id]
                    self.tasks[event.id] = replace(
                        self.tasks[event.id],
                        state="failed",
                        lines=(),
                        transitions=0,
                        reason=event.reason,
                        failed_after=self.observations,
                    )

    def _observe(self, id: int, transitions: int) -> None:
        task = self.tasks[id]
        lines, total = (*task.lines, self.lines), task.transitions + transitions
        self.tasks[id] = replace(task, state="observed", lines=lines, transitions=total, reason=None)
        self.observations += 1
        if id not in self.order:
            self.order.append(id)

    @property
    def data(self) -> Data:
        return tuple((id, self.tasks[id].lines) for id in self.order)

    @property
    def next_id(self) -> int:
        return max(self.tasks, default=0) + 1

    def resting(self, retry_after: int) -> list[Task]:
        """Failed tasks that should not be asked again yet."""
        return [
            task
            for task in self.tasks.values()
            if task.state == "failed" and self.observations - task.failed_after < retry_after
        ]
