"""The whole experiment in one typed, frozen, closed object; YAML in and out; `dotted.key=value` overrides."""

from distpaml.config.load import load, shipped
from distpaml.config.schema import (
    EvaluationConfig,
    ExperimentConfig,
    FitConfig,
    ModelConfig,
    RuntimeConfig,
    SelectionConfig,
)
from distpaml.config.tasks import DescriptorConfig, DomainConfig

__all__ = [
    "DescriptorConfig",
    "DomainConfig",
    "EvaluationConfig",
    "ExperimentConfig",
    "FitConfig",
    "ModelConfig",
    "RuntimeConfig",
    "SelectionConfig",
    "load",
    "shipped",
]
