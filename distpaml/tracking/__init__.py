"""Logs trials to TensorBoard and W&B.

The run directory is the truth; both are written from finished rounds only. A trial that continues after a crash is
logged again from its records, so no round is missing and none appears twice. Logging never stops a trial: an error is
reported once, in a sentence, and the trial continues without that logger.
"""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Self

from distpaml.catalogue import planned_rounds
from distpaml.config import ExperimentConfig
from distpaml.records import model_file, read_arrays, read_records
from distpaml.rounds import Record
from distpaml.tracking.latent_plot import LatentPlot
from distpaml.tracking.shown import Shown
from distpaml.tracking.tensorboard import TensorBoard
from distpaml.tracking.weights_and_biases import WeightsAndBiases

__all__ = ["Tracker"]


class Sink(Protocol):
    """A destination of rounds."""

    label: str

    def add(self, shown: Shown) -> None:
        """Log one more finished round."""

    def caught_up(self) -> None:
        """All rounds of the run directory are logged; files of earlier processes can go."""

    def close(self, failed: bool) -> None:
        """No more rounds will come from this process."""


class Tracker:
    """Logs one trial while open: `with Tracker(…) as tracker: … tracker.add(record)`.

    `run` is the run directory and `folder` the sweep's: TensorBoard writes to folder/tensorboard/NAME, W&B to
    folder/wandb. `mode` is W&B's: `auto` (online with a key and a network, else offline), `online`, `offline` or `off`.
    `say` is called with what went wrong; `sweep` is the sweep's name, a tag in W&B.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        run: Path,
        folder: Path,
        name: str,
        group: str,
        mode: str,
        say: Callable[[str], object] = warnings.warn,
        sweep: str = "",
    ) -> None:
        self.config, self.run, self.folder, self.name = config, run, folder.absolute(), name
        self.group, self.mode, self.say, self.sweep = group, mode, say, sweep
        self.records: list[Record] = []
        self.sinks: list[Sink] = []

    def __enter__(self) -> Self:
        self._latent_plot = LatentPlot()
        with self._guarded(TensorBoard.label):
            self.sinks.append(TensorBoard(self.config, self.folder / "tensorboard" / self.name))
        if self.mode != "off" and not (self.mode == "auto" and os.environ.get("WANDB_MODE") == "disabled"):
            with self._guarded(WeightsAndBiases.label):
                self.sinks.append(
                    WeightsAndBiases(self.config, self.folder, self.name, self.group, self.mode, self._say, self.sweep)
                )
        for record in read_records(self.run) if (self.run / "records.jsonl").exists() else []:
            self.add(record)
        for sink in list(self.sinks):
            with self._guarded(sink.label, sink):
                sink.caught_up()
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        for sink in self.sinks:
            with self._guarded(sink.label):
                sink.close(failed=kind not in (None, GeneratorExit))
        self.sinks = []

    def add(self, record: Record) -> None:
        """Log a round that just finished, unless it was already logged from the run directory."""
        if record.round < len(self.records):
            return
        self.records.append(record)
        image = None
        with self._guarded("The plot of the latent space"):
            image = self._latent_plot.draw(read_arrays(self.run, record.round), len(record.added), record.tasks)
        last = record.round == planned_rounds(self.config.method, self.config.rounds)
        shown = Shown(self.config, tuple(self.records), image, self.run / model_file(record.round) if last else None)
        for sink in list(self.sinks):
            with self._guarded(sink.label, sink):
                sink.add(shown)

    @contextmanager
    def _guarded(self, label: str, sink: Sink | None = None) -> Iterator[None]:
        """Report an error once and drop the sink."""
        try:
            yield
        except Exception as error:
            if sink is not None:
                self.sinks.remove(sink)
            self._say(f"{label} stops logging {self.name}: {error or type(error).__name__}")

    def _say(self, sentence: str) -> None:
        """One line, with the API key removed from whatever others put into their messages."""
        key = os.environ.get("WANDB_API_KEY")
        line = " ".join((sentence.replace(key, "…") if key else sentence).split())
        self.say(line.rstrip(".") + "; the records of the run are complete.")
