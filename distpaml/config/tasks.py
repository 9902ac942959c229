"""The sections that say what a task is and what the learner is shown of it."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from distpaml.config.families import KEYS, FamilyConfig, family_of
from distpaml.config.section import Interval, List, Positive, Section
from distpaml.config.validation_errors import beside_error, choice_error
from distpaml.domains import Domain, get_domain
from distpaml.domains.environments import label
from distpaml.domains.family import FamilyError
from distpaml.domains.model_files import label_of
from distpaml.errors import UserError
from distpaml.names import nearest


def _domain(data: Mapping[str, Any]) -> Domain | type[Domain]:
    """What knows the rest: the family that the keys make, or the class of the domain `name`."""
    return family_of(data) or get_domain(data["name"])


def _ready(data: Mapping[str, Any]) -> bool:
    """Whether the keys that make the domain are right so far; if not, that is the error to be told."""
    return {*KEYS, "name"} <= data.keys()


def _from_domain(attribute: str) -> Any:
    """A key that is filled from the domain when it is not given."""
    return Field(default_factory=lambda data: getattr(_domain(data), attribute))


class DomainConfig(FamilyConfig):
    """The family of systems. What is not given comes from the domain, so that a written config is complete."""

    name: str = Field(default_factory=lambda data: _default_name(data))
    """`cartpole`, `pendubot`, `cart_double_pole`, or your own as `module:Class`; of a family from data, any name."""
    variant: str = Field(default_factory=lambda data: _domain(data).variants[0])
    """How to read the paper where its text and its released code differ: `paper` or `code`."""
    box: dict[str, Interval] = Field(default_factory=lambda data: dict(_domain(data).box))
    """Task parameters, each with its interval [low, high]; those left out keep the domain's."""
    trajectory_length: Annotated[int, Field(ge=2, le=10_000)] = _from_domain("trajectory_length")
    """States in a trajectory; one fewer transitions."""
    control_limit: Annotated[float, Field(gt=0)] = _from_domain("control_limit")
    """C of the alternating ramp: controls lie in [-C, C], in newtons or newton metres."""
    alternations: Positive = _from_domain("alternations")
    """How often the control changes its sign within a trajectory, plus one."""

    def make(self) -> Domain:
        """The domain itself."""
        return family_of(dict(self)) or get_domain(self.name)(self.variant)

    @field_validator("name")
    @classmethod
    def _known_name(cls, name: str, info: ValidationInfo) -> str:
        if not _ready({**info.data, "name": name}):
            return name
        try:
            if (family := family_of({**info.data, "name": name})) is not None:
                family.check()  # type: ignore[attr-defined]
                if not re.fullmatch(r"[\w.+-]+", name):
                    raise ValueError("should be letters, digits, _, -, + and . only, since it names a family from data")
                return name
        except FamilyError as error:
            raise beside_error(error.key, error.said) from error
        if orphan := next((key for key in KEYS if key != "signal" and info.data[key] is not None), None):
            raise beside_error((orphan,), "should come with domain.mjcf, domain.gymnasium or domain.carl")
        try:
            get_domain(name)
        except UserError as error:
            raise ValueError(str(error).removeprefix(f"domain.name is {name!r}, but ")) from error
        return name

    @field_validator("variant")
    @classmethod
    def _known_variant(cls, variant: str, info: ValidationInfo) -> str:
        if _ready(info.data) and variant not in (variants := _domain(info.data).variants):
            raise choice_error(variants)
        return variant

    @field_validator("box", mode="before")
    @classmethod
    def _completed_box(cls, box: Any, info: ValidationInfo) -> Any:
        if not _ready(info.data) or not isinstance(box, dict):
            return box
        complete = _domain(info.data).box
        for parameter in box:
            if parameter not in complete:
                raise choice_error(complete, below=parameter)
        return {**complete, **box}

    @field_validator("box")
    @classmethod
    def _same_sign(cls, box: dict[str, Interval], info: ValidationInfo) -> dict[str, Interval]:
        """A mass or a length stays positive; a user's domain may have parameters that are not."""
        own = _domain(info.data).box if _ready(info.data) else {}
        for parameter, (low, _) in box.items():
            if low <= 0 and parameter in own and own[parameter][0] > 0:
                raise PydanticCustomError("below", "should be positive", {"below": parameter})
        return box

    @field_validator("control_limit", mode="before")
    @classmethod
    def _limited(cls, limit: Any, info: ValidationInfo) -> Any:
        if limit is None and _ready(info.data) and (family := family_of(info.data)) is not None:
            unlimited = ", ".join(name for name in family.controls if name not in family.limits)
            raise ValueError(
                f"should be given, since the model has no limits for {unlimited}; domain.signal.limits has them singly"
            )
        return limit

    @field_validator("alternations")
    @classmethod
    def _known_limits(cls, alternations: int, info: ValidationInfo) -> int:
        """`signal.limits` names controls of the domain."""
        if _ready(info.data):
            controls = _domain(info.data).controls
            for name in info.data["signal"].limits:
                if name not in controls:
                    raise beside_error(("signal", "limits", name), f"there is no such control{nearest(name, controls)}")
        return alternations


