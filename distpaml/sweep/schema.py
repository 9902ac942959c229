"""Every key of a sweep: what varies, over which seeds, and how often to retry.

experiments × methods × seeds × grid        a grid: one trial each
experiments, methods, search                a search: a trial is one sample of the space, run for every seed
"""

from math import prod
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from distpaml.catalogue import HEADLINES
from distpaml.config.section import List, Positive, Section, one_of
from distpaml.config.validation_errors import beside_error

MOST_RUNS = 10_000
"""Runs of a sweep. Tune hands out ten thousand trials well; a sweep of more is far likelier a slip than a plan."""
LONGEST_NAME = 200
"""Characters of a name that folders get; file systems allow 255 bytes, and times, W&B and TensorBoard add some."""


def _counted(seeds: Any) -> Any:
    if type(seeds) is int and seeds < 1:
        raise ValueError("should be how many seeds, at least 1, or a list of them")
    if type(seeds) is int and seeds > MOST_RUNS:
        raise ValueError(f"should be at most {MOST_RUNS}")
    return list(range(seeds)) if type(seeds) is int else seeds


def _flattened(tree: Any, prefix: str = "") -> Any:
    """`{model: {inducing: x}}` as `{"model.inducing": x}`, at any depth."""
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
    """The values that a search may try for one key: an interval or a list."""

    low: int | float | None = None
    high: int | float | None = None
    log: bool = False
    """Search on a logarithmic scale."""
    choices: Annotated[List[int | float | str | bool], Field(min_length=1)] | None = None

    @field_validator("choices")
    @classmethod
    def _one_of_both(cls, choices: Any, info: Any) -> Any:
        low, high = info.data.get("low"), info.data.get("high")
        if (choices is None) == (low is None or high is None):
            raise ValueError("should be given if and only if low and high are not")
        if choices is None and not low < high:
            raise beside_error(["low"], f"should be below high={high}")
        if info.data.get("log") and not (low is not None and low > 0):
            raise beside_error(["low"], "should be positive, since log is true")
        return choices


class SearchConfig(Section):
    """A hyperparameter search; its objective is always a mean over seeds."""

    space: Annotated[dict[str, Space], Dotted, Field(min_length=1)]
    """Dotted keys of the experiment, each with `low` and `high` (and `log`) or `choices`."""
    algorithm: Literal["random", "optuna"] = "optuna"
    """`random`: independent draws; `optuna`: TPE, which learns from earlier samples."""
    scheduler: Literal["none", "asha"] = "none"
    """`asha` stops samples early that are worse than most others at the same round."""
    samples: Positive = 20
    objective: Annotated[str, one_of(HEADLINES)] = "rmse"
    """The measure to minimise: in the last round, averaged over seeds."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the draws; experiments have their own."""

    @property
    def corners(self) -> int:
        """Samples that together cover both ends of every interval and every choice."""
        return max(len(space.choices or "ab") for space in self.space.values())


class SweepConfig(Section):
    """One sweep."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=LONGEST_NAME)] = "sweep"
    """A label, and the start of the directory's name."""
    experiments: Annotated[List[str], Field(min_length=1)] = ("cartpole",)
    """Shipped experiments by name, or YAML files."""
    methods: List[str] = ()
    """Methods to run on every experiment; by default each experiment's own."""
    seeds: Seeds = (0,)
    """How many seeds (0, 1, …), or a list of them."""
    quick: bool = False
    """Shrink every experiment to about a minute."""
    overrides: Annotated[dict[str, Any], Dotted] = Field(default_factory=dict)
    """Dotted keys to change in every experiment."""
    grid: Annotated[dict[str, Annotated[List[Any], Field(min_length=1)]], Dotted] = Field(default_factory=dict)
    """Dotted keys, each with the list of its values."""
    search: SearchConfig | None = None
    wandb: Literal["auto", "online", "offline", "off"] = "auto"
    """`auto`: online with a key and a network, else offline. WANDB_PROJECT and WANDB_ENTITY say where."""
    retries: Annotated[int, Field(ge=0)] = 3
    """How often to restart a trial whose process or machine was lost; it continues from its last finished round."""

    @property
    def size(self) -> int:
        """How many runs it has, counted without making them."""
        sample = max(self.search.samples, self.search.corners) if self.search else 1
        return sample * prod(map(len, (self.experiments, self.methods or " ", self.seeds, *self.grid.values())))

    @field_validator("overrides", "grid")
    @classmethod
    def _own_keys(cls, keys: dict[str, Any]) -> dict[str, Any]:
        for key, instead in {"seed": "seeds", "method": "methods", "out": "--out"}.items():
            if key in keys:
                raise ValueError(f"should not have {key}; a sweep uses {instead}")
        return keys

    @field_validator("search")
    @classmethod
    def _searchable(cls, search: SearchConfig | None, info: Any) -> SearchConfig | None:
        if search is None:
            return None
        if len(info.data.get("seeds", (0, 1))) < 2:
            raise beside_error(["seeds"], "should be at least 2 in a search, whose objective is a mean over seeds")
        if len(info.data.get("experiments", ())) > 1 or len(info.data.get("methods", ())) > 1:
            raise ValueError("should have one experiment and one method")
        if info.data.get("grid"):
            raise ValueError("should replace the grid, not be combined with one")
        return search
