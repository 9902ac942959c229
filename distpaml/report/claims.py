"""The paper's claims about each of its experiments: supported, not supported, or not testable with these runs.

The descriptor tells which experiment it is: full is (i), partial (ii), noisy (iii), image (iv). Each claim is tested
for every method that chooses by its model, under every error. A verdict states its rule, the same for all runs, and its
numbers are those of the seeds that all compared methods have finished. Where a rule asks for an interval, that decides;
elsewhere it only shows how sure the number is. Verdicts are not corrected for multiple testing, and intervals of few
seeds are too short (see `distpaml.report.statistics.COVERAGE`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from distpaml.catalogue import HEADLINES, METHODS, baselines
from distpaml.report.groups import ExperimentRuns, Group
from distpaml.report.statistics import (
    FEWEST,
    Curves,
    Difference,
    interval,
    middle,
    needed,
    on_common_seeds,
    paired,
    redrawn,
)
from distpaml.rounds import Added
from distpaml.types import Array

SUPPORTED, NOT_SUPPORTED, NOT_TESTABLE = "supported", "not supported", "not testable"
TENTH = 0.1


@dataclass(frozen=True)
class Verdict:
    """One claim about one method, under one measure if the claim is about errors."""

    claim: str
    rule: str
    method: str
    measure: str | None
    verdict: str
    number: str


class _NotTestableError(Exception):
    """Says what these runs lack."""


def claims(experiment: ExperimentRuns) -> list[Verdict]:
    """Every claim of the paper about this kind of experiment."""
    kind = experiment.config["descriptor"].get("kind")
    parts = {"full": _first, "partial": _second, "noisy": _third, "image": _fourth}.get(kind)
    if parts is None:
        return []
    about = [group for group in experiment.groups if group.method in METHODS and METHODS[group.method].chooses]
    return [verdict for group in about for verdict in parts(experiment, group)]


def _first(experiment: ExperimentRuns, group: Group) -> Iterator[Verdict]:
    rules = {
        "Error below UNI and LHS through the horizon": (
            "the 95 % interval of the mean paired difference over the horizon is below zero for both, and the mean is "
            "lower in every round",
            _below,
        ),
        "Steep first drop": (
            "after the first added task the 95 % interval of the paired difference to UNI and to LHS is below zero",
            _drop,
        ),
        "Smaller spread over seeds": (
            "the standard deviation over seeds, averaged over the horizon, is smaller than that of UNI and of LHS "
            "(by chance it is in one case of three)",
            _spread,
        ),
    }
    for claim, (rule, test) in rules.items():
        for measure in HEADLINES:
            yield _verdict(claim, rule, group, measure, partial(test, experiment, group, measure))


def _second(experiment: ExperimentRuns, group: Group) -> Iterator[Verdict]:
    for measure in HEADLINES:
        yield _verdict(
            "One added task is worth about five of the baselines'",
            "the mean curves of UNI and of LHS need at least four added tasks to come to the error after one",
            group,
            measure,
            partial(_worth, experiment, group, measure),
        )
    hidden = experiment.config["descriptor"].get("hidden") or []
    for name, (low, high) in experiment.config["domain"]["box"].items():
        if name not in hidden:
            yield _verdict(
                f"Repeated choices of a short {_plain(name)}",
                "at least half of the choices lie in the lowest tenth of the interval (by chance a tenth would)",
                group,
                None,
                partial(_lowest, _parameter(experiment, group, name), low, high, 0.5),
            )


def _third(experiment: ExperimentRuns, group: Group) -> Iterator[Verdict]:
    box = experiment.config["domain"]["box"]
    superfluous = experiment.config["descriptor"].get("superfluous") or {}
    for column, (name, (low, high)) in enumerate(superfluous.items(), start=len(box)):
        yield _verdict(
            f"The superfluous {name} stays near {low:g}",
            "at least nine in ten choices lie in the lowest tenth of the interval (by chance one would)",
            group,
            None,
            partial(_lowest, _descriptor(group, column), low, high, 0.9),
        )
    for name, (low, high) in box.items():
        yield _verdict(
            f"The {_plain(name)} is explored",
            "the choices of a run span at least 80 % of the interval, on average over seeds",
            group,
            None,
            partial(_span, _parameter(experiment, group, name), low, high),
        )


def _fourth(experiment: ExperimentRuns, group: Group) -> Iterator[Verdict]:
    for measure in HEADLINES:
        yield _verdict(
            "Reaches the oracle's level faster than UNI",
            "the mean curve needs fewer added tasks than UNI's to go 90 % of the way from the first error to the "
            "oracle's",
            group,
            measure,
            partial(_to_oracle, experiment, group, measure),
        )


def _verdict(claim: str, rule: str, group: Group, measure: str | None, test: Callable[[], tuple[bool, str]]) -> Verdict:
    try:
        if len(group.curves.finished()) < FEWEST:
            raise _NotTestableError(f"{len(group.curves.finished())} finished seeds; at least {FEWEST} are needed")
        if len(group.curves.added) < 2:
            raise _NotTestableError("no task was added")
        holds, number = test()
        verdict = SUPPORTED if holds else NOT_SUPPORTED
    except _NotTestableError as lacking:
        verdict, number = NOT_TESTABLE, f"{lacking}."
    return Verdict(claim, rule, group.label, measure, verdict, number)


def _below(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    mine, others = _compared(experiment, group, *baselines())
    holds, said = True, []
    for name, theirs in others.items():
        difference = _difference(mine, theirs, measure)
        a, b = (dict(zip(part.added, _mean(part, measure), strict=True)) for part in (mine, theirs))
        rounds = sorted((a.keys() & b.keys()) - {0.0})
        lower = sum(a[k] < b[k] for k in rounds)
        holds &= bool(difference.high is not None and difference.high < 0) and lower == len(rounds)
        said.append(f"{METHODS[name].label}: {_shown(difference)}, lower in {lower} of {len(rounds)} rounds")
    return holds, _told(mine, *said)


def _drop(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    mine, others = _compared(experiment, group, *baselines())
    holds, said = True, [f"Falls by {_fall(mine, measure):.3g}"]
    for name, theirs in others.items():
        difference = _difference(mine, theirs, measure, 1)
        holds &= bool(difference.high is not None and difference.high < 0)
        said.append(f"{METHODS[name].label}: falls by {_fall(theirs, measure):.3g}, difference {_shown(difference)}")
    return holds, _told(mine, *said)


def _spread(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    mine, others = _compared(experiment, group, *baselines())
    own = _deviation(mine.values[measure])
    holds, said = True, [f"{own:.3g}"]
    for name, theirs in others.items():
        value = _deviation(theirs.values[measure])
        holds &= bool(own < value)
        a, b = map(_deviation, redrawn(mine.values[measure], theirs.values[measure]))
        with np.errstate(invalid="ignore", divide="ignore"):  # a draw of one seed only has no spread
            low, high = middle(a / b)
            ratio = own / value
        said.append(f"{METHODS[name].label} {value:.3g}, ratio {ratio:.2f} [{low:.2f}, {high:.2f}]")
    return holds, _told(mine, *said)


def _worth(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    mine, others = _compared(experiment, group, *baselines())
    level = _mean(mine, measure)[1]
    counts, said = [], []
    for name, theirs in others.items():
        counts.append(float(needed(theirs.added, _mean(theirs, measure), level)))
        a, b = (part.mean(axis=-2) for part in redrawn(mine.values[measure], theirs.values[measure]))
        drawn = needed(theirs.added, b, a[:, 1])
        said.append(f"{METHODS[name].label} {_counted(counts[-1], drawn, theirs.added[-1])}")
    return min(counts) >= 4, _told(mine, f"{level:.3g} after one; added tasks to get there: {', '.join(said)}")


def _lowest(chosen: Sequence[np.ndarray], low: float, high: float, enough: float) -> tuple[bool, str]:
    values = np.concatenate(chosen)
    near = [values <= low + TENTH * (high - low) for values in chosen]
    share = float(np.concatenate(near).mean())
    said = f"{share:.0%}{_sure([part.mean() for part in near])} of {len(values)} choices of {len(chosen)} seeds"
    return share >= enough, f"{said}; median {np.median(values):.3g} in [{low:g}, {high:g}]."


def _span(chosen: Sequence[np.ndarray], low: float, high: float) -> tuple[bool, str]:
    spans = [float(np.ptp(values)) / (high - low) for values in chosen if len(values)]
    count = len(chosen[0])
    said = f"{np.mean(spans):.0%}{_sure(spans)} of the interval on average over {len(spans)} seeds"
    return float(np.mean(spans)) >= 0.8, f"{said} ({count} uniform draws: {(count - 1) / (count + 1):.0%})."


def _to_oracle(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    mine, others = _compared(experiment, group, "oracle", "uni")
    oracle, uniform = (others[name].values[measure] for name in ("oracle", "uni"))

    def counts(mine_: Array, uniform_: Array, oracle_: Array) -> list[Array]:
        level = oracle_.mean(axis=-2)[..., 0]
        curves = zip((mine.added, others["uni"].added), (mine_, uniform_), strict=True)
        means = [(added, values.mean(axis=-2)) for added, values in curves]
        return [needed(added, mean, level + 0.1 * (mean[..., 0] - level)) for added, mean in means]

    own, theirs = map(float, counts(mine.values[measure], uniform, oracle))
    drawn = counts(*redrawn(mine.values[measure], uniform, oracle))
    said = [_counted(count, among, mine.added[-1]) for count, among in zip((own, theirs), drawn, strict=True)]
    fewer = f"fewer in {(drawn[0] < drawn[1]).mean():.0%} of draws of the seeds"
    return own < theirs, _told(
        mine, f"{said[0]} added tasks", f"UNI {said[1]}", fewer, f"oracle at {oracle.mean():.3g}"
    )


def _compared(experiment: ExperimentRuns, group: Group, *names: str) -> tuple[Curves, dict[str, Curves]]:
    """The curves of the group and of these methods, over the seeds that all of them have finished."""
    found = {name: experiment.baseline(group, name) for name in names}
    if missing := [name for name, other in found.items() if other is None]:
        raise _NotTestableError(f"there are no runs of {' and '.join(missing)} to compare with")
    mine, *others = on_common_seeds(group.curves, *(other.curves for other in found.values() if other is not None))
    if len(mine.seeds) < FEWEST:
        compared = ", ".join([group.label, *names])
        raise _NotTestableError(f"{len(mine.seeds)} seeds are finished in all of {compared}; {FEWEST} are needed")
    return mine, dict(zip(names, others, strict=True))


def _difference(mine: Curves, theirs: Curves, measure: str, at: int | None = None) -> Difference:
    if (difference := paired(mine, theirs, measure, at)) is None:
        raise _NotTestableError("the runs have no round in common")
    return difference


def _mean(curves: Curves, measure: str) -> Array:
    return curves.values[measure].mean(axis=0)


def _fall(curves: Curves, measure: str) -> float:
    first, second = _mean(curves, measure)[:2]
    return float(first - second)


def _deviation(values: Array) -> Array:
    """Standard deviation over seeds of curves [..., S, K], averaged over the rounds after the first [...]."""
    return values.std(axis=-2, ddof=1)[..., 1:].mean(axis=-1)


def _parameter(experiment: ExperimentRuns, group: Group, name: str) -> list[np.ndarray]:
    """The chosen values of a task parameter, by finished run."""
    column = list(experiment.config["domain"]["box"]).index(name)
    return _chosen(group, lambda added: added.task[column])


def _descriptor(group: Group, column: int) -> list[np.ndarray]:
    return _chosen(group, lambda added: added.descriptor[column])


def _chosen(group: Group, value: Callable[[Added], float]) -> list[np.ndarray]:
    finished = group.curves.finished()
    return [
        np.array([value(added) for record in run.records[1:] for added in record.added])
        for run in group.runs
        if run.seed in finished
    ]


def _told(curves: Curves, *said: str) -> str:
    return f"{'; '.join(said)}; {len(curves.seeds)} seeds."


def _counted(count: float, drawn: Array, horizon: float) -> str:
    """A number of added tasks, and where it lies over draws of the seeds."""
    low, high = (f"{limit:.0f}" if np.isfinite(limit) else "never" for limit in middle(drawn))
    return f"{f'{count:.0f}' if np.isfinite(count) else f'more than {horizon:.0f}'} [{low}, {high}]"


def _sure(values: Sequence[float]) -> str:
    low, high = interval(np.array(values))
    return "" if low is None or high is None else f" [{low:.0%}, {high:.0%}]"


def _shown(difference: Difference) -> str:
    if difference.low is None or difference.high is None:
        return f"{difference.mean:+.3g}"
    return f"{difference.mean:+.3g} [{difference.low:+.3g}, {difference.high:+.3g}]"


def _plain(name: str) -> str:
    return name.replace("_", " ")
