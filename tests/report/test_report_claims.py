"""Each verdict on made-up runs whose answer is plain."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from distpaml.catalogue import ERRORS, HEADLINES, MEASURES
from distpaml.report.claims import claims
from distpaml.report.collect import Collection, Run
from distpaml.report.groups import experiments
from distpaml.rounds import Added, Record

BOX = {"pole_mass": [0.5, 5.0], "pole_length": [0.5, 2.0]}


def run(method, seed, errors, kind="full", tasks=None, descriptors=None, **descriptor) -> Run:
    """A run with these errors by round; its chosen tasks and descriptors are given by round from 1 on."""
    records = []
    for number, error in enumerate(errors):
        task = (1.0, 1.0) if tasks is None or not number else tasks[number - 1]
        shown = task if descriptors is None or not number else descriptors[number - 1]
        measures = {name: error if name in ERRORS else 0.95 for name in MEASURES}
        added = (Added(descriptor=shown, task=task),) * (3 if number == 0 else 1)
        records.append(
            Record(
                round=number,
                tasks=3 + number,
                added=added,
                candidates=None,
                shots={},
                terms={},
                start="last",
                seconds={},
                **measures,
            )
        )
    config = {
        "name": "made-up", "method": method, "seed": seed, "rounds": len(errors) - 1, "initial": 3,
        "domain": {"box": BOX}, "descriptor": {"kind": kind, "hidden": [], "superfluous": {}} | descriptor,
    }  # fmt: skip
    return Run(Path(f"{method}-{seed}"), config, records)


def verdicts(runs) -> dict:
    (experiment,) = experiments(Collection(runs=runs))
    return {(verdict.claim, verdict.measure): verdict for verdict in claims(experiment)}


def family(paml, uni, lhs, seeds=4, noise=(0.01, 0.05, 0.05), **more) -> list[Run]:
    """Curves with noise of their own, the same initial error for all methods of a seed."""
    rng = np.random.default_rng(0)
    runs = []
    for seed in range(seeds):
        start = 1.0 + 0.1 * rng.standard_normal()
        for method, curve, spread in zip(("paml", "uni", "lhs"), (paml, uni, lhs), noise, strict=True):
            errors = [start, *(value + spread * rng.standard_normal() for value in curve)]
            runs.append(run(method, seed, errors, **more))
    return runs


def test_claims_on_full_descriptors():
    better = verdicts(family([0.3, 0.2, 0.1], [0.8, 0.6, 0.5], [0.7, 0.5, 0.4]))
    assert len(better) == 3 * len(HEADLINES)
    assert {verdict.verdict for verdict in better.values()} == {"supported"}
    below = better["Error below UNI and LHS through the horizon", "nll_paper"]
    assert "lower in 3 of 3 rounds" in below.number and "UNI: -0." in below.number
    worse = verdicts(family([0.9, 0.7, 0.6], [0.8, 0.6, 0.5], [0.7, 0.5, 0.4], noise=(0.1, 0.02, 0.02)))
    assert {verdict.verdict for verdict in worse.values()} == {"not supported"}
    once = verdicts(family([0.3, 0.2, 0.9], [0.8, 0.6, 0.5], [0.7, 0.5, 0.4]))
    assert once["Error below UNI and LHS through the horizon", "rmse"].verdict == "not supported"
    assert once["Steep first drop", "rmse"].verdict == "supported"


def test_what_these_data_lack_is_said():
    two = verdicts(family([0.3], [0.8], [0.7], seeds=2))
    assert {verdict.verdict for verdict in two.values()} == {"not testable"}
    assert two["Steep first drop", "rmse"].number == "2 finished seeds; at least 3 are needed."
    alone = verdicts([one for one in family([0.3], [0.8], [0.7]) if one.method != "lhs"])
    assert alone["Steep first drop", "rmse"].number == "there are no runs of lhs to compare with."
    still = verdicts(family([], [], []))
    assert still["Steep first drop", "rmse"].number == "no task was added."


def test_methods_are_compared_over_the_seeds_that_all_have_finished():
    """Five more seeds of the baselines, on which they are far better, change nothing."""
    curves = [0.3, 0.2, 0.1], [0.8, 0.6, 0.5], [0.7, 0.5, 0.4]
    few = family(*curves, seeds=5)
    more = [run(method, seed, [1.0, 0.01, 0.01, 0.01]) for method in ("uni", "lhs") for seed in range(5, 10)]
    alone, among = verdicts(few), verdicts(few + more)
    assert among == alone and "5 seeds" in among["Smaller spread over seeds", "rmse"].number
    unfinished = [run("paml", seed, [1.0, 0.01, 0.01, 0.01]) for seed in range(5, 10)]
    unfinished = [replace(one, records=one.records[:2]) for one in unfinished]
    assert verdicts(few + more + unfinished) == alone
    apart = [run("lhs", seed, [1.0, 0.8, 0.6, 0.5]) for seed in range(5, 10)]
    lacking = verdicts([one for one in few if one.method != "lhs"] + apart)["Steep first drop", "rmse"]
    assert lacking.number == "0 seeds are finished in all of paml, uni, lhs; 3 are needed."


def test_numbers_without_a_formula_for_their_error_have_a_range_over_the_seeds():
    spread = verdicts(family([0.3] * 3, [0.8] * 3, [0.7] * 3, seeds=10, noise=(0.01, 0.05, 0.01)))
    said = spread["Smaller spread over seeds", "rmse"].number
    low, high = (float(part) for part in said.split("UNI")[1].split("[")[1].split("]")[0].split(", "))
    assert low < 0.2 < high < 0.5  # the true ratio is a fifth
    low, high = (float(part) for part in said.split("LHS")[1].split("[")[1].split("]")[0].split(", "))
    assert low < 1.0 < high  # and none here


def test_claims_on_partial_descriptors():
    slow = [0.9, 0.8, 0.7, 0.6, 0.29, 0.2]
    short = [(1.0, 0.55), (1.0, 0.51), (1.0, 1.9), (1.0, 0.6), (1.0, 0.6), (1.0, 0.5)]
    about = {"kind": "partial", "hidden": ["pole_mass"], "noise": (0.0, 0.0, 0.0)}
    found = verdicts(family([0.3] * 6, slow, slow, tasks=short, **about))
    worth = found["One added task is worth about five of the baselines'", "rmse"]
    assert worth.verdict == "supported"
    assert worth.number == "0.3 after one; added tasks to get there: UNI 5 [5, 5], LHS 5 [5, 5]; 4 seeds."
    lengths = found["Repeated choices of a short pole length", None]
    assert lengths.verdict == "supported" and lengths.number.startswith("83% [83%, 83%] of 24 choices of 4 seeds")
    quick = verdicts(family([0.3] * 6, [0.3] * 6, slow, tasks=[(1.0, 1.5)] * 6, **about))
    assert {verdict.verdict for verdict in quick.values()} == {"not supported"}
    never = verdicts(family([0.1] * 6, slow, slow, tasks=short, **about))
    assert "UNI more than 6" in never["One added task is worth about five of the baselines'", "rmse"].number


def test_claims_on_noisy_descriptors():
    tasks = [(0.6, 0.5), (4.9, 2.0), (2.0, 1.0)]
    near = [(*task, 0.52) for task in tasks]
    about = {"kind": "noisy", "superfluous": {"epsilon": [0.5, 5.0]}, "tasks": tasks}
    found = verdicts(family([0.3] * 3, [0.3] * 3, [0.3] * 3, descriptors=near, **about))
    explored = found["The pole mass is explored", None]
    assert explored.number.startswith("96% [96%, 96%] of the interval on average over 4 seeds (3 uniform draws: 50%)")
    assert len(found) == 3 and {verdict.verdict for verdict in found.values()} == {"supported"}
    far = [(*task, 3.0) for task in tasks]
    found = verdicts(family([0.3] * 3, [0.3] * 3, [0.3] * 3, descriptors=far, **(about | {"tasks": tasks[:1] * 3})))
    assert {verdict.verdict for verdict in found.values()} == {"not supported"}


@pytest.mark.parametrize("paml, verdict", [([0.2, 0.1, 0.1], "supported"), ([0.9, 0.8, 0.7], "not supported")])
def test_claims_on_images(paml, verdict):
    runs = family(paml, [0.6, 0.4, 0.1], [0.6, 0.4, 0.1], kind="image", noise=(0, 0, 0))
    oracle = [run("oracle", seed, [0.1], kind="image") for seed in range(4)]
    found = verdicts(runs + oracle)
    assert {entry.verdict for entry in found.values()} == {verdict}
    counts = {"supported": "2 [2, 2] added tasks; UNI 3 [3, 3]; fewer in 100%", "not supported": "more than 3 [never"}
    assert found["Reaches the oracle's level faster than UNI", "nll"].number.startswith(counts[verdict])
    assert {entry.verdict for entry in verdicts(runs).values()} == {"not testable"}
