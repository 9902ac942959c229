"""`python -m distpaml.domains.inspect arm.xml`: what of a model can be varied, and a YAML file to begin with.

A model is an MJCF file, `dm_control:NAME` or `gymnasium:NAME`. With a YAML file instead, or with `--try`, the
corners of the box are simulated, and a film strip of them is drawn.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distpaml.command_line import Parser, called, counted, print_data, say
from distpaml.domains.elements import Address, attributes, is_open, names_of, number
from distpaml.domains.model_files import ModelError, label_of, read_model
from distpaml.errors import UserError

if TYPE_CHECKING:
    from mujoco import MjSpec

    from distpaml.config import ExperimentConfig

SHOWN = {
    "body": ("mass", "pos"),
    "joint": ("damping", "stiffness", "armature", "frictionloss", "range"),
    "geom": ("mass", "density", "size", "fromto", "pos", "friction"),
    "actuator": ("gear", "gainprm", "ctrlrange"),
    "tendon": ("stiffness", "damping"),
    "option": ("gravity", "density", "viscosity", "wind"),
}
"""What one would want to vary; `--all` lists every number."""
PADDED = ("damping", "stiffness", "gear", "gainprm", "size")
"""Arrays of which a file seldom gives more than the first values."""
SUGGESTED = 3
"""Parameters in the YAML file to begin with."""


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog=called("domains.inspect"), description="What can be varied in a model, and a YAML file to start from."
    )
    parser.add_argument("model", help="an MJCF file, dm_control:NAME, gymnasium:NAME, or a YAML file with a family")
    parser.add_argument("--all", action="store_true", help="list every number, not only those you are likely to vary")
    parser.add_argument(
        "--try",
        dest="attempt",
        action="store_true",
        help="simulate the corners of the box and draw a film strip, as for a YAML file",
    )
    parser.add_argument("--out", metavar="FILE", help="where to draw the film strip (default: NAME-corners.png)")
    options = parser.parse_args(arguments)
    try:
        if (family := _loaded(options.model)) is not None:
            return _try_family(family, options.out)
        return _inspect(options.model, options.all, options.attempt, options.out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _inspect(source: str, everything: bool, attempt: bool, out: str | None) -> int:
    try:
        spec = read_model(source).spec()
        model = spec.copy().compile()
    except ModelError as error:
        raise UserError(f"{source} cannot be used: {error}.") from error
    except ValueError as error:
        raise UserError(f"{source} cannot be compiled: {' '.join(str(error).split())}.") from error
    bodies = "1 body" if model.nbody == 2 else f"{model.nbody - 1} bodies"  # the world is none
    parts = f"{counted(model.njnt, 'joint')}, {counted(model.nu, 'actuator')}, {bodies}"
    say(f"# {label_of(source)}: {parts}, timestep {model.opt.timestep:g} s")
    for address, value in listed(spec, everything):
        say(f"#   {address:<40} {value}")
    library = source.startswith(("dm_control:", "gymnasium:"))
    print_data(suggestion(source if library else Path(source).name, spec))
    if not attempt:
        return 0
    from distpaml.config.load import ExperimentConfig

    print()
    return _try_family(ExperimentConfig.from_yaml(suggestion(source, spec)), out)


def listed(spec: MjSpec, everything: bool = False) -> Iterator[tuple[str, str]]:
    """Addresses of what can be varied, with present values; what the file leaves open and zeros are left out."""
    for kind, wanted in SHOWN.items():
        for name in ["option"] if kind == "option" else names_of(spec, kind):
            if name == "body.world":
                continue
            element = Address.find(spec, f"{name}.{wanted[0]}").element(spec)
            for attribute in attributes(element) if everything else wanted:
                address = f"{name}.{attribute}"
                value = Address.find(spec, address).read(spec)
                if not everything and _without_effect(kind, element, attribute):
                    continue
                if is_open(value) and everything:
                    yield address, "left to the compiler"
                elif not is_open(value) and (everything or value.any()):
                    yield address, number(_trimmed(value) if attribute in PADDED else value)


def suggestion(source: str, spec: MjSpec) -> str:
    """A config to edit: masses and dampings, from half to twice what they are."""
    lines = ["domain:", f"  mjcf: {source}", "  parameters:"]
    for parameter, address in _candidates(spec):
        lines.append(f"    {parameter}: {{range: [0.5, 2.0], scales: [{address}]}}  # times what is in the file")
    joints = [joint.name or f"joint{i}" for i, joint in enumerate(spec.joints) if joint.type.value >= 2]
    actuators = [actuator.name or f"actuator{i}" for i, actuator in enumerate(spec.actuators)]
    lines += [f"  states: [{', '.join(joints)}]", f"  controls: [{', '.join(actuators)}]", "  dt: 0.05"]
    if any(actuator.ctrllimited.value == 0 or not actuator.ctrlrange.any() for actuator in spec.actuators):
        lines.append("  control_limit: 1.0  # some actuators have no ctrlrange")
    return "\n".join(lines) + "\n"


def _candidates(spec: MjSpec) -> list[tuple[str, str]]:
    """Names and addresses of the first numbers that are there and not zero, in several elements."""
    found: list[tuple[str, str]] = []
    for kind, attribute in (
        ("geom", "mass"),
        ("body", "mass"),
        ("joint", "damping"),
        ("geom", "density"),
        ("joint", "armature"),
    ):
        for name in names_of(spec, kind):
            element = Address.find(spec, f"{name}.{attribute}").element(spec)
            moving = kind == "joint" or (name != "body.world" and (kind == "body" or element.parent.name != "world"))
            value = Address.find(spec, f"{name}.{attribute}").read(spec)
            if moving and not _without_effect(kind, element, attribute) and not is_open(value) and value.any():
                word = "".join(c if c.isalnum() else "_" for c in f"{name.partition('.')[2] or name}_{attribute}")
                found.append((word.strip("_"), f"{name}.{attribute}"))
    return found[:SUGGESTED] or [("gravity", "option.gravity[2]")]


def _without_effect(kind: str, element: Any, attribute: str) -> bool:
    """A density beside a mass, or the mass of a body that has it from its geoms."""
    if kind == "geom":
        given = attribute == "density" and not math.isnan(element.mass)
        return given or (attribute in ("mass", "density") and bool(element.parent.explicitinertial))
    return kind == "body" and attribute == "mass" and not element.explicitinertial


def _loaded(name: str) -> ExperimentConfig | None:
    """The config of a YAML file or of a worked example."""
    from distpaml.config.load import load, worked_examples

    return load(name) if name.endswith((".yaml", ".yml")) or name in worked_examples() else None


def _try_family(config: ExperimentConfig, out: str | None) -> int:
    from distpaml.domains.film_strip import draw_corners

    domain = config.domain.make()
    path = Path(out or f"{domain.name}-corners.png")
    for line in draw_corners(domain, config.domain, path):
        say(line)
    say(f"Film strip: {path}")
    return 0


def _trimmed(value: np.ndarray) -> np.ndarray:
    """Without the zeros at the end that nobody wrote, at least one value."""
    last = np.flatnonzero(value)
    return value[: int(last[-1]) + 1] if len(last) else value[:1]


if __name__ == "__main__":
    sys.exit(main())
