"""distpaml: distributed probabilistic active meta-learning of dynamics.

The method is that of Kaddour, Sæmundsson and Deisenroth, "Probabilistic Active Meta-Learning", NeurIPS 2020,
arXiv 2007.08949.
"""

from distpaml.interrupt import heed_ctrl_c

heed_ctrl_c()  # before anything else is imported

from distpaml.streams import mend_streams, need_folder

mend_streams()  # before anything opens a file
need_folder()

from importlib import import_module
from typing import TYPE_CHECKING, Any

from distpaml.arithmetic import choose_kernels

if TYPE_CHECKING:
    from distpaml.ask_tell.experiment import Experiment
    from distpaml.results import results
    from distpaml.trained import load_run

__all__ = ["Experiment", "load_run", "results"]
__version__ = "0.1.0"

choose_kernels()  # before anything imports numpy

_HOMES = {"Experiment": "distpaml.ask_tell.experiment", "load_run": "distpaml.trained"}


def __getattr__(name: str) -> Any:
    """Load what `__all__` names, and torch with it, on first use."""
    if name == "results":
        return import_module("distpaml.results")  # a module that can be called: it is a command too
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'distpaml' has no attribute {name!r}")
