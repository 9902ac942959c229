"""Loads sweeps: a YAML file or the name of a shipped one, and overrides → `SweepConfig`s."""

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from distpaml.config.load import assigned, parse_override
from distpaml.config.validation_errors import checked, shown
from distpaml.config.yaml_text import dump, read
from distpaml.errors import UserError
from distpaml.names import nearest
from distpaml.sweep.schema import MOST_RUNS, SweepConfig


def shipped_sweeps() -> dict[str, Path]:
    """The files of `tune_configs/`, inside an installed package or beside it in a clone: name → file."""
    package = Path(str(files("distpaml")))
    folders = package / "tune_configs", package.parent / "tune_configs"
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}


def load_sweep(source: str | Path, overrides: Sequence[str] = ()) -> list[SweepConfig]:
    """The sweep in a file, or all sweeps that it includes; an override changes each of them.

    An override that is not a key of a sweep applies to its experiments: `rounds=3` means `overrides.rounds=3`.
    """
    path = _file(source)
    tree = read(path)
    name = tree.get("name", path.stem)
    parts = tree.pop("parts", [{}])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts) or not parts:
        raise UserError(f"In {path}, parts is {shown(parts)} but should be a list of sweeps.")
    if "include" in tree:
        included = tree.pop("include")
        if not isinstance(included, list) or not all(isinstance(file, str) for file in included) or not included:
            raise UserError(f"In {path}, include is {shown(included)} but should be a list of YAML files.")
        parts = [read(path.parent / file) for file in included]
    sweeps = [_checked(tree | part | {"name": name}, path, overrides) for part in parts]
    if sum(sweep.size for sweep in sweeps) > MOST_RUNS:
        raise UserError(f"The sweep {path} would have more than {MOST_RUNS} runs; make it smaller, or several of it.")
    return sweeps


def to_yaml(parts: Sequence[SweepConfig]) -> str:
    """YAML that `load_sweep` reads back as the same sweeps."""
    trees = [part.model_dump(mode="json", exclude_none=True) for part in parts]
    return dump(trees[0]) if len(trees) == 1 else dump({"name": parts[0].name, "parts": trees})


def _checked(tree: dict[str, Any], path: Path, overrides: Sequence[str]) -> SweepConfig:
    written_by = {}
    for text in overrides:
        key, value = parse_override(text)
        if key.partition(".")[0] not in SweepConfig.model_fields and key not in ("seed", "method"):
            key = f"overrides.{key}"
        elif key in ("seed", "method"):
            raise UserError(f"The override {shown(text)} should be {key}s=[…]: a sweep has several.")
        tree = assigned(tree, key.split(".", 1) if key.startswith(("overrides.", "grid.")) else key.split("."), value)
        written_by[key] = f"override {shown(text)}"
    return checked(SweepConfig, tree, lambda key: next((w for k, w in written_by.items() if k in key), str(path)))


def _file(source: str | Path) -> Path:
    if isinstance(source, str) and source in shipped_sweeps():
        return shipped_sweeps()[source]
    path = Path(source)
    if not os.path.exists(path):  # False also where the name is too long or malformed
        known = nearest(path.stem, shipped_sweeps())
        raise UserError(f"{shown(str(source))} is neither a file nor a shipped sweep{known}.")
    return path
