"""The noise ratio of a task: the best one given its misfit, and the best one for predictions.

With S the misfit of its T D numbers for r = 1 and s the spread of log r a priori, a task has the r of

    max_r  -S / (2 r) - T D/2 log r - (log r)^2 / (2 s^2)

which is in closed form: log r = w(c + log(S s^2/2)) - c with c = T D s^2/2 and w(z) the solution of w + log w = z.
So a task unlike all known ones gets a large r. This r pays for what the posterior does not know, too. Predictions have
that in their variance already, so for them it is found once more, as the r of the largest predictive density:

    sum_td log N(y_td; m_td(n), var_td(n) + r sigma_d^2) - (log r)^2 / (2 s^2)
"""

import torch
from torch import Tensor

from distpaml.model.latent_gp import RATIO_SPREAD

LARGEST, HALVINGS = 20.0, 40
"""Logarithms of noise ratios for predictions are looked for in [-LARGEST, LARGEST], by that many halvings."""


def best_log_ratio(misfit: Tensor, numbers: Tensor) -> Tensor:
    """argmax over log r of -S/(2r) - numbers/2 log r - (log r)^2/(2 s^2) for misfits S, both of any one shape."""
    c = 0.5 * RATIO_SPREAD**2 * numbers
    argument = c + (0.5 * RATIO_SPREAD**2 * misfit).clamp(min=1e-300).log()
    omega = torch.where(argument > 1.0, argument - argument.clamp(min=1.0).log(), (argument - 1.0).exp())
    for _ in range(6):  # Newton's for omega + log omega = argument
        omega = omega * (1.0 + argument - omega.clamp(min=1e-300).log()) / (1.0 + omega)
    return torch.where(numbers > 0, omega - c, 0.0)


def predictive_log_ratio(errors: Tensor, variance: Tensor, noise: Tensor, valid: Tensor) -> Tensor:
    """argmax over log r of sum_td log N(e_td; 0, var_td + r sigma_d^2) - (log r)^2/(2 s^2) [B].

    Squared errors e^2 and variances are [B, T, D], noise is [D]. Found by bisection of the derivative.
    """
    low, high = (errors.new_full((len(errors), 1, 1), side * LARGEST) for side in (-1.0, 1.0))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        own = middle.exp() * noise
        total = variance + own
        slope = 0.5 * (own / total * (errors / total - 1.0) * valid.unsqueeze(-1)).sum((1, 2), keepdim=True)
        rising = slope > middle / RATIO_SPREAD**2
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    return (0.5 * (low + high)).flatten()


def profile(misfit: Tensor, log_ratio: Tensor, numbers: Tensor) -> Tensor:
    """-2 log density of data with misfit S and noise ratio r, without constants."""
    return misfit * (-log_ratio).exp() + numbers * log_ratio + (log_ratio / RATIO_SPREAD).square()
