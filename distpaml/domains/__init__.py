"""The task domains: the paper's by name, your own as `module:Class`.

MuJoCo and dm_control are imported when a model is built, so that names and boxes can be read at once.
"""

from inspect import isabstract, isclass

from distpaml.domains.base import Domain, SimulationError
from distpaml.domains.cart_double_pole import CartDoublePole
from distpaml.domains.cartpole import CartPole, CartPoleLength, ShortCartPole
from distpaml.domains.contract import check_domain
from distpaml.domains.pendubot import Pendubot
from distpaml.domains.signals import control_signals
from distpaml.errors import UserError
from distpaml.names import nearest
from distpaml.plugins import load_object

__all__ = [
    "DOMAINS",
    "CartDoublePole",
    "CartPole",
    "CartPoleLength",
    "Domain",
    "Pendubot",
    "ShortCartPole",
    "SimulationError",
    "check_domain",
    "control_signals",
    "get_domain",
]

DOMAINS: dict[str, type[Domain]] = {
    domain.name: domain for domain in (CartPole, CartPoleLength, ShortCartPole, Pendubot, CartDoublePole)
}


def get_domain(name: str) -> type[Domain]:
    """The domain called `name`, or the class "module:Class", which may lie in the working folder."""
    if ":" in name:
        return _imported(name)
    if name not in DOMAINS:
        known = nearest(name, DOMAINS)
        raise UserError(f"domain.name is {name!r}, but there is no such domain{known}, or your own as module:Class.")
    return DOMAINS[name]


def _imported(name: str) -> type[Domain]:
    found = load_object(name, "domain.name")
    class_name = name.partition(":")[2]
    if not (isclass(found) and issubclass(found, Domain)):
        raise UserError(f"domain.name is {name!r}, but {class_name} is not a subclass of distpaml.domains.Domain.")
    if isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise UserError(f"domain.name is {name!r}, but {class_name} lacks {lacking}.")
    return found
