"""From the keys of a family to its domain; whatever is wrong is a `FamilyError` that says which key."""

from collections.abc import Mapping

from distpaml.config.families import SOURCES, FamilyConfig, ParameterConfig
from distpaml.domains.base import Domain
from distpaml.domains.carl import CarlDomain
from distpaml.domains.environments import Attributes, GymnasiumSettings
from distpaml.domains.family import FamilyError
from distpaml.domains.gymnasium import GymnasiumDomain
from distpaml.domains.mjcf import MjcfDomain, MjcfSettings
from distpaml.domains.model_edits import Parameter
from distpaml.domains.mujoco import Camera

ONLY: dict[str, tuple[str, ...]] = {
    "substeps": ("mjcf",),
    "integrator": ("mjcf",),
    "camera": ("mjcf",),
    "angles": ("gymnasium", "carl"),
    "links": ("gymnasium", "carl"),
}
"""Keys that mean something for some sources only."""


def built(config: FamilyConfig, name: str | None) -> Domain:
    """The domain of a family."""
    sources = [source for source in SOURCES if getattr(config, source) is not None]
    if len(sources) > 1:
        raise FamilyError((sources[1],), f"should not be there beside domain.{sources[0]}: a family has one source")
    for key, valid in ONLY.items():
        if getattr(config, key) is not None and sources[0] not in valid:
            raise FamilyError(
                (key,), f"should not be there beside domain.{sources[0]}; it is for domain.{' or domain.'.join(valid)}"
            )
    if not config.parameters:
        raise FamilyError(("parameters",), "should name at least one parameter, such as mass: {range: [1, 2], …}")
    for parameter in config.parameters:
        if not parameter.isidentifier() or parameter in ("pi", "e"):
            raise FamilyError(
                ("parameters", parameter), "should have a name of letters, digits and _, other than pi and e"
            )
    return {"mjcf": _mjcf, "gymnasium": _gymnasium, "carl": _carl}[sources[0]](config, config.parameters, name)


def _mjcf(config: FamilyConfig, parameters: Mapping[str, ParameterConfig], name: str | None) -> Domain:
    assert config.mjcf is not None
    for key, given in parameters.items():
        if given.attribute is not None:
            raise FamilyError(
                ("parameters", key, "attribute"), "should not be there: an MJCF family has sets and scales"
            )
    settings = MjcfSettings(
        states=config.states,
        controls=config.controls,
        dt=config.dt or MjcfSettings.dt,
        substeps=config.substeps,
        integrator=config.integrator,
        start=config.start or {},
        noise=MjcfSettings.noise if config.start_noise is None else config.start_noise,
        limits=config.signal.limits,
        camera=None if config.camera is None else Camera(**dict(config.camera)),
    )
    family = {key: Parameter(_range(key, given), given.sets, given.scales) for key, given in parameters.items()}
    return MjcfDomain(config.mjcf.text(), family, settings, name)


def _gymnasium(config: FamilyConfig, parameters: Mapping[str, ParameterConfig], name: str | None) -> Domain:
    assert config.gymnasium is not None
    family = {}
    for key, given in parameters.items():
        if given.scales:
            raise FamilyError(
                ("parameters", key, "scales"), "should not be there: a gymnasium family has attribute and sets"
            )
        for attribute, value in given.sets.items():
            if isinstance(value, tuple):
                raise FamilyError(
                    ("parameters", key, "sets", attribute), "should be one number or expression, not a list"
                )
        sets = {given.attribute: key} if given.attribute else {} if given.sets else {key: key}
        family[key] = Attributes(_range(key, given), {**sets, **given.sets})
    source = config.gymnasium
    return GymnasiumDomain(source.make, family, _settings(config, source.observe), source.options, name)


def _carl(config: FamilyConfig, parameters: Mapping[str, ParameterConfig], name: str | None) -> Domain:
    assert config.carl is not None
    for key, given in parameters.items():
        if given.sets or given.scales or given.attribute:
            raise FamilyError(
                ("parameters", key), "should have a range at most: a parameter of CARL is a context feature"
            )
    ranges = {key: given.range for key, given in parameters.items()}
    return CarlDomain(config.carl.make, ranges, _settings(config, config.carl.observe), config.carl.context, name)


def _settings(config: FamilyConfig, observe: str | None) -> GymnasiumSettings:
    if isinstance(config.start, str):
        raise FamilyError(("start",), "should be a mapping from states to numbers: an environment has no keyframes")
    return GymnasiumSettings(
        states=config.states,
        angles=config.angles or (),
        controls=config.controls,
        dt=config.dt,
        start=config.start or {},
        noise=GymnasiumSettings.noise if config.start_noise is None else config.start_noise,
        limits=config.signal.limits,
        observe=observe,
        links=config.links or (),
    )


def _range(name: str, given: ParameterConfig) -> tuple[float, float]:
    if given.range is None:
        raise FamilyError(("parameters", name), "should have a range: [low, high]")
    return given.range
