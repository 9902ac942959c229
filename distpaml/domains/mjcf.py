"""A family of systems from any MJCF file: which numbers of the model depend on which parameters, and how.

    payload: {range: [0.1, 2.0], sets: {geom.payload.mass: payload}}

For every task a copy of the parsed model is edited and compiled afresh, so that inertias and all other derived
constants follow; editing a compiled model leaves them behind.

A state is (positions, velocities, activations) of the joints that are named, hinges being angles. Joints that are not
named move along unseen, from where the model starts. Actuators that are not named are given 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distpaml.domains.expressions import ExpressionError, evaluate
from distpaml.domains.family import Expression, FamilyError, Limits, control_limit, give, selected
from distpaml.domains.model_edits import Edit, Parameter, Setting, differ, model_edits
from distpaml.domains.model_files import ModelError, ModelText
from distpaml.domains.mujoco import Camera, MujocoDomain
from distpaml.domains.stick_figure import StickFigure
from distpaml.names import nearest
from distpaml.types import Array

if TYPE_CHECKING:
    from mujoco import MjModel, MjSpec

INTEGRATORS = {"Euler": 0, "RK4": 1, "implicit": 2, "implicitfast": 3}


@dataclass(frozen=True)
class MjcfSettings:
    """What one may say of a family beside its model and parameters."""

    states: Sequence[str] | None = None
    controls: Sequence[str] | None = None
    dt: float = 0.05
    substeps: int | None = None
    """Steps of the integrator within dt; as many as the file's own timestep asks for unless given."""
    integrator: str | None = None
    """That of the file unless given."""
    start: str | Mapping[str, Expression] = field(default_factory=dict)
    """A keyframe, or joints with their position at the start."""
    noise: float = 0.01
    """Standard deviation of every state at the start."""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """Of controls, in place of their ctrlrange."""
    camera: Camera | None = None


DEFAULTS = MjcfSettings()


