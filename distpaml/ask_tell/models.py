"""The model of a journal: a function of the declaration and of the observations at each ask, never of the process.

    model of an ask = fit( observations so far, started from the model of the ask before )

A fit starts afresh if an observed task was withdrawn since. Between two asks, predictions use the model that the next
ask would use, and leave no trace in what is chosen. A model's name is a digest of all that it depends on, so a file
with that name is that model, and one that is missing is computed again. The checksum of its contents follows the name.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import numpy as np
import torch

from distpaml import seeds
from distpaml.ask_tell.declaration import Declaration
from distpaml.ask_tell.journal import Journal, explained
from distpaml.ask_tell.recordings import Recording
from distpaml.ask_tell.space import Space
from distpaml.ask_tell.state import Data, Fitted, State
from distpaml.checksums import checksum, read_verified
from distpaml.data import Dataset
from distpaml.durable_io import sync_folder, write_durably
from distpaml.errors import UserError
from distpaml.model.collapsed import FitError
from distpaml.model.meta_model import MetaModel, fit_model
from distpaml.model.storage import load_model, serialised


class Models:
    """The fitted models of an experiment."""

    def __init__(self, declaration: Declaration, space: Space, journal: Journal) -> None:
        self.declaration, self.space, self.journal = declaration, space, journal
        self._kept: tuple[str, MetaModel] | None = None
        self._recordings: dict[int, Recording] = {}

    def wanted(self, state: State) -> Fitted:
        """The model that an ask would use now."""
        if state.last is not None and state.last.data == state.data:
            return state.last
        parent = state.last
        facts = [parent.name if parent else None, state.data, self.declaration.to_yaml()]
        return Fitted(sha256(json.dumps(facts).encode()).hexdigest()[:16], state.data, parent)

    def get(self, fitted: Fitted, state: State) -> MetaModel:
        """The model itself: kept, on disk, or fitted now."""
        if self._kept is not None and self._kept[0] == fitted.name:
            return self._kept[1]
        folder = self.journal.folder
        file = next(folder.glob(f"model-{fitted.name}-*.safetensors"), None)
        if file is None:
            contents = serialised(self._fit(fitted, state))
            file = folder / f"model-{fitted.name}-{checksum(contents)}.safetensors"
            with explained(file):
                write_durably(file, contents)
                sync_folder(folder)
        read_verified(file, file.stem.rpartition("-")[2], "delete it, and it will be fitted again")
        self._kept = fitted.name, load_model(file)  # always from the file: the same bits before and after a restart
        return self._kept[1]

    def forget_others(self, fitted: Fitted) -> None:
        """Remove the files of models that will not be needed."""
        with explained(self.journal.folder):
            for file in self.journal.folder.glob("model-*.safetensors"):
                if not file.name.startswith(f"model-{fitted.name}-"):
                    file.unlink(missing_ok=True)

    def fitted_to(self, data: Data, state: State) -> MetaModel:
        """A model of these observations alone, fitted from scratch and not kept."""
        return self._fit(Fitted("", data, None), state)

    def dataset(self, data: Data, state: State) -> Dataset:
        """The observations as the model sees them."""
        encoded = self.space.encode([state.tasks[id].descriptor for id, _ in data])
        parts = [
            as_dataset(Recording.joined([self._recording(line) for line in lines]), self.declaration, row)
            for (_, lines), row in zip(data, encoded, strict=True)
        ]
        return Dataset.concatenate(parts)

    def _recording(self, line: int) -> Recording:
        if line not in self._recordings:
            self._recordings[line] = self.journal.recording(line)
        return self._recordings[line]

    def _fit(self, fitted: Fitted, state: State) -> MetaModel:
        declaration, parent = self.declaration, fitted.parent
        ids = [id for id, _ in fitted.data]
        known = [id for id, _ in parent.data] if parent else []
        last = self.get(parent, state) if parent is not None and ids[: len(known)] == known else None
        guesses = [state.tasks[id].latent for id in ids[len(known) :] if state.tasks[id].latent is not None]
        starts = np.array(guesses) if last is not None and guesses else None
        seed = int(seeds.rng(declaration.seed, "fit", len(ids)).integers(2**31))
        try:
            with threads(declaration.threads):
                return fit_model(
                    self.dataset(fitted.data, state), declaration.model, declaration.fit, seed, last, starts
                )
        except FitError as error:
            raise UserError(
                f"No model fits what was told: {error} Look at the newest task; if it is wrong, withdraw it with fail."
            ) from error


def as_dataset(recording: Recording, declaration: Declaration, encoded: np.ndarray) -> Dataset:
    """One task with its descriptor's numbers [E]."""
    inputs, targets = recording.rows(declaration.angle_places)
    return Dataset(inputs[None], targets[None], np.array([len(inputs)]), encoded[None])


@contextmanager
def threads(number: int) -> Iterator[None]:
    """So many threads of torch for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
