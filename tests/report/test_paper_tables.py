"""Tables of the page about the paper, from made-up rows whose answer is plain."""

import pandas as pd

from distpaml.report import paper_tables
from distpaml.report.claims import NOT_SUPPORTED, NOT_TESTABLE, SUPPORTED


def check(verdict, measure="rmse", method="paml", about=1, experiment="cartpole"):
    return {
        "about": about,
        "preset": "paper",
        "method": method,
        "experiment": experiment,
        "measure": measure,
        "verdict": verdict,
    }


def test_a_claim_is_supported_if_all_of_its_tests_are():
    found = [
        check(SUPPORTED),
        check(SUPPORTED, "nll"),
        check(SUPPORTED, "rmse_paper"),
        check(NOT_SUPPORTED, "nll_paper"),
    ]
    (row,) = paper_tables.verdicts(found)
    assert (row["fair measure"], row["paper's measure"], row["choices"]) == ("supported: 2 of 2", "in part: 1 of 2", "")
    (row,) = paper_tables.verdicts([check(NOT_SUPPORTED), check(NOT_TESTABLE, None)])
    assert (row["fair measure"], row["choices"]) == ("not supported: 0 of 1", "not testable")
    (row,) = paper_tables.verdicts([check(SUPPORTED), check(NOT_TESTABLE, "nll")])
    assert row["fair measure"] == "in part: 1 of 1, 1 not testable"


def test_verdicts_of_one_method_say_nothing_about_another():
    found = [check(SUPPORTED, method="paml-plus"), check(NOT_SUPPORTED), check(SUPPORTED, experiment="pendubot")]
    found.append(check(SUPPORTED, about=4, experiment="cartpole_images"))
    assert [(row["claim"], row["method"], row["fair measure"]) for row in paper_tables.verdicts(found)] == [
        ("1", "paml", "in part: 1 of 2"),
        ("1", "paml-plus", "supported: 1 of 1"),
        ("4", "paml", "supported: 1 of 1"),
    ]
    assert paper_tables.verdicts(found)[0]["experiments"] == "cartpole, pendubot"


def rounds(**seconds):
    """Runs of two rounds each, but one of an oracle, with these seconds per round by method and seed."""
    return pd.DataFrame(
        [
            {
                "experiment": "cartpole",
                "preset": "paper",
                "method": method,
                "run": f"{method}-{seed}",
                "seed": seed,
                "round": number,
                "rmse": 1.0 + seed + number,
                "seconds.fit": 0.75 * value,
                "seconds.choose": 0.25 * value,
            }
            for method, values in seconds.items()
            for seed, value in enumerate(values)
            for number in range(1 if method == "oracle" else 2)
        ]
    )


def test_the_cost_of_an_oracle_is_not_taken_for_that_of_a_run_with_rounds():
    cartpole, total = paper_tables.cost(rounds(uni=[1800.0, 1800.0, 5400.0], oracle=[36.0, 36.0, 36.0]))
    assert cartpole["seconds, median"] == "oracle 36, uni 3600" and cartpole["slowest"] == "10800"
    assert cartpole["core-hours by the medians"] == "3.03" and cartpole["hours it took"] == "5.03"
    assert total == dict.fromkeys(cartpole, "") | {
        "experiment": "all",
        "runs": "6",
        "core-hours by the medians": "3.03",
        "hours it took": "5.03",
    }


def test_rounds_are_averaged_over_runs_that_are_finished():
    table = rounds(uni=[1.0, 1.0, 1.0], oracle=[1.0])
    table = table[~((table["run"] == "uni-2") & (table["round"] == 1))]
    oracle, uni = paper_tables.by_round(table, "rmse", [0, 1, 7], ["preset", "method"])
    assert uni == {"preset": "paper", "method": "uni", "seeds": "2", "0": "1.500", "1": "2.500"}
    assert oracle == {"preset": "paper", "method": "oracle", "seeds": "1", "0": "1.000", "1": ""}
    assert (
        paper_tables.cost(table)[0]["runs"] == "3"
        and paper_tables.cost(table)[0]["seconds, median"] == "oracle 1, uni 2"
    )
    assert paper_tables.by_round(table, "rmse", [0], ["method"])[1] == {"method": "uni", "seeds": "2", "0": "1.500"}


def test_a_difference_over_fewer_seeds_says_so():
    difference = {"seeds": 5, "mean": -0.1, "low": -0.2, "high": 0.05, "p": 0.0004}
    row = {"group": 0, "seeds": 10, "area": [0.5, 0.01], "last": [0.25, None], "area-uni": difference}
    entry = {"groups": [{"label": "lhs"}], "table": {"rmse": [row]}}
    (shown,) = paper_tables.compared({("cartpole", "paper"): entry}, "rmse")
    assert shown["− uni"] == "-0.100 [-0.200, +0.050], p < 0.001, 5 seeds" and shown["− lhs"] == ""
    assert (shown["mean over rounds"], shown["last round"]) == ("0.500 ± 0.010", "0.250")
    row |= {"seeds": 5, "area-uni": difference | {"p": 0.0625, "low": None, "high": None}}
    assert paper_tables.compared({("cartpole", "paper"): entry}, "rmse")[0]["− uni"] == "-0.100"


def test_no_chance_is_printed_as_zero():
    row = {"method": "paml", "baseline": "uni", "measure": "nll", "experiments": 5, "seeds": 50}
    numbers = {"middle": [-0.1, -0.2, 0.0], "better": [0.9, None, None], "p": 1e-9}
    (shown,) = paper_tables.together([row | numbers])
    assert (shown["difference"], shown["probability of improvement"]) == ("-0.100 [-0.200, +0.000]", "0.90")
    assert shown["p"] == "< 0.0001"
