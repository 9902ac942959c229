"""What a lab declares once. It is kept beside the journal as `experiment.yaml` and never changes after that."""

import math
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from distpaml.ask_tell.dimensions import AnyDimension, Dimension, Images
from distpaml.catalogue import DEFAULT
from distpaml.config.load import assigned, parse_override
from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.config.section import Interval, List, Moderate, Positive, Section
from distpaml.config.validation_errors import checked
from distpaml.config.yaml_text import dump, parse, read

ANGULAR = {"rad": 1.0, "deg": math.pi / 180, "turn": math.tau}
"""Units of angles, in radians. Other units are names: they are shown, and files that name others are refused."""
RESERVED = ("time", "trajectory")
"""Columns that a file may have beside those of states and controls."""

Names = Annotated[List[Annotated[str, Field(min_length=1)]], Field(max_length=100)]


class ChoiceConfig(Section):
    """How the next task is chosen."""

    utility: Annotated[str, Field(min_length=1)] = DEFAULT.utility
    """What is maximised: the name of a utility, or your own as `module:function`."""
    pool_size: Annotated[int, Field(ge=1, le=100_000)] = 2000
    """Descriptors that are compared, unless all can be listed."""
    target: dict[str, Interval] = Field(default_factory=dict)
    """Tasks that count: intervals of numeric descriptors by name; utilities that average over tasks keep to these."""
    retry_after: Positive = 3
    """A failed task is not asked for again until so many others have been observed, unless nothing else is left."""


class PromptFit(FitConfig):
    """How the model is fitted; by default so that 20 tasks are answered within ten seconds."""

    evaluations: Positive = 40
    """Most evaluations of the collapsed bound for the start that won."""
    restarts: Positive = 1
    """Fits from scratch that compete in the first fit."""


class Declaration(Section):
    """An experiment for ask and tell."""

    name: Annotated[str, Field(min_length=1)] = "experiment"
    """A label for people."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Root of every random stream."""
    descriptors: Annotated[dict[str, AnyDimension], Field(min_length=1, max_length=50)]
    """What is chosen: a name each, with an interval, `integers`, `categories` or `images`."""
    choices: List[List[Any]] | str | None = None
    """All that can be chosen, if it is a list: rows in the order of `descriptors`, or a csv file with their names."""
    constraint: Annotated[str, Field(pattern=":")] | None = None
    """A function `module:function` of a descriptor by name, such as f(payload, wheel): may it be asked for?"""
    cost: Annotated[str, Field(pattern=":")] | None = None
    """A function `module:function` of a descriptor by name: what trying it costs, a positive number in any unit."""
    states: Annotated[Names, Field(min_length=1)]
    """Columns that the model predicts."""
    controls: Names = ()
    """Columns that somebody sets; the value in a row is held until the next row."""
    angles: Names = ()
    """Those states that are angles; they may be wrapped to one turn."""
    units: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    """Units by name; angles may be in `rad` (the default), `deg` or `turn`, the others are only shown."""
    dt: Annotated[float, Field(gt=0)]
    """Seconds between two rows."""
    irregular: Literal["resample", "refuse"] = "resample"
    """What to do with rows that are not `dt` apart, where the file has a column `time`."""
    outliers: Literal["refuse", "drop", "keep"] = "refuse"
    """What to do with values that leap away from both their neighbours."""
    initial: Positive = 3
    """Observed tasks from which on a model chooses; before that, tasks are spread evenly."""
    selection: ChoiceConfig = Field(default_factory=ChoiceConfig)
    model: ModelConfig = Field(default_factory=ModelConfig)
    fit: PromptFit = Field(default_factory=PromptFit)
    threads: Moderate = 1
    """Threads of a fit. More may round otherwise, so that the number belongs to the experiment."""

    @field_validator("controls", "states")
    @classmethod
    def _distinct(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        taken = [*RESERVED, *info.data.get("descriptors", ()), *(info.data.get("states") or ()), *names]
        for name in names:
            if taken.count(name) > 1:
                raise ValueError(f"should not use the name {name!r} twice or for something else")
        return names

    @field_validator("angles")
    @classmethod
    def _angles_are_states(cls, angles: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for name in angles:
            if name not in info.data.get("states", angles):
                raise ValueError(f"should name states only, and {name!r} is none")
        return tuple(dict.fromkeys(angles))

    @field_validator("units")
    @classmethod
    def _units_of_something(cls, units: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        for name, unit in units.items():
            known = [n for key in ("descriptors", "states", "controls") for n in info.data.get(key, units)]
            if name not in known:
                raise ValueError(f"should be of descriptors, states or controls, and {name!r} is none")
            if name in info.data.get("angles", ()) and unit not in ANGULAR:
                raise ValueError(f"should be rad, deg or turn for the angle {name}, not {unit!r}")
        return units

    @model_validator(mode="after")
    def _list_or_images(self) -> Self:
        if self.choices is not None and any(isinstance(d, Images) for d in self.descriptors.values()):
            raise ValueError("choices cannot be combined with images, which are a list themselves")
        return self

    @classmethod
    def of(
        cls, source: "Declaration | Mapping[str, Any] | str | PathLike[str]", overrides: Iterable[str] = ()
    ) -> "Declaration":
        """A declaration as such, as a mapping of its keys, or as a YAML file; `overrides` are `dotted.key=value`."""
        if isinstance(source, Declaration):
            return source
        tree = dict(source) if isinstance(source, Mapping) else read(Path(source))
        for text in overrides:
            key, value = parse_override(text)
            tree = assigned(tree, key.split("."), value)
        where = "the declaration" if isinstance(source, Mapping) else str(source)
        return checked(cls, tree, lambda key: where)

    @classmethod
    def from_yaml(cls, text: str, where: str) -> Self:
        """What `to_yaml` wrote."""
        return checked(cls, parse(text, where), lambda key: where)

    def to_yaml(self) -> str:
        """Every key with its value."""
        return dump(self.model_dump(mode="json"))

    @property
    def dimensions(self) -> Mapping[str, Dimension]:
        """The parts of a descriptor by name."""
        return self.descriptors

    @property
    def angle_places(self) -> list[int]:
        """Where the angles are among the states."""
        return [self.states.index(name) for name in self.angles]

    def scale(self, name: str) -> float:
        """What a value of this column is multiplied by for the model: radians for angles, else 1."""
        return ANGULAR[self.units.get(name, "rad")] if name in self.angles else 1.0
