"""distpaml: distributed probabilistic active meta-learning of dynamics.

The method is that of Kaddour, Sæmundsson and Deisenroth, "Probabilistic Active Meta-Learning", NeurIPS 2020,
arXiv 2007.08949.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distpaml.ask_tell.experiment import Experiment

__all__ = ["Experiment"]
__version__ = "0.1.0"

os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
"""The same bits for the same numbers: without it MKL's depend on where in memory a tensor begins, and processes differ.

MKL reads it at its first call, so it must be set before anything is computed. It costs no measurable time.
"""


def __getattr__(name: str) -> Any:
    """Load `distpaml.Experiment`, and torch with it, on first use."""
    if name == "Experiment":
        from distpaml.ask_tell.experiment import Experiment

        return Experiment
    raise AttributeError(f"module 'distpaml' has no attribute {name!r}")
