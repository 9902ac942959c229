"""distpaml: distributed probabilistic active meta-learning of dynamics."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distpaml.ask_tell.experiment import Experiment

__all__ = ["Experiment"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load `distpaml.Experiment`, and torch with it, on first use."""
    if name == "Experiment":
        from distpaml.ask_tell.experiment import Experiment

        return Experiment
    raise AttributeError(f"module 'distpaml' has no attribute {name!r}")
