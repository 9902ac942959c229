"""Classes and functions of the user's own, named as `module:Name` in a config."""

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from distpaml.errors import UserError
from distpaml.names import nearest


def load_object(reference: str, key: str) -> Any:
    """Import what `reference`, the value of config key `key`, names; the working folder is on the path."""
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise UserError(f"{key} is {reference!r}, but should be module:Name, such as my_robot:Arm.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever a user's module raises while it is imported
        detail = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(
            f"{key} is {reference!r}, but the module {module_name} cannot be imported ({detail})."
        ) from error
    if not hasattr(module, name):
        raise UserError(f"{key} is {reference!r}, but {module_name} has no {name}{_hint(module, name)}.")
    return getattr(module, name)


def own_modules(references: Iterable[str]) -> list[ModuleType]:
    """The modules that `module:Name` references name, without installed ones."""
    named = {reference for reference in references if ":" in reference}
    for reference in named:
        load_object(reference, "module:Name")
    modules = [sys.modules[name] for name in sorted({name.partition(":")[0].partition(".")[0] for name in named})]
    return [module for module in modules if "site-packages" not in (module.__file__ or "site-packages")]


def _hint(module: Any, missing: str) -> str:
    """The nearest name that the module itself defines, or all of them."""
    here = module.__name__
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == here]
    return nearest(missing, own, "it defines")
