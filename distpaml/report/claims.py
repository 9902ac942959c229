"""The paper's claims about each of its experiments: supported, not supported, or not testable with these runs.

The descriptor tells which experiment it is: full is (i), partial (ii), noisy (iii), image (iv). Each claim is tested
for every method that chooses by its model, under every error. A verdict states its rule, the same for all runs.
Verdicts are not corrected for multiple testing, and intervals of few seeds are too short (see
`distpaml.report.statistics.COVERAGE`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from distpaml.catalogue import HEADLINES, METHODS, baselines
from distpaml.report.groups import ExperimentRuns, Group
from distpaml.report.statistics import FEWEST, Difference, needed, paired

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
            "the standard deviation over seeds, averaged over the horizon, is smaller than that of UNI and of LHS",
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
    holds, said = True, []
    mine = _mean(group, measure)
    for name, baseline in _baselines(experiment, group):
        difference = _difference(group, baseline, measure, None)
        theirs = _mean(baseline, measure)
        rounds = sorted((mine.keys() & theirs.keys()) - {0.0})
        lower = sum(mine[k] < theirs[k] for k in rounds)
        holds &= bool(difference.high is not None and difference.high < 0) and lower == len(rounds)
        said.append(f"{METHODS[name].label}: {_shown(difference)}, lower in {lower} of {len(rounds)} rounds")
    return holds, "; ".join(said) + "."


def _drop(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    holds, said = True, []
    mine = list(_mean(group, measure).values())
    for name, baseline in _baselines(experiment, group):
        difference = _difference(group, baseline, measure, 1)
        theirs = list(_mean(baseline, measure).values())
        holds &= bool(difference.high is not None and difference.high < 0)
        said.append(f"{METHODS[name].label}: falls by {theirs[0] - theirs[1]:.3g}, difference {_shown(difference)}")
    return holds, f"Falls by {mine[0] - mine[1]:.3g}; " + "; ".join(said) + "."


def _spread(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    own = _deviation(group, measure)
    theirs = {name: _deviation(baseline, measure) for name, baseline in _baselines(experiment, group)}
    said = ", ".join(f"{METHODS[name].label} {value:.3g}" for name, value in theirs.items())
    return all(own < value for value in theirs.values()), f"{own:.3g}; {said}."


def _worth(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    mine = list(_mean(group, measure).values())
    tasks, horizon = {}, 0.0
    for name, baseline in _baselines(experiment, group):
        curve = _mean(baseline, measure)
        tasks[name] = needed(np.array(list(curve)), np.array(list(curve.values())), mine[1])
        horizon = max(horizon, *curve)
    said = (
        f"{METHODS[name].label} {f'more than {horizon:.0f}' if np.isinf(k) else f'{k:.0f}'}"
        for name, k in tasks.items()
    )
    return min(tasks.values()) >= 4, f"{mine[1]:.3g} after one; added tasks to get there: {', '.join(said)}."


def _lowest(chosen: Sequence[np.ndarray], low: float, high: float, enough: float) -> tuple[bool, str]:
    values = np.concatenate(chosen)
    share = float((values <= low + TENTH * (high - low)).mean())
    return (
        share >= enough,
        f"{share:.0%} of {len(values)} choices; median {np.median(values):.3g} in [{low:g}, {high:g}].",
    )


def _span(chosen: Sequence[np.ndarray], low: float, high: float) -> tuple[bool, str]:
    spans = [np.ptp(values) / (high - low) for values in chosen if len(values)]
    return float(np.mean(spans)) >= 0.8, f"{np.mean(spans):.0%} of the interval on average over {len(spans)} seeds."


def _to_oracle(experiment: ExperimentRuns, group: Group, measure: str) -> tuple[bool, str]:
    oracle, uniform = experiment.baseline(group, "oracle"), experiment.baseline(group, "uni")
    if oracle is None or uniform is None:
        raise _NotTestableError("it needs runs of oracle and uni")
    level = float(next(iter(_mean(oracle, measure).values())))
    counts = []
    for member in (group, uniform):
        curve = _mean(member, measure)
        values = np.array(list(curve.values()))
        counts.append(needed(np.array(list(curve)), values, level + 0.1 * (values[0] - level)))
    said = ["never" if np.isinf(count) else f"{count:.0f} added tasks" for count in counts]
    return counts[0] < counts[1], f"{said[0]}; UNI {said[1]}; oracle at {level:.3g}."


def _baselines(experiment: ExperimentRuns, group: Group) -> list[tuple[str, Group]]:
    found = [(name, experiment.baseline(group, name)) for name in baselines()]
    if missing := [name for name, baseline in found if baseline is None]:
        raise _NotTestableError(f"there are no runs of {' and '.join(missing)} to compare with")
    return [(name, baseline) for name, baseline in found if baseline is not None]


def _difference(group: Group, baseline: Group, measure: str, at: int | None) -> Difference:
    difference = paired(group.curves, baseline.curves, measure, at)
    if difference is None or difference.seeds < FEWEST:
        seeds = 0 if difference is None else difference.seeds
        raise _NotTestableError(f"{seeds} seeds are finished in both {group.label} and {baseline.label}")
    return difference


def _mean(group: Group, measure: str) -> dict[float, float]:
    """The mean curve by added tasks."""
    return dict(zip(group.curves.added.tolist(), group.curves.mean(measure)[0].tolist(), strict=True))


def _deviation(group: Group, measure: str) -> float:
    rows = list(group.curves.finished().values())
    if len(rows) < FEWEST:
        raise _NotTestableError(f"{group.label} has {len(rows)} finished seeds; at least {FEWEST} are needed")
    return float(group.curves.values[measure][rows][:, 1:].std(axis=0, ddof=1).mean())


def _parameter(experiment: ExperimentRuns, group: Group, name: str) -> list[np.ndarray]:
    """The chosen values of a task parameter, by run."""
    column = list(experiment.config["domain"]["box"]).index(name)
    return [
        np.array([added.task[column] for record in run.records[1:] for added in record.added]) for run in group.runs
    ]


def _descriptor(group: Group, column: int) -> list[np.ndarray]:
    return [
        np.array([added.descriptor[column] for record in run.records[1:] for added in record.added])
        for run in group.runs
    ]


def _shown(difference: Difference) -> str:
    if difference.low is None or difference.high is None:
        return f"{difference.mean:+.3g}"
    return f"{difference.mean:+.3g} [{difference.low:+.3g}, {difference.high:+.3g}]"


def _plain(name: str) -> str:
    return name.replace("_", " ")
