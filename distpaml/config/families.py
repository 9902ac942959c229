"""The keys of `domain` that make a family of systems from data: an MJCF file, a gymnasium environment, CARL.

Whatever a file holds is read into the config, so that the config of a run is complete, on any machine and for ever.
"""

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from distpaml.config.section import Interval, List, Moderate, Section
from distpaml.config.signal import SignalConfig
from distpaml.domains.base import Domain
from distpaml.domains.model_files import ModelError, ModelText, label_of, read_model


def _expression(value: Any) -> Any:
    """A number, an expression, or a list of them."""
    if isinstance(value, list | tuple) and value:
        return tuple(_single(one) for one in value)
    return _single(value)


def _single(value: Any) -> str | float:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and isfinite(value):
        return float(value)
    raise ValueError("should be a number, arithmetic such as 0.5 * mass, or a list of them")


def _read(value: Any) -> Any:
    """What `mjcf` names is read; a model that was read before is kept, if it is still what its hash says."""
    if isinstance(value, str):
        try:
            text = read_model(value)
        except ModelError as error:
            raise ValueError(str(error)) from error
        source = value if value.startswith(("dm_control:", "gymnasium:")) else Path(value).name
        return {"file": source, "sha256": text.sha256, "xml": text.xml, "assets": text.assets}
    if isinstance(value, Mapping) and isinstance(value.get("xml"), str) and isinstance(value.get("assets", {}), dict):
        found = ModelText("", value["xml"], value.get("assets", {})).sha256
        if value.get("sha256", found) != found:
            raise ValueError("should have the sha256 of its xml and assets, but one of them was changed by hand")
        return {**value, "sha256": found}
    if value is not None and not isinstance(value, Section):
        raise ValueError("should be an MJCF file, dm_control:NAME or gymnasium:NAME")
    return value


class MjcfConfig(Section):
    """A MuJoCo model, with all that it needs."""

    file: str
    """Where it came from."""
    sha256: str
    """Of `xml` and `assets`: a run continues only with the same model."""
    xml: str
    assets: dict[str, str] = Field(default_factory=dict)
    """Meshes and height fields by the name of their file, compressed."""

    def text(self) -> ModelText:
        """As the domain reads it."""
        return ModelText(label_of(self.file), self.xml, self.assets)


class GymnasiumConfig(Section):
    """A gymnasium environment."""

    make: Annotated[str, Field(min_length=1)]
    """Its name, as for `gymnasium.make`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `gymnasium.make`."""
    observe: Literal["state", "observation"] | None = None
    """What the states are: the environment's own where it can be set, unless given."""


class CarlConfig(Section):
    """A CARL environment."""

    make: Annotated[str, Field(min_length=1)]
    """Its class in `carl.envs`."""
    context: dict[str, float] = Field(default_factory=dict)
    """Values of context features that are no parameters; their defaults unless given."""
    observe: Literal["state", "observation"] | None = None
    """As for gymnasium."""


def _short(value: Any) -> Any:
    return {"make": value} if isinstance(value, str) else value


class ParameterConfig(Section):
    """One parameter of a family, and what depends on it."""

    range: Interval | None = None
    """[low, high]; it may be left out for a feature of CARL only, which has bounds of its own."""
    sets: dict[str, Annotated[Any, PlainValidator(_expression)]] = Field(default_factory=dict)
    """mjcf: addresses, gymnasium: attributes, each with the arithmetic that it is set to."""
    scales: List[str] = ()
    """mjcf: addresses whose value in the file is multiplied by the parameter."""
    attribute: str | None = None
    """gymnasium: the one attribute that the parameter is."""


def _point(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) == 3 and all(type(x) in (int, float) for x in value):
        return tuple(float(x) for x in value)
    raise ValueError("should be three numbers [x, y, z]")


class CameraConfig(Section):
    """A view without perspective, for tasks described by images."""

    centre: Annotated[tuple[float, float, float], BeforeValidator(_point)]
    height: Annotated[float, Field(gt=0)]
    """Metres from the lower to the upper edge."""
    azimuth: float = 90.0
    """Degrees; 90 looks along the y-axis."""
    elevation: float = 0.0
    """Degrees; -90 looks down from above."""


