"""Every key of a sweep: what is varied, over which seeds, and how hard it is tried.

experiments × methods × seeds × grid        a grid: one trial each
experiments, methods, search                a search: a trial is one sample of the space, run for every seed
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from distpaml.config.section import List, Positive, Section, one_of
from distpaml.names import HEADLINES


def _counted(seeds: Any) -> Any:
    return list(range(seeds)) if type(seeds) is int and seeds >= 1 else seeds


def _flattened(tree: Any, prefix: str = "") -> Any:
    """`{model: {inducing: x}}` as `{"model.inducing": x}`, at any depth; what is no mapping stays."""
    if not isinstance(tree, dict):
        return tree
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        deeper = isinstance(value, dict) and not value.keys() & {"low", "high", "choices"}
        flat |= _flattened(value, f"{prefix}{key}.") if deeper else {f"{prefix}{key}": value}
    return flat


Dotted = BeforeValidator(_flattened)
Seeds = Annotated[List[Annotated[int, Field(ge=0)]], Field(min_length=1), BeforeValidator(_counted)]


class Space(Section):
    """The values that a search may give to one key: an interval or a list."""

    low: int | float | None = None
    high: int | float | None = None
    log: bool = False
    """Whether to search on a logarithmic scale."""
    choices: Annotated[List[int | float | str | bool], Field(min_length=1)] | None = None

    @field_validator("choices")
    @classmethod
    def _one_of_both(cls, choices: Any, info: Any) -> Any:
        low, high = info.data.get("low"), info.data.get("high")
        if (choices is None) == (low is None or high is None):
            raise ValueError("should be given where low and high are not, and only there")
        if choices is None and not low < high:
            raise ValueError(f"should not be needed, but low={low} is not below high={high}")
        if info.data.get("log") and not (low is not None and low > 0):
            raise ValueError("should not be needed, but log needs a positive low")
        return choices


class SearchConfig(Section):
    """A search of hyperparameters; its objective is always a mean over seeds."""

    space: Annotated[dict[str, Space], Dotted, Field(min_length=1)]
    """Dotted keys of the experiment, each with `low` and `high` (and `log`) or `choices`."""
    algorithm: Literal["random", "optuna"] = "optuna"
    """`random`: independent draws; `optuna`: draws that learn from those before."""
    scheduler: Literal["none", "asha"] = "none"
    """`asha` stops samples early that are worse than most others after as many rounds."""
    samples: Positive = 20
    objective: Annotated[str, one_of(HEADLINES)] = "rmse"
    """Minimised: this measure in the last round, averaged over the seeds."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the draws; the experiments have their own."""


class SweepConfig(Section):
    """One sweep."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "sweep"
    """A label, and the beginning of the directory's name."""
    experiments: Annotated[List[str], Field(min_length=1)] = ("cartpole",)
    """Shipped experiments by name, or YAML files."""
    methods: List[str] = ()
    """The methods of all experiments; each its own if none is given."""
    seeds: Seeds = (0,)
    """How many, or which."""
    quick: bool = False
    """Shrink every experiment to about a minute."""
    overrides: Annotated[dict[str, Any], Dotted] = Field(default_factory=dict)
    """Dotted keys that every experiment has changed."""
    grid: Annotated[dict[str, Annotated[List[Any], Field(min_length=1)]], Dotted] = Field(default_factory=dict)
    """Dotted keys, each with the list of values that it takes."""
    search: SearchConfig | None = None
    wandb: Literal["auto", "online", "offline", "off"] = "auto"
    """`auto`: online with a key and a network, offline otherwise. WANDB_PROJECT and WANDB_ENTITY say where to."""
    retries: Annotated[int, Field(ge=0)] = 3
    """How often a trial whose process or machine was lost is begun again from its last finished round."""

    @field_validator("overrides", "grid")
    @classmethod
    def _own_keys(cls, keys: dict[str, Any]) -> dict[str, Any]:
        for key, instead in {"seed": "seeds", "method": "methods", "out": "--out"}.items():
            if key in keys:
                raise ValueError(f"should not have {key}, which a sweep says with {instead}")
        return keys

    @field_validator("search")
    @classmethod
    def _searchable(cls, search: SearchConfig | None, info: Any) -> SearchConfig | None:
        if search is None:
            return None
        if len(info.data.get("seeds", (0, 1))) < 2:
            raise ValueError("should average over at least two seeds, but there is one")
        if len(info.data.get("experiments", ())) > 1 or len(info.data.get("methods", ())) > 1:
            raise ValueError("should be of one experiment and one method")
        if info.data.get("grid"):
            raise ValueError("should be instead of a grid, not beside one")
        return search
