"""What all sections of a config have in common, and the types of their values."""

from collections.abc import Collection
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from distpaml.config.validation_errors import choice_error

Item = TypeVar("Item")
LARGEST = 1e100
"""Ends of an interval: what is computed with larger ones would not be finite."""


def _interval(value: Any) -> tuple[float, float]:
    match value:
        case [int() | float() as low, int() | float() as high] if -LARGEST <= low < high <= LARGEST:
            if not isinstance(low, bool) and not isinstance(high, bool):
                return float(low), float(high)
    raise ValueError(f"should be [low, high], two finite numbers with low < high, up to {LARGEST:g}")


def one_of(choices: Collection[str]) -> AfterValidator:
    """A value that is one of `choices`, which may still grow."""

    def check(value: str) -> str:
        if value not in choices:
            raise choice_error(choices)
        return value

    return AfterValidator(check)


Interval = Annotated[tuple[float, float], BeforeValidator(_interval)]
List = Annotated[tuple[Item, ...], BeforeValidator(lambda value: tuple(value) if type(value) is list else value)]
Positive = Annotated[int, Field(ge=1, lt=2**31)]
Moderate = Annotated[int, Field(ge=1, le=10_000)]
"""How many there are of something that takes memory: more is taken for a mistake."""


class Section(BaseModel):
    """Frozen (runs share it), closed (a misspelt key is an error), strict (no '3' for 3) and finite."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_default=True,
        use_attribute_docstrings=True,
    )
