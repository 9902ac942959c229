"""What every command does first: a file or the name of a shipped experiment, and overrides → `ExperimentConfig`."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from distpaml.config.families import anchored
from distpaml.config.schema import ExperimentConfig
from distpaml.config.validation_errors import checked, shown
from distpaml.config.yaml_loader import DEEPEST, LONGEST_KEY
from distpaml.config.yaml_text import line_of, parse_value, read
from distpaml.errors import UserError
from distpaml.names import near, nearest

QUICK = {
    "rounds": 5,
    "model.inducing": 200,
    "model.inducing_cap": 200,
    "fit.evaluations": 30,
    "fit.restarts": 2,
    "fit.adam_steps": 200,
    "fit.image_adam_steps": 150,
    "evaluation.grid": 5,
}
"""Upper limits of a quick experiment, which takes about a minute."""

Tree = dict[str, Any]


def load(
    config: str | Path | None = None, overrides: Sequence[str] | Mapping[str, Any] = (), quick: bool = False
) -> ExperimentConfig:
    """The experiment of `config` (a YAML file, the name of a shipped one, or None for the defaults).

    `overrides` are `dotted.key=value` with YAML values, or values by dotted keys; they win over `quick`, which wins
    over the file.
    """
    return Source.of(config).load(overrides, quick)


@dataclass(frozen=True)
class Source:
    """Where experiments come from: a config that is read once for all that are made of it."""

    name: str
    tree: Tree
    path: Path | None

    @classmethod
    def of(cls, config: str | Path | None) -> "Source":
        """A config by its name or file, or the defaults."""
        named = shipped() | worked_examples()
        if config is None:
            return cls("the defaults", {}, None)
        if isinstance(config, str) and config in named:
            path, name = named[config], f"the shipped experiment {config}"
        else:
            path = Path(config)
            name = str(path)
        if not os.path.exists(path):  # False also where the name is too long or malformed
            raise UserError(f"{shown(str(config))} is neither a file nor a shipped experiment{_meant(path, named)}.")
        if path.suffix == ".xml":
            raise UserError(
                f"{path} is a model; `python -m distpaml.domains.inspect {path}` prints a YAML file to start from."
            )
        if os.path.isfile(path / "config.yaml"):
            command = f"python -m distpaml.run {path / 'config.yaml'} --out {path}"
            raise UserError(f"{path} is the directory of a run; `{command}` continues it.")
        return cls(name, anchored(read(path), path.parent), path)

    def load(self, overrides: Sequence[str] | Mapping[str, Any] = (), quick: bool = False) -> ExperimentConfig:
        """One experiment, see `load`."""
        tree = _shrunk(self.tree) if quick else self.tree
        written_by = {}
        if isinstance(overrides, str):
            raise UserError(f"The overrides should be a list, such as [{shown(overrides)}].")
        if isinstance(overrides, Mapping):
            changes = [(_text(key, value), key, value) for key, value in overrides.items()]
        else:
            changes = [(text, *parse_override(text)) for text in overrides]
        for text, key, value in changes:
            tree = assigned(tree, key.split("."), value)
            written_by[key] = f"override {shown(text)}"

        def where(key: str) -> str:
            dotted = f"{key.partition('[')[0]}."
            touching = [w for w in written_by if dotted.startswith(f"{w}.") or f"{w}.".startswith(dotted)]
            return written_by[touching[-1]] if touching else f"{self.name}{line_of(key, self.path)}"

        return checked(ExperimentConfig, tree, where)


def _meant(path: Path, named: Mapping[str, Path]) -> str:
    """The end of the sentence about a config that is not there: the file that may be meant, or what is shipped."""
    folder = path.parent
    if path.suffix in (".yaml", ".yml") and os.path.isdir(folder) and os.access(folder, os.R_OK):
        files = [str(folder / name) for name in sorted(os.listdir(folder)) if name.endswith((".yaml", ".yml"))]
        if found := near(str(path), files):
            return f"; the nearest is {found}"
    return nearest(path.stem, named)


def shipped() -> dict[str, Path]:
    """The experiments of the paper that come with distpaml: name → YAML file."""
    folder = Path(str(files("distpaml") / "experiments"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def worked_examples() -> dict[str, Path]:
    """Families from data that come with distpaml, to begin your own with: name → YAML file."""
    folder = Path(str(files("distpaml") / "examples"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def parse_override(text: str) -> tuple[str, Any]:
    """The key and the value of `dotted.key=value`."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise UserError(f"The override {shown(text)} should be dotted.key=value, for example model.inducing=100.")
    return key, parse_value(value, f"The value of the override {shown(text)}")


def _text(key: Any, value: Any) -> str:
    """An override from Python as one would type it."""
    try:
        text = f"{key}={value}"
    except ValueError as error:
        raise UserError("The overrides hold a number that has too many digits to be written.") from error
    if not isinstance(key, str):
        raise UserError(f"The override {shown(text)} should have text as its key, for example model.inducing.")
    return text


def assigned(tree: Any, path: list[str], value: Any) -> Tree:
    """A copy of `tree` with `value` at `path`."""
    if len(path) > DEEPEST or max(map(len, path)) > LONGEST_KEY:
        found = f"{shown('.'.join(path))} is not a key"
        raise UserError(f"{found}: none has more than {DEEPEST} parts or parts of more than {LONGEST_KEY} characters.")
    head, *rest = path
    tree = tree if isinstance(tree, dict) else {}
    return {**tree, head: assigned(tree.get(head), rest, value) if rest else value}


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys of a tree with their values, the other way round of `assigned`."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _shrunk(tree: Tree) -> Tree:
    """A copy of `tree` in which nothing exceeds `QUICK`; values of a wrong type stay, to be reported."""
    defaults = ExperimentConfig().model_dump()
    for key, limit in QUICK.items():
        section, _, name = key.rpartition(".")
        given, default = (tree.get(section, {}), defaults[section]) if section else (tree, defaults)
        if isinstance(given, dict) and type(value := given.get(name, default[name])) is int and value > limit:
            tree = assigned(tree, key.split("."), limit)
    return tree
