"""Trajectories of the learned dynamics, many steps long, by samples.

    h ~ q(h) once per trajectory,    x_{t+1} = x_t + delta_t,    delta_t ~ N(mean(x_t, u_t, h), variance(x_t, u_t, h))

mean and variance are those of the functions, without the observations' noise. Each step draws its delta anew, as if
the functions at two steps were independent given h: in truth errors along one trajectory are correlated, so the
spread is a little too small where a trajectory stays in one place.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from distpaml.data import model_inputs
from distpaml.model.device import normal
from distpaml.model.expectations import rbf
from distpaml.model.meta_model import MetaModel
from distpaml.model.posterior import Latents, Posterior
from distpaml.types import Array


@torch.no_grad()
def rollout(
    model: MetaModel, start: Array, controls: Array, latents: Latents, angles: Sequence[int], samples: int, seed: int
) -> Array:
    """Sampled states [S, T + 1, D] of one task from `start` [D] under `controls` [T, U].

    `latents` is the q(h) of this one task, and `angles` are the places of the angles among the states.
    """
    if len(latents) != 1:
        raise ValueError(f"a rollout is of one task, but there are latents of {len(latents)}")
    generator = torch.Generator().manual_seed(seed)
    like = latents.mean
    eps = normal(samples, like.shape[-1], like=like, generator=generator)
    h = latents.mean + latents.variance.sqrt() * eps  # [S, Q]
    states = [np.tile(start, (samples, 1))]
    for control in controls:
        inputs = model_inputs(states[-1], np.tile(control, (samples, 1)), angles)
        mean, variance = known_latent(model.posterior, torch.as_tensor(model.inputs.apply(inputs)).to(like), h)
        delta = mean + variance.sqrt() * normal(*mean.shape, like=like, generator=generator)
        states.append(states[-1] + model.targets.undo(delta.cpu().numpy()))
    return np.stack(states, axis=1)


def known_latent(posterior: Posterior, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance [P, D] of the functions at inputs [P, dx] and latents [P, Q], in standardised units."""
    k = rbf(x * posterior.rate_x, posterior.zx) * rbf(h * posterior.rate_h, posterior.zh)  # [P, L]
    phi = torch.linalg.solve_triangular(posterior.chol, k.T, upper=False)  # [L, P]
    known = torch.linalg.solve_triangular(posterior.root, phi.expand(len(posterior.root), -1, -1), upper=False)
    variance = posterior.amplitude * ((1.0 - phi.square().sum(0)).clamp(min=0.0) + known.square().sum(-2))
    return k @ posterior.alpha, variance.T
