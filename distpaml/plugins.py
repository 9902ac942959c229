"""A class or function of the user's own, named as `module:Name` in a config."""

from importlib import import_module
from typing import Any

from distpaml.errors import UserError


def load_object(reference: str, key: str) -> Any:
    """What `reference`, the value of the config key `key`, names."""
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # whatever a user's module raises while it is imported
        detail = " ".join(str(error).split())
        raise UserError(
            f"{key} is {reference!r}, which cannot be loaded: {type(error).__name__}: {detail}."
        ) from error
