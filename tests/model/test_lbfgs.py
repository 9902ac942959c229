"""The optimiser: bounds, failures, tolerance and budget."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from distpaml.model import lbfgs
from distpaml.model.collapsed import FitError
from distpaml.model.lbfgs import Variable, maximise


def quadratic(p: nn.Parameter, top: list[float], curvature: list[float]) -> torch.Tensor:
    away = p - torch.tensor(top, dtype=p.dtype)
    return 3.0 - 0.5 * (torch.tensor(curvature, dtype=p.dtype) * away.square()).sum()


def parameter(*values: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values, dtype=torch.float64))


def test_the_top_of_a_quadratic_within_bounds():
    free, boxed = parameter(5.0, -3.0), parameter(0.0)

    def objective():
        return quadratic(free, [1.0, 2.0], [1.0, 50.0]) + quadratic(boxed, [4.0], [1.0])

    values = maximise(objective, [Variable(free), Variable(boxed, (-1.0, 1.5))], 100, 0.0)
    assert free.tolist() == pytest.approx([1.0, 2.0], abs=1e-5)
    assert boxed.item() == 1.5
    assert max(values) == pytest.approx(6.0 - 0.5 * 2.5**2)
    assert objective().item() == max(values)


def test_scales_change_the_way_and_not_the_top():
    """A quadratic that is 1e8 times as steep one way as the other, in units in which it is round, takes one step."""
    curvature, values = [1e4, 1e-4], {}
    for scale in (1.0, torch.tensor([1e-2, 1e2], dtype=torch.float64)):
        p = parameter(5.0, -3.0)
        values[len(values)] = maximise(
            lambda p=p: quadratic(p, [1.0, 2.0], curvature), [Variable(p, (-9.0, 9.0), scale)], 60, 0.0
        )
        assert p.tolist() == pytest.approx([1.0, 2.0], rel=1e-2)
    assert len(values[1]) < 0.5 * len(values[0])


def test_where_the_objective_fails_it_ends_at_the_best_point():
    """The top, at 3, cannot be evaluated from 2 on."""
    p, failures = parameter(0.0), []

    def objective():
        if p.item() > 2.0:
            failures.append(p.item())
            raise FitError("too far")
        return quadratic(p, [3.0], [1.0])

    values = maximise(objective, [Variable(p)], 60, 1e-9)
    assert failures and float("-inf") in values
    assert p.item() <= 2.0
    assert objective().item() == max(values)
    assert p.item() > 1.5


def test_the_result_is_the_best_point_and_not_the_last(monkeypatch):
    def wandering(evaluate, start, **options):
        for value in (1.0, 2.9, 7.0):
            evaluate(np.array([value]))
        return SimpleNamespace(status=0)

    monkeypatch.setattr(lbfgs, "minimize", wandering)
    p = parameter(0.0)
    values = maximise(lambda: quadratic(p, [3.0], [1.0]), [Variable(p)], 10, 0.0)
    assert len(values) == 3 and p.item() == 2.9


def test_values_that_are_not_numbers_count_as_failures():
    p = parameter(0.5)

    def objective():
        return quadratic(p, [3.0], [1.0]) + 0.0 * (1.0 - p.sum()).log()

    values = maximise(objective, [Variable(p)], 40, 1e-9)
    assert float("-inf") in values and not any(value != value for value in values)
    assert p.item() < 1.0 and objective().isfinite()
    assert objective().item() == max(values)


def test_an_objective_that_fails_at_once_says_so():
    def objective():
        raise FitError("not from here")

    with pytest.raises(FitError, match="not from here"):
        maximise(objective, [Variable(parameter(0.0))], 10, 0.0)


def rosenbrock(p: nn.Parameter) -> torch.Tensor:
    return -((1.0 - p[0]).square() + 100.0 * (p[1] - p[0].square()).square())


@pytest.mark.parametrize("budget", [1, 2, 7, 20])
def test_the_budget_is_kept(budget):
    """But for a line search that has begun."""
    p = parameter(-1.2, 1.0)
    values = maximise(lambda: rosenbrock(p), [Variable(p)], budget, 0.0)
    assert len(values) == budget
    assert rosenbrock(p).item() == max(values)


def test_it_stops_when_the_gain_is_below_the_tolerance():
    runs = []
    for tolerance in (0.0, 0.05):
        p = nn.Parameter(torch.full((30,), 2.0, dtype=torch.float64))
        scale = torch.logspace(0, 5, 30, dtype=torch.float64)
        values = maximise(lambda p=p, s=scale: -(s * (p.square() + p.pow(4))).sum(), [Variable(p)], 500, tolerance)
        runs.append((len(values), max(values)))
    (long, best), (short, good) = runs
    assert short < long
    assert best - good < 10.0