class MjcfDomain(MujocoDomain):
    """The systems that an MJCF file becomes when parameters change numbers in it."""

    def __init__(
        self,
        text: ModelText,
        parameters: Mapping[str, Parameter],
        settings: MjcfSettings = DEFAULTS,
        name: str | None = None,
    ) -> None:
        box = {parameter: given.interval for parameter, given in parameters.items()}
        self._assemble(text, box, settings, name)
        self.edits: list[Edit] = model_edits(self.parsed, parameters)

    def _assemble(
        self, text: ModelText, box: Mapping[str, tuple[float, float]], settings: MjcfSettings, name: str | None
    ) -> None:
        """All but the edits, which may be of another kind (`distpaml.domains.sysid`)."""
        give(self, name=name or text.label, box=dict(box), dt=settings.dt)
        super().__init__()
        self.text, self.settings = text, settings
        try:
            self.parsed = text.spec()
            self.nominal = self.parsed.copy().compile()
        except (ModelError, ValueError) as error:
            said = str(error) if isinstance(error, ModelError) else f"MuJoCo cannot compile it: {_plain(error)}"
            raise FamilyError(("mjcf",), said) from error
        joints = selected(settings.states, _names(self.nominal, "joint"), "states", f"joint of {text.label}")
        actuators = selected(
            settings.controls, _names(self.nominal, "actuator"), "controls", f"actuator of {text.label}"
        )
        if not actuators:
            raise FamilyError(("mjcf",), "it has no actuator, hence nothing to control")
        self._columns, states, angles = self._states(joints)
        self._driven = [_names(self.nominal, "actuator").index(actuator) for actuator in actuators]
        limits = self._limits(actuators)
        give(self, states=tuple(states), angles=tuple(angles), controls=tuple(actuators))
        give(self, limits={name: interval for name, interval in limits.items() if interval is not None})
        give(
            self, control_limit=control_limit(limits), alternations=5, control_noise=None, integrator=self._integrator()
        )
        self.rest = self._rest()

    @property
    def substeps(self) -> int:
        return self.settings.substeps or max(1, round(self.dt / self.parsed.option.timestep))

    def start(self, rng: np.random.Generator) -> Array:
        """As the file or `start` says, every state variable with the noise."""
        return self.rest[self._columns] + self.settings.noise * rng.standard_normal(len(self.states))

    def spec(self, task: Array) -> MjSpec:
        spec, values = self.parsed.copy(), dict(zip(self.box, task.tolist(), strict=True))
        for edit in self.edits:
            edit(spec, values)
        return spec

    def whole_states(self, starts: Array) -> Array:
        whole = np.tile(self.rest, (len(starts), 1))
        whole[:, self._columns] = starts
        return whole

    def whole_controls(self, controls: Array) -> Array:
        whole = np.zeros((*controls.shape[:2], self.nominal.nu))
        whole[..., self._driven] = controls
        return whole

    def observed(self, whole: Array) -> Array:
        return np.ascontiguousarray(whole[..., self._columns])

    def check(self) -> None:
        """Both ends of every interval compile, with the others at their middle, and make a difference."""
        middle = np.array([(low + high) / 2 for low, high in self.box.values()])
        self.compiled(middle, ("parameters",))
        for i, (name, interval) in enumerate(self.box.items()):
            ends = []
            for end in interval:
                task = np.where(np.arange(len(middle)) == i, end, middle)
                ends.append(self.compiled(task, ("parameters", name, "range")))
            if not differ(*ends):
                raise FamilyError(("parameters", name), f"makes no difference to the compiled model{self._why(name)}")

    def compiled(self, task: Array, key: tuple[str, ...]) -> MjModel:
        """The model of a task to step it, or a `FamilyError` about `key`."""
        try:
            return self.model(task, visual=False)
        except ValueError as error:
            said = f"MuJoCo cannot compile {self.text.label} with {self.describe(task)}: {_plain(error)}"
            settings = (edit for edit in self.edits if isinstance(edit, Setting))
            named = (edit.key for edit in settings if f"'{edit.address.name}'" in str(error))
            raise FamilyError(next(named, key), said) from error

    @property
    def camera(self) -> Camera:  # type: ignore[override]
        """The one that is given, or one that sees all of every system at rest, from where films see it."""
        return self.settings.camera or self._seen

    @cached_property
    def _seen(self) -> Camera:
        corners = np.array([[low for low, _ in self.box.values()], [high for _, high in self.box.values()]])
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for task in corners:
            ends = StickFigure.extent(self.model(task))
            low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
        across, up = self.figure.plane
        height = 1.1 * max(*(high - low)[[across, up]], 0.1)
        x, y, z = ((low + high) / 2).tolist()
        return Camera(
            (x, y, z), float(height), azimuth=180.0 if across == 1 else 90.0, elevation=0.0 if up == 2 else -90.0
        )

    def _states(self, joints: Sequence[str]) -> tuple[list[int], list[str], list[str]]:
        """Columns of MuJoCo's state, their names, and which of these are angles."""
        import mujoco

        model, names = self.nominal, _names(self.nominal, "joint")
        positions, velocities = [], []
        for joint in joints:
            index = names.index(joint)
            kind = mujoco.mjtJoint(model.jnt_type[index])
            if kind in (mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE):
                others = [name for i, name in enumerate(names) if model.jnt_type[i] >= 2]
                raise FamilyError(
                    ("states",),
                    f"{joint} is a {kind.name[6:].lower()} joint, whose orientation is no list of numbers; name the "
                    f"joints to be learned without it{': ' + ', '.join(others) if others else ''}",
                )
            positions.append(int(model.jnt_qposadr[index]))
            velocities.append(model.nq + int(model.jnt_dofadr[index]))
        hinges = [joint for joint in joints if model.jnt_type[names.index(joint)] == mujoco.mjtJoint.mjJNT_HINGE]
        activations = [
            f"{name}_act" for i, name in enumerate(_names(model, "actuator")) for _ in range(model.actuator_actnum[i])
        ]
        states = [*joints, *(f"{joint}_dot" for joint in joints), *activations]
        if not joints or len(set(states)) < len(states):
            raise FamilyError(("states",), "should be joints of the model, with names that differ")
        return [*positions, *velocities, *range(model.nq + model.nv, model.nq + model.nv + model.na)], states, hinges

    def _limits(self, actuators: Sequence[str]) -> dict[str, Limits | None]:
        model, given = self.nominal, self.settings.limits
        for name in given:
            if name not in actuators:
                raise FamilyError(("signal", "limits", name), f"there is no control {name!r}{nearest(name, actuators)}")
        ranges = (
            tuple(model.actuator_ctrlrange[i].tolist()) if model.actuator_ctrllimited[i] else None for i in self._driven
        )
        return {name: given.get(name, own) for name, own in zip(actuators, ranges, strict=True)}

    def _integrator(self) -> int:
        wanted = self.settings.integrator
        if wanted is None:
            return self.parsed.option.integrator
        if wanted not in INTEGRATORS:
            raise FamilyError(
                ("integrator",), f"should be one of {', '.join(INTEGRATORS)}{nearest(wanted, INTEGRATORS)}"
            )
        return INTEGRATORS[wanted]

    def _rest(self) -> Array:
        """The whole state [nq + nv + na] in which the system starts, without noise."""
        model, start = self.nominal, self.settings.start
        rest = np.concatenate([model.qpos0, np.zeros(model.nv + model.na)])
        if isinstance(start, str):
            if start not in (keys := [model.key(i).name for i in range(model.nkey)]):
                raise FamilyError(("start",), f"there is no keyframe {start!r}{nearest(start, keys)}")
            key = model.key(start)
            return np.concatenate([key.qpos, key.qvel, key.act])
        names = _names(model, "joint")
        for joint, value in start.items():
            if joint not in names or model.jnt_type[names.index(joint)] < 2:
                simple = [name for i, name in enumerate(names) if model.jnt_type[i] >= 2]
                raise FamilyError(("start", joint), f"there is no hinge or slide {joint!r}{nearest(joint, simple)}")
            try:
                rest[model.jnt_qposadr[names.index(joint)]] = evaluate(value, {})
            except ExpressionError as error:
                raise FamilyError(("start", joint), str(error)) from error
        return rest

    def _why(self, name: str) -> str:
        """A guess at why a parameter changes nothing."""
        for edit in self.edits:
            if isinstance(edit, Setting) and edit.key[1] == name and edit.address.kind == "geom":
                body = edit.address.element(self.parsed).parent
                if edit.address.attribute in ("mass", "density", "size", "fromto") and body.explicitinertial:
                    return f": the body {body.name!r} has an <inertial> of its own, so set body.{body.name}.mass"
        return ""


def _names(model: MjModel, kind: str) -> list[str]:
    """Of all joints or actuators; those without a name are counted."""
    named = {"joint": (model.joint, model.njnt), "actuator": (model.actuator, model.nu)}
    find, count = named[kind]
    return [find(i).name or f"{kind}{i}" for i in range(count)]


def _plain(error: Exception) -> str:
    return " ".join(str(error).removeprefix("Error: ").split()).rstrip(".")
