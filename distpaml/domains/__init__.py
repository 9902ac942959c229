"""The task domains: the paper's three by name, one's own as `module:Class`.

MuJoCo and dm_control are imported when a model is built, so that names and boxes can be read at once.
"""

import importlib
import inspect
import os
import sys
from difflib import get_close_matches

from distpaml.domains.base import Domain, SimulationError
from distpaml.domains.cart_double_pole import CartDoublePole
from distpaml.domains.cartpole import CartPole
from distpaml.domains.contract import check_domain
from distpaml.domains.controls import alternating_ramp, control_signal
from distpaml.domains.pendubot import Pendubot
from distpaml.errors import UserError

__all__ = [
    "DOMAINS",
    "CartDoublePole",
    "CartPole",
    "Domain",
    "Pendubot",
    "SimulationError",
    "alternating_ramp",
    "check_domain",
    "control_signal",
    "get_domain",
]

DOMAINS: dict[str, type[Domain]] = {domain.name: domain for domain in (CartPole, Pendubot, CartDoublePole)}


def get_domain(name: str) -> type[Domain]:
    """The domain called `name`, or the class "module:Class", which may lie in the working folder."""
    if ":" in name:
        return _imported(name)
    if name not in DOMAINS:
        nearest = get_close_matches(name, DOMAINS, n=1)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        known = ", ".join(DOMAINS)
        raise UserError(f"there is no domain {name!r}; {hint}Known: {known}, or one's own as module:Class.")
    return DOMAINS[name]


def _imported(name: str) -> type[Domain]:
    module_name, _, class_name = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"domain {name!r}: cannot import {module_name!r} ({reason}).") from error
    found = getattr(module, class_name, None)
    if found is None:
        own = [
            key
            for key, value in vars(module).items()
            if _is_domain(value) and value.__module__ == module_name
        ]
        known = f"its domains are {', '.join(own)}" if own else "it defines no subclass of Domain"
        raise UserError(f"domain {name!r}: {module_name} has no {class_name!r}; {known}.")
    if not _is_domain(found):
        raise UserError(f"domain {name!r}: {class_name} is not a subclass of distpaml.domains.Domain.")
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise UserError(f"domain {name!r}: {class_name} lacks {lacking}.")
    return found


def _is_domain(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, Domain)
