"""distpaml: distributed probabilistic active meta-learning of dynamics."""

__version__ = "0.1.0"
