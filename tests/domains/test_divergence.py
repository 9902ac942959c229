"""Why the cart-double-pole and short cart-poles take two steps of the integrator per control, others one."""

import numpy as np
import pytest

from distpaml import seeds
from distpaml.data.designs import grid
from distpaml.domains import CartDoublePole, CartPole, CartPoleLength, ShortCartPole
from distpaml.domains.box import bounds
from distpaml.domains.mujoco import rollout
from distpaml.domains.signals import default_signals


class OneStep(CartDoublePole):
    substeps = 1


class OneStepShort(ShortCartPole):
    substeps = 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "cls, diverges",
    [
        (OneStep, True),
        (CartDoublePole, False),
        (CartPole, False),
        (OneStepShort, True),
        (ShortCartPole, False),
        (CartPoleLength, False),
    ],
)
def test_runs_that_diverge_on_the_papers_grid_over_100_seeds(cls, diverges):
    domain = cls()
    models = [domain.model(task, visual=False) for task in grid(*bounds(domain.box), 10)]
    diverged = 0
    for seed in range(100):
        starts = np.stack([domain.start(seeds.rng(seed, "start", i)) for i in range(len(models))])
        signal = default_signals(domain, seeds.rng(seed, "controls"))
        controls = np.repeat(signal[None], len(models), axis=0)
        diverged += np.count_nonzero(rollout(models, starts, controls, substeps=domain.substeps)[1])
    print(f"\n{cls.__name__}: {diverged} of {100 * len(models)} runs diverge")
    assert (diverged > 0) == diverges
