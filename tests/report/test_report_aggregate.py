"""Statistics over several experiments, against simulations and against counting."""

import numpy as np
import pytest
from scipy.stats import binom

from distpaml.report import aggregate
from distpaml.report.aggregate import interquartile_mean, probability_of_improvement, sign_test, together, with_interval


def test_the_interquartile_mean_is_that_of_the_middle_half():
    assert interquartile_mean([np.array([100.0, 1.0, 2.0]), np.array([3.0, -100.0, 4.0, 5.0, 6.0])]) == np.mean(
        [2, 3, 4, 5]
    )


def test_one_experiment_with_many_seeds_does_not_decide_the_probability():
    many, few = -np.ones(30), np.ones(3)
    assert probability_of_improvement([many, few]) == 0.5
    assert probability_of_improvement([np.array([-1.0, 0.0, 1.0, -2.0])]) == 0.625


@pytest.mark.parametrize("wins, losses", [(5, 0), (9, 1), (7, 3), (4, 4)])
def test_the_sign_test_counts_outcomes_of_a_coin(wins, losses):
    n = wins + losses
    chances = [binom.pmf(k, n, 0.5) for k in range(n + 1)]
    expected = sum(chance for chance in chances if chance <= chances[wins] * (1 + 1e-9))
    values = np.concatenate([-np.ones(wins), np.ones(losses), np.zeros(2)])
    assert sign_test(values) == pytest.approx(expected)
    assert sign_test(np.zeros(3)) == 1.0


def test_the_interval_holds_the_truth_nearly_as_often_as_it_says(monkeypatch):
    """Three experiments of ten seeds with means of their own and a true interquartile mean known by brute force."""
    monkeypatch.setattr(aggregate, "RESAMPLES", 199)
    rng, means = np.random.default_rng(1), (-0.3, 0.0, 0.2)
    truth = interquartile_mean([mean + 0.5 * rng.standard_normal(400_000) for mean in means])
    hits = 0
    for _ in range(200):
        _, low, high = with_interval(interquartile_mean, [mean + 0.5 * rng.standard_normal(10) for mean in means])
        hits += low <= truth <= high
    assert 0.87 < hits / 200 < 0.99


def test_the_bootstrap_keeps_every_experiment(monkeypatch):
    """Between experiments there is no spread within them: resampling seeds within each changes nothing."""
    found = together([np.full(4, -1.0), np.full(6, 2.0)])
    assert found.middle == (pytest.approx(found.middle[0]),) * 3 and found.better == (0.5, 0.5, 0.5)
    assert (found.experiments, found.seeds) == (2, 10)
    assert np.isnan(together([np.full(4, -1.0), np.full(2, 2.0)]).middle[1:]).all()  # two seeds make no interval


def test_a_report_of_two_experiments_compares_over_both(sweep_made):
    """One row for every method that chooses, baseline and error, where both experiments have one group of each."""
    from distpaml.report.collect import collect
    from distpaml.report.payload import payload

    tree = payload(collect([sweep_made]))
    rows = {(row["method"], row["baseline"], row["measure"]): row for row in tree["together"]}
    assert {key[:2] for key in rows} == {("paml", "uni")}
    groups = [{group["method"]: group for group in entry["groups"]} for entry in tree["experiments"]]
    differences = []
    for found in groups:
        mine, theirs = (np.array(found[method]["measures"]["rmse"]["seeds"]) for method in ("paml", "uni"))
        steps = np.array(found["uni"]["added"])
        areas = [np.trapezoid(values, steps, axis=1) / steps[-1] for values in (mine, theirs)]
        differences.append((areas[0] - areas[1]) / areas[1].mean())
    row = rows["paml", "uni", "rmse"]
    assert (row["experiments"], row["seeds"]) == (2, sum(map(len, differences)))
    assert row["middle"][0] == pytest.approx(float(interquartile_mean(differences)), rel=1e-4)