def _default_name(data: Mapping[str, Any]) -> str:
    for source in ("gymnasium", "carl"):
        if data.get(source) is not None:
            return label(data[source].make)
    return label_of(data["mjcf"].file) if data.get("mjcf") is not None else "cartpole"


class DescriptorConfig(Section):
    """What the learner is shown of a task."""

    kind: str = "full"
    """`full`: every parameter; `partial`: all but `hidden`; `noisy`: all and `superfluous`; `image`; `module:Class`."""
    hidden: List[str] = ()
    """Parameters that are never shown; each is drawn anew from its interval for every chosen task."""
    superfluous: dict[str, Interval] = Field(
        default_factory=lambda data: {"epsilon": (0.5, 5.0)} if data["kind"] == "noisy" else {}
    )
    """Dimensions without any effect, each with its interval."""
    neutral: float = 1.0
    """Superfluous value of tasks that nobody chose as descriptors: test tasks, the oracle's."""
    images: Annotated[int, Field(ge=2, le=10_000)] = 100
    """`image`: images to choose from; their tasks are spread evenly over the box."""
    height: Annotated[int, Field(ge=8, le=256)] = 64
    """Of an image, in pixels."""
    width: Annotated[int, Field(ge=8, le=256)] = 16
    """Of an image, in pixels."""

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, kind: str) -> str:
        if kind not in (kinds := ("full", "partial", "noisy", "image")) and ":" not in kind:
            raise choice_error((*kinds, "module:Class"))
        return kind

    @field_validator("hidden")
    @classmethod
    def _hidden_if_partial(cls, hidden: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        kind = info.data.get("kind")
        if kind == "partial" and not hidden:
            raise ValueError("should name at least one parameter to hide, since descriptor.kind is 'partial'")
        if kind in ("full", "noisy", "image") and hidden:
            raise ValueError(f"should be empty, since descriptor.kind is {kind!r}; only 'partial' hides")
        if len(set(hidden)) < len(hidden):
            raise ValueError("should name each parameter once")
        return hidden

    @field_validator("superfluous")
    @classmethod
    def _superfluous_if_noisy(cls, superfluous: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        kind = info.data.get("kind")
        if kind == "noisy" and not superfluous:
            raise ValueError("should have at least one dimension, since descriptor.kind is 'noisy'")
        if kind in ("full", "partial", "image") and superfluous:
            raise ValueError(f"should be empty, since descriptor.kind is {kind!r}; only 'noisy' adds dimensions")
        return superfluous

    @field_validator("neutral")
    @classmethod
    def _neutral_inside(cls, neutral: float, info: ValidationInfo) -> float:
        for name, (low, high) in info.data.get("superfluous", {}).items():
            if not low <= neutral <= high:
                raise ValueError(f"should lie within descriptor.superfluous.{name}, [{low}, {high}]")
        return neutral
