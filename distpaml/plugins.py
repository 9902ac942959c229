"""A class or function of the user's own, named as `module:Name` in a config."""

import os
import sys
from importlib import import_module
from typing import Any

from distpaml.errors import UserError


def load_object(reference: str, key: str) -> Any:
    """What `reference`, the value of config key `key`, names; its module may lie in the working folder."""
    module, _, name = reference.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # whatever a user's module raises while it is imported
        detail = " ".join(str(error).split())
        raise UserError(
            f"{key} is {reference!r}, which cannot be loaded: {type(error).__name__}: {detail}."
        ) from error
