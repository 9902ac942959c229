"""A sweep as large as wanted: copies of real runs with other seeds and changed numbers."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
from sealing import reseal

from distpaml.catalogue import HEADLINES

HOSTILE = "<img src=x onerror=alert(1)>\"'&"
"""A name that is harmful wherever it becomes markup."""
SMALL = ("fit.evaluations=8", "model.inducing=25")
"""Overrides that make a tiny run still smaller: what it learns does not matter to a page."""


def multiply(template: Path, folder: Path, names: dict[str, dict[str, object]]) -> None:
    """Copies of the run in `template`, one for each name, with these keys of its config changed at the top level."""
    config, lines = (template / "config.yaml").read_text(), (template / "records.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for number, (name, changes) in enumerate(names.items()):
        rng, run = np.random.default_rng(number), folder / name
        shutil.copytree(
            template, run, copy_function=os.link, ignore=shutil.ignore_patterns("report", "lock", "*.jsonl")
        )
        text = config
        for key, value in changes.items():
            text = "\n".join(f"{key}: {value}" if line.startswith(f"{key}:") else line for line in text.splitlines())
        (run / "config.yaml").unlink()
        (run / "config.yaml").write_text(text + "\n")
        (run / "records.jsonl").touch()
        changed = []
        for record in records:
            factors = np.exp(0.3 * rng.standard_normal(len(HEADLINES)))
            scaled = {measure: record[measure] * f for measure, f in zip(HEADLINES, factors, strict=True)}
            changed.append(record | scaled)
        reseal(run, changed)
