"""YAML text ↔ plain mappings, with the scalars of YAML 1.2: `1e-2` is a number, `no` is text, `010` is ten.

Only safe types are built. A key given twice, a text that is not YAML, an unreadable file: `UserError`.
"""

from pathlib import Path
from typing import Any

import yaml

from distpaml.config.yaml_loader import FLOAT, Loader
from distpaml.durable_io import read_regular
from distpaml.errors import UserError

LARGEST_FILE = 10_000_000  # bytes; a config has a few thousand, with a robot's meshes some millions


def _style(text: str) -> str | None:
    """Lines of plain text as a block that one can read, as of a model; other line breaks only survive in quotes."""
    lines = text.split("\n")
    if text.isprintable():
        return None
    plain = all(line.isprintable() and line == line.rstrip() for line in lines)
    return "|" if plain and text.startswith("<") and lines[-1] == "" and lines[-2:] != ["", ""] else '"'


class _Dumper(yaml.SafeDumper):
    """Quotes what either version of YAML would take for something else than text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, None)
_Dumper.add_representer(  # only the double-quoted style keeps every line break and control character
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))
)
_Dumper.add_representer(
    list, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)


def dump(tree: dict[str, Any]) -> str:
    """Block mappings, lists on one line, keys in their order."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def parse_value(text: str, source: str) -> Any:
    """Whatever YAML value `text` is; `source` names it in an error."""
    if len(text) > LARGEST_FILE:
        raise UserError(f"{source} has more than {LARGEST_FILE} characters, which is too much for a config.")
    try:
        return yaml.load(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        hint = "; in braces, a key with brackets has to be quoted" if "',' or '}'" in str(error.problem) else ""
        raise UserError(f"{source} is not valid YAML: {error.problem}{line}{hint}.") from error
    except yaml.YAMLError as error:
        raise UserError(f"{source} is not valid YAML: {' '.join(str(error).split())}.") from error
    except UnicodeEncodeError as error:
        raise UserError(f"{source} is not valid YAML: it is not UTF-8 text.") from error


def parse(text: str, source: str) -> dict[str, Any]:
    """The mapping in a YAML text."""
    tree = parse_value(text, source)
    if not isinstance(tree, dict):
        found = "empty" if tree is None else "text" if isinstance(tree, str) else f"a {type(tree).__name__}"
        raise UserError(f"{source} should be a YAML mapping of keys to values, but is {found}.")
    return tree


def read(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        return parse(read_regular(path, LARGEST_FILE).decode(), str(path))
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}.") from error


def line_of(key: str, path: Path | None) -> str:
    """ ", line 12" for a key of a YAML file that has been read, or for the nearest above it that the file has."""
    if path is None:
        return ""
    line = _line(yaml.compose(path.read_text(encoding="utf-8"), Loader=Loader), f".{key}")
    return f", line {line}" if line else ""


def _line(node: yaml.Node | None, key: str) -> int | None:
    """Where below `node` the first part of `.model.inducing` or `[3].low` stands that leads furthest."""
    children = list[tuple[str, yaml.Node, yaml.Node]]()
    if isinstance(node, yaml.MappingNode):
        children = [(f".{name.value}", name, value) for name, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        children = [(f"[{index}]", value, value) for index, value in enumerate(node.value)]
    for part, name, value in children:
        if key == part or key.startswith((f"{part}.", f"{part}[")):
            return _line(value, key.removeprefix(part)) or name.start_mark.line + 1
    return None
