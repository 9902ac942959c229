"""A family from `mujoco.sysid.Parameter` objects, as one has them for system identification.

    Arm = sysid_family("arm.xml", [Parameter("payload", 1.0, 0.1, 2.0, modifier=set_payload)], dt=0.05)

in a module `my_arm` makes the domain `my_arm:Arm`. A parameter with several components is as many task parameters; a
frozen one keeps its nominal value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distpaml.domains.family import FamilyError
from distpaml.domains.mjcf import DEFAULTS, MjcfDomain, MjcfSettings
from distpaml.domains.model_files import ModelError, ModelText, read_model

if TYPE_CHECKING:
    from mujoco import MjSpec


class SysidParameter(Protocol):
    """What is needed of a `mujoco.sysid.Parameter`."""

    name: str
    frozen: bool
    nominal: np.ndarray
    min_value: np.ndarray
    max_value: np.ndarray
    value: np.ndarray
    modifier: Any

    def apply_modifier(self, spec: MjSpec) -> None: ...


class _Modifier:
    """Gives one parameter its values and lets it change the model."""

    def __init__(self, parameter: SysidParameter, names: list[str]) -> None:
        self.parameter, self.names = parameter, names

    def __call__(self, spec: MjSpec, values: Mapping[str, float]) -> None:
        kept, nominal = self.parameter.value, np.asarray(self.parameter.nominal, float)
        given = np.array([values[name] for name in self.names]) if self.names else nominal
        self.parameter.value = given.reshape(nominal.shape)
        try:
            self.parameter.apply_modifier(spec)
        finally:
            self.parameter.value = kept  # it is the user's; a copy of it would lack its modifier


class SysidDomain(MjcfDomain):
    """The systems that an MJCF file becomes under the modifiers of its parameters."""

    def __init__(
        self,
        text: ModelText,
        parameters: Iterable[SysidParameter],
        settings: MjcfSettings = DEFAULTS,
        name: str | None = None,
    ) -> None:
        box: dict[str, tuple[float, float]] = {}
        edits = []
        for parameter in parameters:
            if parameter.modifier is None:
                raise FamilyError(("parameters", parameter.name), "has no modifier, hence no effect")
            names = [] if parameter.frozen else _names(parameter)
            ends = zip(np.ravel(parameter.min_value), np.ravel(parameter.max_value), strict=True)
            box |= {n: (float(low), float(high)) for n, (low, high) in zip(names, ends, strict=False)}
            edits.append(_Modifier(parameter, names))
        for key, (low, high) in box.items():
            if not (np.isfinite([low, high]).all() and low < high):
                raise FamilyError(
                    ("parameters", key), f"should have finite bounds with min_value < max_value, not [{low}, {high}]"
                )
        self._assemble(text, box, settings, name)
        self.edits = list(edits)
        self.check()


def sysid_family(
    model: str | Path, parameters: Iterable[SysidParameter], name: str | None = None, **settings: Any
) -> type[MjcfDomain]:
    """The domain's class; `settings` are those of `MjcfSettings`, such as dt=0.05."""
    try:
        text = read_model(str(model))
    except ModelError as error:
        raise FamilyError(("mjcf",), str(error)) from error
    made = SysidDomain(text, list(parameters), MjcfSettings(**settings), name)

    class Family(MjcfDomain):
        """One domain from data, as a class."""

        def __init__(self, variant: str = made.variants[0]) -> None:
            vars(self).update(vars(made))

    for attribute in ("name", "box", "states", "angles", "dt", "control_limit", "alternations", "controls", "limits"):
        setattr(Family, attribute, getattr(made, attribute))
    return Family


def _names(parameter: SysidParameter) -> list[str]:
    size = np.size(parameter.nominal)
    return [parameter.name] if size == 1 else [f"{parameter.name}_{i}" for i in range(size)]
