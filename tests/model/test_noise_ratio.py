"""Noise ratios against a search, and without any data."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from distpaml.model.latent_gp import RATIO_SPREAD
from distpaml.model.noise_ratio import best_log_ratio, predictive_log_ratio


@pytest.mark.parametrize(("misfit", "numbers"), [(0.0, 0), (1e-12, 40), (3.0, 400), (500.0, 396), (4e9, 396), (7.0, 4)])
def test_the_best_noise_ratio_is_that_of_a_search(misfit, numbers):
    def loss(log_ratio):
        return 0.5 * (misfit * np.exp(-log_ratio) + numbers * log_ratio + (log_ratio / RATIO_SPREAD) ** 2)

    found = best_log_ratio(*(torch.tensor(float(v), dtype=torch.float64) for v in (misfit, numbers))).item()
    best = minimize_scalar(loss, bounds=(-60.0, 60.0), method="bounded", options={"xatol": 1e-9}).x
    assert found == pytest.approx(best, abs=1e-4)


def test_a_task_without_data_has_the_noise_of_a_typical_one(fitted_with_task_noise):
    zeros = torch.zeros(2, 5, 4, dtype=torch.float64)
    none = torch.zeros(2, 5, dtype=torch.bool)
    found = predictive_log_ratio(zeros, zeros + 1.0, fitted_with_task_noise.posterior.noise, none)
    assert found.tolist() == pytest.approx([0.0, 0.0], abs=1e-9)
