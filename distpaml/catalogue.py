"""The methods that are compared and the measures they are compared in: one entry each.

Config, sweeps, tracking, the report and the figures for papers take names, labels, colours and roles from here. A new
method is an entry in `METHODS` and a class in `distpaml.select.methods`; a new measure is an entry in `MEASURES`, a
field of `distpaml.rounds.Record` and its formula in `distpaml.evaluate`.
"""

from dataclasses import dataclass
from typing import Literal

Colour = Literal["orange", "blue", "purple", "green", "grey", "ochre", "sky", "violet"]
Marker = Literal["circle", "square", "triangle", "diamond", "cross"]


@dataclass(frozen=True)
class MethodInfo:
    """A method as a reader sees it."""

    name: str
    """In configs, commands, records and labels of runs."""
    label: str
    """In running text and in the heads of tables."""
    colour: Colour
    """One of `distpaml.report.styles.PALETTE`."""
    dashes: str
    """Lengths of dashes and gaps in pixels, as in SVG; empty: solid."""
    marker: Marker
    has_rounds: bool = True
    """Whether it adds tasks round by round; if not, it is fitted once, to all its tasks."""
    expect: str = ""
    """What to expect of it, in one sentence."""
    chooses: bool = False
    """Whether the model decides which task is next: the paper's claims are about these."""
    utility: str = "surprisal"
    """What it maximises if it chooses, unless `selection.utility` names another."""

    @property
    def is_baseline(self) -> bool:
        """Adds tasks without asking the model: what active methods are compared with."""
        return self.has_rounds and not self.chooses


METHODS: dict[str, MethodInfo] = {
    method.name: method
    for method in (
        MethodInfo(
            "paml",
            "PAML",
            "orange",
            "",
            "circle",
            expect="The paper's selection rule, literally: on experiment (i) it ends behind uni and lhs under the fair "
            "measure, because far from the data its decoder reverts to its zero mean, so that it keeps choosing tasks "
            "near the lower bounds of the box.",
            chooses=True,
        ),
        MethodInfo(
            "paml-pool",
            "PAML-pool",
            "violet",
            "9 3",
            "circle",
            expect="The paper's utility over real tasks rather than points decoded from a grid over latent space.",
            chooses=True,
        ),
        MethodInfo(
            "paml-plus",
            "PAML-plus",
            "blue",
            "",
            "square",
            expect="Real tasks, and a utility that lowers the uncertainty about the whole family: the default.",
            chooses=True,
            utility="task_information",
        ),
        MethodInfo("uni", "UNI", "purple", "2 3", "triangle", expect="Uniform draws: the baseline to beat."),
        MethodInfo(
            "lhs",
            "LHS",
            "green",
            "9 3 2 3",
            "diamond",
            expect="The next row of a Latin hypercube: a strong baseline on small boxes.",
        ),
        MethodInfo(
            "oracle",
            "oracle",
            "grey",
            "1 4",
            "cross",
            expect="Trained on the test tasks: what the model could reach.",
            has_rounds=False,
        ),
    )
}


DEFAULT = METHODS["paml-plus"]
"""The method of an experiment that names none, and of ask and tell."""


def planned_rounds(method: str, rounds: int) -> int:
    """Rounds that a run of `method` adds after round 0, where its config asks for `rounds`."""
    return rounds if method not in METHODS or METHODS[method].has_rounds else 0


def baselines() -> tuple[str, ...]:
    """Names of the methods that others are compared with."""
    return tuple(name for name, method in METHODS.items() if method.is_baseline)


@dataclass(frozen=True)
class MeasureInfo:
    """A number about one round's model on the test tasks; `distpaml.evaluate` has the formulas."""

    name: str
    label: str
    unit: str
    over: Literal["mean", "median", "minimum"] = "mean"
    """How the numbers of all test tasks become one."""
    smaller_is_better: bool = True
    nominal: float | None = None
    """What an honest model has, if that is a fixed number."""


def _error(kind: str, unit: str, divisor: str) -> tuple[MeasureInfo, MeasureInfo]:
    """Mean and median over the test tasks."""
    name = f"{kind}{divisor}"
    label = kind.upper() + (", paper's" if divisor else "")
    median = MeasureInfo(f"{name}_median", f"{label}, median", unit, over="median")
    return MeasureInfo(name, label, unit), median


MEASURES: dict[str, MeasureInfo] = {
    measure.name: measure
    for measure in (
        *_error("rmse", "standard deviations", ""),
        *_error("nll", "nats per number", ""),
        *_error("rmse", "standard deviations", "_paper"),
        *_error("nll", "nats per number", "_paper"),
        MeasureInfo("coverage", "Coverage", "share in 95 % intervals", smaller_is_better=False, nominal=0.95),
        MeasureInfo(
            "coverage_worst", "Coverage, worst task", "share in 95 % intervals", "minimum", False, nominal=0.95
        ),
    )
}
SHORT_UNITS = {"rmse": "std. dev.", "nll": "nats"}
"""Under the names of columns, by the first part of a measure's name."""
ERRORS = tuple(measure.name for measure in MEASURES.values() if measure.smaller_is_better)
"""What methods are ranked by: below is better."""
HEADLINES = tuple(name for name in ERRORS if MEASURES[name].over == "mean")
"""What commands print, searches minimise and claims are about."""
