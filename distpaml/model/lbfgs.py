"""L-BFGS on the parameters of a module, within bounds, within a budget, and never ending in a NaN.

scipy's L-BFGS-B searches inside a box of sane values. A point where the bound cannot be evaluated counts as very
bad, so that the line search backs off; if the search gives up there, it starts afresh from the best point so far.
L-BFGS begins as if all variables were equally stiff; each is divided by its `scale`, the step that changes the
objective by about one, so that they nearly are.
Meanwhile scipy's own BLAS has one thread: its idle threads spin, and would take half of a core from torch.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn

from distpaml.model.collapsed import FitError

MEMORY = 20
"""Pairs of steps and gradients that approximate the curvature."""

Box = tuple[float | None, float | None]


class Variable(NamedTuple):
    """Something to optimise over, within a box; `scale` is a number or has the parameter's shape."""

    parameter: nn.Parameter
    box: Box = (None, None)
    scale: Tensor | float = 1.0


class _SpentError(Exception):
    """Raised when the evaluation budget is spent."""


def maximise(
    objective: Callable[[], Tensor], variables: Sequence[Variable], budget: int, tolerance: float
) -> list[float]:
    """Maximise over `variables` in place; the values seen, one per evaluation.

    Ends after `budget` evaluations, or when ten iterations together gain less than ten times `tolerance`.
    """
    parameters = [variable.parameter for variable in variables]
    sizes = [p.numel() for p in parameters]
    scale = _flat([torch.as_tensor(v.scale).expand_as(v.parameter) for v in variables])
    bounds = np.array([v.box for v, size in zip(variables, sizes, strict=True) for _ in range(size)], dtype=float)
    bounds = np.where(np.isnan(bounds), (-np.inf, np.inf), bounds) / scale[:, None]
    values: list[float] = []
    best_value, best = -np.inf, _flat(parameters) / scale

    def assign(vector: np.ndarray) -> None:
        parts = torch.as_tensor(vector * scale).split(sizes)
        with torch.no_grad():
            for p, part in zip(parameters, parts, strict=True):
                p.copy_(part.view(p.shape))

    def evaluate(vector: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best_value, best
        if len(values) >= budget:
            raise _SpentError
        assign(vector)
        for p in parameters:
            p.grad = None
        try:
            value = objective()
            value.backward()
            gradient = _flat([torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]) * scale
            if not (np.isfinite(value.item()) and np.isfinite(gradient).all()):
                raise FitError("The bound is not finite.")
        except FitError:
            if not values:
                raise
            values.append(-np.inf)
            return abs(best_value) * 10.0 + 1e6, np.zeros_like(vector)
        values.append(value.item())
        if value.item() > best_value:
            best_value, best = value.item(), np.array(vector)
        return -value.item(), -gradient

    recent: list[float] = []

    def stop_when_flat(intermediate_result: object) -> None:
        recent.append(best_value)
        if len(recent) > 10 and recent[-1] - recent[-11] < 10.0 * tolerance:
            raise StopIteration

    with suppress(_SpentError), ThreadpoolController().select(internal_api="openblas").limit(limits=1):
        while len(values) < budget:
            begun, before = len(values), best_value
            result = minimize(
                evaluate, best, jac=True, method="L-BFGS-B", bounds=bounds, callback=stop_when_flat,
                options={"maxfun": budget + 1, "maxiter": budget, "maxcor": MEMORY, "ftol": 0.0, "gtol": 1e-6},
            )  # fmt: skip
            abnormal = result.status == 2 and len(values) - begun > 1
            if not abnormal or best_value - before < tolerance:
                break
    assign(best)
    return values


def _flat(tensors: Sequence[Tensor]) -> np.ndarray:
    return np.concatenate([t.detach().cpu().double().reshape(-1).numpy() for t in tensors])
