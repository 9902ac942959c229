"""Starts that compete: what each of them is, and that no latent dimension is lost for good."""

import numpy as np
import pytest
import torch
from cart_pole_data import cart_poles

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.meta_model import MetaModel, fit_model
from distpaml.model.starts import Start, open_dimensions, starts

ON_A_LINE = np.array([[1.0, 0.6], [2.0, 1.0], [3.0, 1.4]])
"""Masses and lengths of poles that one latent dimension explains."""
AROUND = np.array([[0.8, 1.6], [4.0, 0.7], [4.5, 1.8]])
SMALL = ModelConfig(inducing=60)


def spread(model: MetaModel) -> np.ndarray:
    """How many length-scales the embeddings spread over, in each latent dimension."""
    return (model.embeddings.mean.std(0, correction=0) * model.posterior.rate_h).sort().values.numpy()


def close(gp: LatentGP, dimension: int) -> None:
    """As automatic relevance determination does."""
    with torch.no_grad():
        gp.kernel.base_kernel.raw_lengthscale[0, dimension - 2] = 8.0


def names(known: list[Start], fresh: list[Start]) -> tuple[list[str], list[str]]:
    return [start.name for start in known], [start.name for start in fresh]


def test_a_first_fit_starts_from_scratch(problem: tuple[LatentGP, TrainingSet]):
    known, found = starts(problem[1], None, task_noise=True, restarts=3, seed=0)
    assert known == []
    assert [start.name for start in found] == ["scratch", "random-1", "random-2"]
    assert all(start.gp.task_noise for start in found)
    assert len({start.gp.mean.sum().item() for start in found}) == 3


def test_a_later_fit_starts_from_the_last_model_and_from_scratch(problem: tuple[LatentGP, TrainingSet]):
    gp, data = problem
    assert names(*starts(data, gp, True, 3, 0)) == (["last"], ["scratch"])
    close(gp, 1)
    assert names(*starts(data, gp, True, 3, 0)) == (["last", "opened"], ["scratch"])


def test_an_opened_dimension_shows_what_the_others_do_not():
    """The first latent is the first descriptor, so the second becomes the second one, and its length-scale is new."""
    first, second = torch.tensor([[-1.0, 0.0, 1.0, 0.0], [2.0, -4.0, 2.0, 0.0]], dtype=torch.float64)
    descriptors = torch.stack([first, second], -1)
    gp = LatentGP(2, 2, torch.stack([3.0 * first, torch.zeros_like(first)], -1), descriptors)
    close(gp, 1)
    opened = open_dimensions(gp, descriptors, torch.Generator().manual_seed(0))
    assert opened is not None
    assert torch.equal(opened.mean[:, 0], gp.mean[:, 0])
    assert torch.corrcoef(torch.stack([opened.mean[:, 1], second]))[0, 1].abs() > 0.98
    assert opened.kernel.base_kernel.raw_lengthscale[0, -1] == LatentGP.LATENT_SCALE
    assert gp.kernel.base_kernel.raw_lengthscale[0, -1] == 8.0, "the last model is untouched"
    assert open_dimensions(opened, descriptors, torch.Generator().manual_seed(0)) is None


@pytest.mark.parametrize("preset", ["distpaml", "paper"])
def test_a_dimension_that_the_first_tasks_do_not_need_is_there_when_later_ones_do(preset):
    """Three tasks on a line, then three around it; the loop's model is as good as a fit from scratch to all six."""
    model = ModelConfig(preset=preset, inducing=60)
    fit = FitConfig(settling=10, evaluations=40, restarts=2)
    line, around = cart_poles(ON_A_LINE, 20), cart_poles(AROUND, 20)
    last = fit_model(line, model, fit, seed=0)
    close(last.gp, int(spread_order(last)[0]))
    both = line.append(around)
    continued, fresh = fit_model(both, model, fit, seed=1, last=last), fit_model(both, model, fit, seed=1)
    assert continued.start in ("last", "opened", "scratch")
    assert spread(continued)[0] > 0.05 * spread(continued)[1]
    per_number = both.targets.size
    assert continued.terms["elbo"] / per_number > fresh.terms["elbo"] / per_number - 0.05


def spread_order(model: MetaModel) -> np.ndarray:
    """Latent dimensions from the one that matters least."""
    return (model.embeddings.mean.std(0, correction=0) * model.posterior.rate_h).argsort().numpy()
