"""Writes rounds as TensorBoard event files; a step is the number of tasks."""

from pathlib import Path
from time import time
from uuid import uuid4

from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog

from distpaml.catalogue import HEADLINES
from distpaml.config import ExperimentConfig
from distpaml.config.load import leaves
from distpaml.tracking.shown import Shown


class TensorBoard:
    """One event file per process with all rounds; files of earlier processes are deleted once it has them.

    Writes in this thread: the queue of tensorboardX's SummaryWriter would wait forever on a full disk.
    """

    label = "TensorBoard"

    def __init__(self, config: ExperimentConfig, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.earlier = list(folder.glob("events.*"))
        self.writer = EventsWriter(str(folder / "events"), f".{uuid4().hex[:8]}")
        self._write(0, session_log=SessionLog(status=SessionLog.START))  # readers discard earlier files
        text = config.to_yaml().replace("\n", "\n    ")
        self._write(0, summary=summary.text("config", f"    {text}"))
        about, start, self.end = summary.hparams(hyperparameters(config), dict.fromkeys(HEADLINES))
        for part in (about, start):
            self._write(0, summary=part)

    def add(self, shown: Shown) -> None:
        step = shown.record.tasks
        for name, value in shown.numbers().items():
            if name != "tasks":
                self._write(step, summary=summary.scalar(name, value))
        self._write(step, summary=summary.text("choices", _markdown(*shown.choices())))
        if shown.image is not None:
            self._write(step, summary=summary.image("latents", shown.image, dataformats="HWC"))
        self.writer.flush()

    def caught_up(self) -> None:
        for file in self.earlier:
            file.unlink(missing_ok=True)

    def close(self, failed: bool) -> None:
        if not failed:
            self._write(0, summary=self.end)
        self.writer.close()

    def _write(self, step: int, **what: object) -> None:
        self.writer.write_event(Event(wall_time=time(), step=step, **what))


def hyperparameters(config: ExperimentConfig) -> dict[str, float | str | bool]:
    """Every key of the config with one value, by its dotted name: what TensorBoard's HParams compares trials by."""
    keys = leaves(config.model_dump(mode="json", exclude={"out"}))
    return {key: value for key, value in keys if isinstance(value, bool | int | float | str)}


def _markdown(columns: list[str], rows: list[list[float | None]]) -> str:
    lines = [columns, ["---"] * len(columns)]
    lines += [["" if value is None else f"{value:.4g}" for value in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
