"""A failed validation as one sentence: the file or override, the dotted key, its value, what it should be."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from reprlib import Repr
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from distpaml.errors import UserError
from distpaml.names import near

Model = TypeVar("Model", bound=BaseModel)

_SHOULD = {
    "model_type": "should be a section of keys",
    "dict_type": "should be a mapping",
    "tuple_type": "should be a list",
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "float_type": "should be a number",
    "string_type": "should be text",
    "string_too_short": "should not be empty",
    "invalid_key": "should be text, not a key of another type",
}
LONGEST = 120
"""Characters of a value that a sentence shows."""
_repr = Repr()
_repr.maxstring = _repr.maxother = 80


def checked(model: type[Model], tree: Mapping[str, Any], where: Callable[[str], str]) -> Model:
    """The validated model, or the `UserError` of its first fault; `where(key)` says who wrote that key."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise UserError(_sentence(error, model, tree, where)) from error


def choice_error(choices: Iterable[str], **context: Any) -> PydanticCustomError:
    """A value, or with `below` a key of the mapping, that is none of `choices`; for use in validators."""
    return PydanticCustomError("choice", "choice", {"choices": list(choices), **context})


def beside_error(key: Sequence[str | int], said: str) -> PydanticCustomError:
    """A fault that is not of the validated key but of `key` in the same section; for use in validators."""
    return PydanticCustomError("beside", "{said}", {"said": said, "beside": list(key)})


def _sentence(
    error: ValidationError, model: type[BaseModel], tree: Mapping[str, Any], where: Callable[[str], str]
) -> str:
    faults = [fault for fault in error.errors() if fault["type"] != "default_factory_not_called"]
    fault, context = faults[0], faults[0].get("ctx", {})
    path = [part for part in fault["loc"] if part != "[key]"]
    path += str(context["below"]).split(".") if "below" in context else []
    path = [*path[:-1], *context["beside"]] if "beside" in context else path
    key = _dotted(path)
    given = None if "beside" in context else fault["input"]
    value = context.get("value", given if "[key]" in fault["loc"] else _lookup(tree, path, given))
    if fault["type"] == "extra_forbidden":
        valid = list(dict.fromkeys([*dotted_keys(model), *_siblings(model, path[:-1])]))
        if key in valid:  # the dots are in the key itself
            *sections, name = key.split(".")
            nested = "".join(f"{section}: {{" for section in sections) + f"{name}: …" + "}" * len(sections)
            said = f"{key} (here {shown(value)}) should be nested, as in {nested}"
        else:
            said = f"{key} (here {shown(value)}) is not a key{_nearest_key(key, valid)}"
    elif fault["type"] == "choice" and "value" not in context and "below" in context:
        valid = [_dotted([*fault["loc"], choice]) for choice in context["choices"]]
        said = f"{key} (here {shown(value)}) is not a key{_nearest_key(key, valid)}"
    elif fault["type"] == "missing":
        said = f"{key} is missing"
    else:
        said = f"{key} is {shown(value)} but {_should(fault, context, value)}"
    more = len(faults) - 1
    also = f" ({more} more error{'s' if more > 1 else ''} after this one)" if more else ""
    return f"In {where(key)}, {said}{also}."


def _should(fault: Any, context: dict[str, Any], value: Any) -> str:
    choices = context.get("choices", [])
    if fault["type"] == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
    if choices:
        found = near(str(value), choices)
        return f"should be {_alternatives(choices)}{f'; the nearest is {found}' if found else ''}"
    if fault["type"] == "value_error":
        return str(context["error"]).rstrip(".")
    return _SHOULD.get(fault["type"]) or fault["msg"].removeprefix("Input ").removeprefix("String ")


def dotted_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every key of a model and of its sections: `seed`, `model.inducing`, …"""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from dotted_keys(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def _siblings(model: type[BaseModel], path: list[Any]) -> list[str]:
    """The keys of a section below a mapping, such as one of `domain.parameters`."""
    section: Any = model
    for part in path:
        field = section.model_fields.get(part) if section else None
        if field is not None:
            section = _section(field.annotation)
    return [_dotted([*path, name]) for name in section.model_fields] if section else []


def _section(annotation: Any) -> type[BaseModel] | None:
    """The section in an annotation such as `dict[str, Section] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section(part))), None)


def _nearest_key(key: str, valid: list[str]) -> str:
    """The valid keys most like `key`; where none is, what its section has."""
    section, _, name = key.rpartition(".")

    def likeness(other: str) -> float:
        other_section, _, other_name = other.rpartition(".")
        alike = SequenceMatcher(None, name, other_name).ratio()
        return alike if section == other_section else 0.95 * max(alike, SequenceMatcher(None, key, other).ratio())

    best = max(map(likeness, valid))
    if best >= 0.6:
        return f"; the nearest is {_alternatives(k for k in valid if likeness(k) == best)}"
    prefix = f"{section}." if any(k.startswith(f"{section}.") for k in valid) else ""
    here = [k.removeprefix(prefix).partition(".")[0] for k in valid if k.startswith(prefix)]
    return f"; valid are {_alternatives((prefix + k for k in dict.fromkeys(here)), 'and')}"


def _alternatives(names: Iterable[str], word: str = "or") -> str:
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def _dotted(path: Iterable[Any]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _lookup(tree: Any, path: list[Any], default: Any) -> Any:
    """What the user wrote at `path`, or the value that pydantic complained about."""
    for part in path:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return default
    return tree


def shown(value: Any) -> str:
    """A short form of any value, spelt as in YAML where Python spells otherwise."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = _repr.repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
