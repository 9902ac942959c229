"""`python -m distpaml.bench`: benchmarks against what one would use instead, same data, same run.

A benchmark is one module of this package with `run(options) -> Iterable[Result]`, named in `BENCHES`.
"""

from dataclasses import dataclass

BENCHES = (
    "rollout",
    "fit",
    "infer",
    "trial",
    "loop",
    "capacity",
    "greedy",
    "choose",
    "shards",
    "gpu",
    "score",
    "sweep",
    "scale",
    "ask",
)


@dataclass(frozen=True)
class Result:
    """One comparison: `ours` and `other` in `unit`, and how many times better ours is."""

    name: str
    ratio: float
    ours: float
    other: float
    unit: str
    against: str
    """What the other is, in words."""
