"""A config as YAML in which every key stands below its meaning; it can be read back."""

from collections.abc import Iterator
from textwrap import wrap

from distpaml.config.schema import ExperimentConfig
from distpaml.config.section import Section
from distpaml.config.yaml_text import dump

WIDTH = 100


def explained(config: ExperimentConfig) -> str:
    """Every key of the experiment with its docstring and its value."""
    return "\n".join(_lines(config, "")) + "\n"


def _lines(section: Section, indent: str) -> Iterator[str]:
    values = section.model_dump(mode="json")
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        deeper = isinstance(value, Section)
        said = (type(value).__doc__ if deeper else field.description) or ""
        if not indent:
            yield ""
        yield from (f"{indent}# {line}" for line in wrap(" ".join(said.split()), WIDTH))
        if deeper:
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        elif name not in values:  # a family from data is not given
            yield f"{indent}# {name}: null"
        else:
            yield from (indent + line for line in dump({name: values[name]}).rstrip("\n").split("\n"))
