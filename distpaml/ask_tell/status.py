"""Where an experiment stands, for people."""

from dataclasses import dataclass

from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.learning import LearningCurve
from distpaml.ask_tell.state import Task


@dataclass(frozen=True)
class Status:
    """Where an experiment stands."""

    declaration: Declaration
    tasks: tuple[Task, ...]
    choosing: bool
    """Whether a model chooses already."""
    learning: LearningCurve | None
    """How well left-out tasks are predicted, as far as that was computed."""

    def count(self, state: str) -> int:
        return sum(task.state == state for task in self.tasks)

    @property
    def transitions(self) -> int:
        return sum(task.transitions for task in self.tasks)

    def worded(self) -> str:
        """In a few words."""
        counts = ", ".join(f"{self.count(state)} {state}" for state in ("observed", "out", "failed"))
        return f"{counts}, {self.transitions} transitions"
