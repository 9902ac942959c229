"""Is a published result what this code computes? `python tests/run_again.py [FILE [PRESET/RUN]]`

Runs a run of `notebooks/results` again and compares all its records to the last bit. Unless it is named, it is one at
random of those that were made on a processor of the same kind as this one (`distpaml.arithmetic` says why). It ends
with status 1 at the first round that differs, and says in what. Times, device and versions do not count.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from distpaml.arithmetic import processor
from distpaml.config import ExperimentConfig
from distpaml.data.tasks import TaskSet
from distpaml.loop import active_loop
from distpaml.report.archive import read_archive
from distpaml.rounds import Record
from distpaml.runtime.local import local_parts
from distpaml.select.methods import get_method

RESULTS = Path(__file__).parents[1] / "notebooks" / "results"
FILES = (
    "cartpole",
    "pendubot",
    "cart_double_pole",
    "cartpole_partial",
    "cartpole_noisy",
    "cartpole_images",
    "released",
)


def published(file: str) -> dict[str, tuple[dict[str, Any], list[Record]]]:
    """Config and records of the runs in a file of results, by preset and name; none if there is no such file."""
    path = RESULTS / f"{file}.parquet"
    runs = read_archive(path) if path.exists() else ()
    return {f"{config['model']['preset']}/{name}": (config, records) for name, config, records in runs}


def made_on(records: list[Record]) -> str:
    """The kind of processor; the first runs, whose records name none, come from AMD's."""
    return comparable(records[0].versions.get("processor", "AuthenticAMD"))


def comparable(processor: str) -> str:
    """MKL goes by the vector units of Intel's processors only."""
    return "AuthenticAMD" if processor.startswith("AuthenticAMD") else processor


def again(config: dict[str, Any]) -> Iterator[Record]:
    """The records of a run, one round after the other."""
    torch.set_num_threads(1)
    own = ExperimentConfig.model_validate(config)
    for round in active_loop(get_method(TaskSet(own)), *local_parts(own)):
        yield round.record


def main(arguments: Sequence[str]) -> int:
    here = comparable(processor())
    runs = {(file, name): run for file in arguments[:1] or FILES for name, run in published(file).items()}
    comparables = [key for key, (_, records) in runs.items() if made_on(records) == here]
    if not arguments[1:] and not comparables:
        print(f"No published run was made on a processor of this kind, {here}.")
        return 1
    file, name = (arguments[0], arguments[1]) if arguments[1:] else random.choice(comparables)
    if (file, name) not in runs:
        print(f"{file} has no run {name}; it has {', '.join(run for _, run in runs) or 'none'}.")
        return 1
    config, records = runs[file, name]
    print(f"{file}, {name}: {len(records)} rounds of commit {records[0].versions.get('commit', 'unknown')}")
    print(f"made on {made_on(records)}, this is {here}", flush=True)
    for before, now in zip(records, again(config), strict=True):
        old, new = before.result(), now.result()
        if differing := [key for key in old if old[key] != new[key]]:
            print(f"round {now.round}: {', '.join(f'{key} {old[key]} -> {new[key]}' for key in differing)}")
            return 1
        print(f"round {now.round}: the same, RMSE {now.rmse!r}, NLL {now.nll!r}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
