"""Returns a damaged run to its last whole round, from which it goes on to the results that it would have had.

A round is whole if the lines and arrays of it and of all rounds before it are. Only the newest keeps its model, so
that of the last whole round may have to be fitted again: from round 0 on, since every fit starts from the one before.
It has to reach the embeddings and the bound that each round recorded, to the bit; if not, as on another processor,
the run begins anew. A bad config.yaml is written again if the experiment that is given has its checksum.

Nothing is deleted: what goes is in a new folder `damaged-N` of the run.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path

import numpy as np
import torch

from distpaml.checksums import DamagedError, Line, checksum, sealed, verified
from distpaml.command_line import counted
from distpaml.config import ExperimentConfig
from distpaml.data import Dataset
from distpaml.durable_io import locked, sync_folder, write_durably
from distpaml.errors import UserError
from distpaml.extension import check_same, with_rounds
from distpaml.model.meta_model import MetaModel
from distpaml.model.storage import serialised
from distpaml.records import (
    CONFIG,
    LINES,
    arrays_file,
    arrays_of,
    config_remedy,
    data_of,
    model_file,
    read,
    read_config,
    record_of,
    round_folders,
    verify,
    writing,
)
from distpaml.runtime.local import LocalTrainer

Watch = Callable[[int, str], None]


def repair(config: ExperimentConfig, path: Path, watch: Watch = lambda round, stage: None) -> str:
    """Mend the run of this experiment in `path`; what was done, in a sentence. Another experiment is refused."""
    with locked(path, "Another run"):
        contents = read(path / LINES) if (path / LINES).exists() else b""
        lines, ends = list[Line](), contents.count(b"\n")
        with suppress(DamagedError):
            lines.extend(verified(contents, path / LINES, ""))
        text = _lost_config(config, path, lines)
        numbered = takewhile(lambda pair: _is_whole(path, pair[1], arrays_file(pair[0])), enumerate(lines))
        lines = [line for _, line in numbered]
        lost_model = bool(lines) and not _is_whole(path, lines[-1], model_file(len(lines) - 1))
        last = max(round_folders(path), default=-1)
        if not lost_model and text is None and len(lines) == ends and last <= ends:
            return f"Nothing is damaged in {path}."
        done = [f"{CONFIG} is written again"] if text is not None else []
        model = None
        if lost_model:
            model, number = _refitted(config, path, lines, watch), len(lines) - 1
            if model is None:
                lines = []
            done.append(f"the model of round {number} {'cannot be' if model is None else 'is'} fitted again")
        named = {line.split(b",")[0] for line in contents.splitlines() if line.startswith(b'{"round"')}
        if lost := max(len(named), last + 1) - len(lines):
            done.append(f"{counted(lost, 'round')} {'is' if lost == 1 else 'are'} set aside")
        with writing(path):
            aside = _set_aside(path, contents, len(lines), lost_model, text is not None)
            _write(path, contents, lines, model, text if lines else config.to_yaml())
    then = f"goes on after round {len(lines) - 1}" if lines else "begins anew"
    return f"Repaired: {', '.join(done)}; the run {then}, and what was damaged is in {aside}."


def _is_whole(path: Path, line: Line, name: str) -> bool:
    try:
        verify(path, line, name)
    except DamagedError:
        return False
    return True


def _lost_config(config: ExperimentConfig, path: Path, lines: Sequence[Line]) -> str | None:
    """The config as it was first written, if it is damaged."""
    if not lines:  # nothing says what it was
        if (path / CONFIG).exists():
            with suppress(DamagedError):
                check_same(read_config(path), config, path)
                return None
            return config.to_yaml()
        return None
    if _is_whole(path, lines[0], CONFIG):
        check_same(read_config(path), config, path)
        return None
    given = config.to_yaml()
    for rounds in range(config.rounds + 1):
        if checksum((text := with_rounds(given, rounds)).encode()) == lines[0].files[CONFIG]:
            return text
    found = (
        f"{path / CONFIG} is damaged, and the experiment that is given here is not the one that {path / LINES} names"
    )
    raise UserError(f"{found}; {config_remedy(path)}.")


def _refitted(config: ExperimentConfig, path: Path, lines: Sequence[Line], watch: Watch) -> MetaModel | None:
    """The model of the last round, if fits here give what they gave there."""
    torch.set_num_threads(config.runtime.threads)
    trainer, model, parts = LocalTrainer(config), None, list[Dataset]()
    for number, line in enumerate(lines):
        watch(number, "fit again")
        record, arrays = record_of(line, path / LINES), arrays_of(path, line, number)
        parts.append(data_of(arrays))
        latents = None if record.added[0].latent is None else np.array([added.latent for added in record.added])
        model = trainer.fit(Dataset.concatenate(parts), number, model, latents)
        found = vars(model.embeddings)
        same = all(np.array_equal(found[name].numpy(), arrays[f"embedding_{name}"]) for name in found)
        if not same or dict(model.terms) != dict(record.terms):
            return None
    return model


def _set_aside(path: Path, contents: bytes, whole: int, model: bool, config: bool) -> Path:
    """Move all but the whole rounds into a new folder, with copies of the lines."""
    aside = next(folder for n in count(1) if not os.path.lexists(folder := path / f"damaged-{n}"))
    aside.mkdir()
    if contents:
        write_durably(aside / LINES, contents)
    going = [folder for number, folder in round_folders(path).items() if number >= whole]
    going += [path / model_file(whole - 1)] if model and whole else []
    going += [path / CONFIG] if config or not whole else []
    for file in going:
        if os.path.lexists(file):
            there = aside / file.relative_to(path)
            there.parent.mkdir(exist_ok=True)
            os.replace(file, there)
    sync_folder(aside)
    return aside


def _write(path: Path, contents: bytes, lines: Sequence[Line], model: MetaModel | None, config: str | None) -> None:
    """The whole rounds alone, the last of them with its new model."""
    if config is not None:
        write_durably(path / CONFIG, config.encode())
    kept = contents[: sum(line.size for line in lines)]
    if model is not None:
        name, file = model_file(len(lines) - 1), serialised(model)
        write_durably(path / name, file)
        sync_folder((path / name).parent)
        values = record_of(lines[-1], path / LINES).model_dump_json()
        before = lines[-2].digest if len(lines) > 1 else ""
        kept = kept[: -lines[-1].size] + sealed(values, {**lines[-1].files, name: checksum(file)}, before)[0]
    if lines:
        write_durably(path / LINES, kept)
    else:
        (path / LINES).unlink(missing_ok=True)
    sync_folder(path)
