"""Tables of the page about the paper: rows of named texts, from the report's tree.

`entries` are experiments of `distpaml.report.payload`, by name and preset.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distpaml.catalogue import HEADLINES, MEASURES, baselines
from distpaml.report.claims import NOT_TESTABLE, SUPPORTED

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Entry = dict[str, Any]
Entries = Mapping[tuple[str, str], Entry]
Row = dict[str, str]
CLAIMS = {"full": 1, "partial": 2, "noisy": 3, "image": 4}
"""Which of the paper's claims is about an experiment, by its kind of descriptor."""
SIDES: dict[str, Sequence[str | None]] = {
    "fair measure": HEADLINES[:2],
    "paper's measure": HEADLINES[2:],
    "choices": (None,),
}
"""What a test is about, by its measure."""


def compared(entries: Entries, measure: str) -> list[Row]:
    """Every method's errors, and its paired differences to the baselines with interval and sign test."""
    rows = []
    for (experiment, preset), entry in entries.items():
        for row in entry["table"][measure]:
            differences = {f"− {name}": _difference(row.get(f"area-{name}"), row["seeds"]) for name in baselines()}
            rows.append(
                {
                    "experiment": experiment,
                    "preset": preset,
                    "method": entry["groups"][row["group"]]["label"],
                    "seeds": str(row["seeds"]),
                    "mean over rounds": _plus_minus(row["area"]),
                    "last round": _plus_minus(row["last"]),
                    **differences,
                }
            )
    return rows


def together(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """All experiments of a preset at once, from `payload`'s rows."""
    return [
        {
            "method": row["method"],
            "against": row["baseline"],
            "measure": MEASURES[row["measure"]].label,
            "experiments": f"{row['experiments']:.0f}",
            "pairs": f"{row['seeds']:.0f}",
            "difference": _of_three(row["middle"], "+.3f"),
            "probability of improvement": _of_three(row["better"], ".2f"),
            "p": _chance(row["p"], 4),
        }
        for row in rows
    ]


def by_round(rounds: "DataFrame", measure: str, shown: Sequence[int], within: Sequence[str]) -> list[Row]:
    """Means after so many rounds, over the runs that got as far as any of their method."""
    finished = rounds[_all_rounds(rounds, within)]
    seeds = finished.groupby(list(within))["seed"].nunique()
    means = finished[finished["round"].isin(shown)].pivot_table(measure, list(within), "round")
    return [
        dict(zip(within, names if isinstance(names, tuple) else (names,), strict=True))
        | {"seeds": str(seeds[names])}
        | {str(number): "" if value != value else f"{value:.3f}" for number, value in row.items()}
        for names, row in means.iterrows()
    ]


def cost(rounds: "DataFrame") -> list[Row]:
    """Seconds of finished runs on one core. Methods differ in them, so the core-hours are Σ_m runs(m) median(m)."""
    keys = ["experiment", "preset", "method"]
    rounds = rounds[_all_rounds(rounds, keys)]
    runs = rounds.filter(like="seconds.").sum(axis=1).groupby([rounds[key] for key in [*keys, "run"]]).sum()
    methods = runs.groupby(keys).agg(["count", "median", "max", "sum"])
    methods["hours"] = methods["count"] * methods["median"] / 3600.0
    rows = [
        {
            "experiment": experiment,
            "preset": preset,
            "runs": f"{part['count'].sum():.0f}",
            "seconds, median": ", ".join(f"{names[-1]} {value:.0f}" for names, value in part["median"].items()),
            "slowest": f"{part['max'].max():.0f}",
            "core-hours by the medians": f"{part['hours'].sum():.2f}",
            "hours it took": f"{part['sum'].sum() / 3600:.2f}",
        }
        for (experiment, preset), part in methods.groupby(keys[:2])
    ]
    total = {
        "experiment": "all",
        "runs": f"{methods['count'].sum():.0f}",
        "core-hours by the medians": f"{methods['hours'].sum():.2f}",
        "hours it took": f"{methods['sum'].sum() / 3600:.2f}",
    }
    return [*rows, dict.fromkeys(rows[0], "") | total]


def _all_rounds(rounds: "DataFrame", within: Sequence[str]) -> "Series":
    """Whether a row is of a run that got as far as any of its method."""
    last = rounds.groupby([*within, "run"])["round"].transform("max")
    return last == rounds.groupby(list(within))["round"].transform("max")


def tests(entries: Entries) -> list[dict[str, Any]]:
    """Every test of a claim, with the claim's number, the experiment and the preset."""
    return [
        {"about": CLAIMS[entry["facts"]["descriptor"]], "experiment": experiment, "preset": preset, **claim}
        for (experiment, preset), entry in entries.items()
        for claim in entry["claims"]
    ]


def verdicts(found: Sequence[dict[str, Any]]) -> list[Row]:
    """One row per claim, preset and method: supported if all its tests are, in part if some are."""
    rows = []
    for about, preset, method in sorted({(test["about"], test["preset"], test["method"]) for test in found}):
        mine = [t for t in found if (t["about"], t["preset"], t["method"]) == (about, preset, method)]
        row = {"claim": str(about), "preset": preset, "method": method}
        row["experiments"] = ", ".join(dict.fromkeys(test["experiment"] for test in mine))
        for side, measures in SIDES.items():
            row[side] = _verdict([test["verdict"] for test in mine if test["measure"] in measures])
        rows.append(row)
    return rows


def _verdict(tests: Sequence[str]) -> str:
    testable = [test for test in tests if test != NOT_TESTABLE]
    if not testable:
        return NOT_TESTABLE if tests else ""
    holds = testable.count(SUPPORTED)
    said = "supported" if holds == len(tests) else "in part" if holds else "not supported"
    lacking = f", {len(tests) - len(testable)} not testable" if len(testable) < len(tests) else ""
    return f"{said}: {holds} of {len(testable)}{lacking}"


def _plus_minus(pair: Sequence[float | None]) -> str:
    mean, error = pair
    return "" if mean is None else f"{mean:.3f}" + ("" if error is None else f" ± {error:.3f}")


def _difference(part: dict[str, Any] | None, seeds: int) -> str:
    """Mean, interval and p, and the number of seeds if it is not that of the row."""
    if part is None:
        return ""
    few = "" if part["seeds"] == seeds else f", {part['seeds']} seeds"
    if part["low"] is None:
        return f"{part['mean']:+.3f}{few}"
    return f"{part['mean']:+.3f} [{part['low']:+.3f}, {part['high']:+.3f}], p {_chance(part['p'], 3, '= ')}{few}"


def _of_three(values: Sequence[float | None], form: str) -> str:
    """A value and its interval, if there is one."""
    first, *interval = (f"{value:{form}}" for value in values if value is not None)
    return f"{first} [{', '.join(interval)}]" if interval else first


def _chance(p: float, digits: int, sign: str = "") -> str:
    """Never zero."""
    least = 10.0**-digits
    return f"< {least:.{digits}f}" if p < least else f"{sign}{p:.{digits}f}"