def _start(value: Any) -> Any:
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _single(position) for key, position in value.items()}
    raise ValueError("should be a mapping from joints to positions, or the name of a keyframe")


def _links(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list | tuple) and all(isinstance(link, list | tuple) and len(link) == 2 for link in value):
        return tuple((str(angle), _single(length)) for angle, length in value)
    raise ValueError("should be a list of [angle, length], such as [[theta, l]]")


def _key() -> Any:
    """A key that a config without a family does not show."""
    return Field(default=None, exclude_if=lambda value: value is None)


class FamilyConfig(Section):
    """What makes a family; nothing of it is there for a domain that is a class."""

    mjcf: Annotated[MjcfConfig | None, BeforeValidator(_read)] = _key()
    """An MJCF file beside the YAML file, `dm_control:NAME` or `gymnasium:NAME`."""
    gymnasium: Annotated[GymnasiumConfig | None, BeforeValidator(_short)] = _key()
    """The name of a gymnasium environment, or `make` and `options`."""
    carl: Annotated[CarlConfig | None, BeforeValidator(_short)] = _key()
    """The name of a CARL environment, or `make` and `context`."""
    parameters: dict[str, ParameterConfig] | None = _key()
    """The task parameters, each with its `range` and what it `sets` or `scales`."""
    states: List[str] | None = _key()
    """mjcf: joints, all of them unless given; gymnasium: names of the components."""
    angles: List[str] | None = _key()
    """gymnasium: states that are angles; hinges of an MJCF file always are."""
    controls: List[str] | None = _key()
    """mjcf: actuators, all of them unless given; gymnasium: names of the components."""
    dt: Annotated[float, Field(gt=0)] | None = _key()
    """Seconds between two states; 0.05, or the environment's own."""
    substeps: Moderate | None = _key()
    """mjcf: steps of the integrator within dt; what the file's timestep asks for unless given."""
    integrator: Literal["Euler", "RK4", "implicit", "implicitfast"] | None = _key()
    """mjcf: the file's own unless given."""
    start: Annotated[Any, PlainValidator(_start)] = _key()
    """Positions at the start, by joint or state (angles in radians), or the name of a keyframe."""
    start_noise: Annotated[float, Field(ge=0)] | None = _key()
    """Standard deviation of every state at the start; 0.01 unless given."""
    camera: CameraConfig | None = _key()
    """mjcf: what an image shows; all of every system unless given."""
    links: Annotated[Any, PlainValidator(_links)] = _key()
    """gymnasium: what films show, a list of [angle, length]: a state, and arithmetic of parameters."""
    signal: SignalConfig = Field(default_factory=SignalConfig, exclude_if=lambda signal: signal == SignalConfig())
    """Shape and limits of the controls."""


KEYS = tuple(FamilyConfig.model_fields)
SOURCES = ("mjcf", "gymnasium", "carl")
"""Keys of which a family has one."""


def family_of(data: Mapping[str, Any]) -> Domain | None:
    """The domain that validated keys of a `FamilyConfig` make; None if none of them is a source of one."""
    from distpaml.config.family_domains import built

    present = {key: data[key] for key in KEYS if key in data}
    if not any(present.get(source) for source in SOURCES):
        return None
    config = FamilyConfig.model_construct(**present)
    key = json.dumps({**config.model_dump(mode="json"), "name": data.get("name")}, default=str)
    if key not in _BUILT:
        domain = built(config, data.get("name"))
        if len(_BUILT) >= MOST:
            _BUILT.clear()
        _BUILT[key] = domain
    return _BUILT[key]


_BUILT: dict[str, Domain] = {}
MOST = 32
"""Families that are kept, because a config asks for its domain again and again."""


def anchored(tree: Any, folder: Path) -> Any:
    """A copy of a config in which the files that it names are found from `folder`."""
    if not isinstance(tree, dict) or not isinstance(tree.get("domain"), dict):
        return tree
    domain = dict(tree["domain"])
    if isinstance(file := domain.get("mjcf"), str) and not file.startswith(("dm_control:", "gymnasium:")):
        domain["mjcf"] = str(folder / file)
    if isinstance(signal := domain.get("signal"), dict) and isinstance(file := signal.get("recorded"), str):
        domain["signal"] = {**signal, "recorded": str(folder / file)}
    return {**tree, "domain": domain}
