"""A small real problem: four cart-poles, 20 states each, and a model of them with 60 inducing points."""

import pytest
import torch
from cart_pole_data import TASKS, cart_poles
from dense import double

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.data import Dataset
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.meta_model import MetaModel, fit_model


@pytest.fixture(autouse=True)
def _same_numbers_whatever_ran_before() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def cartpole_data() -> Dataset:
    return cart_poles(TASKS, 20)


@pytest.fixture(scope="session")
def small_config() -> ModelConfig:
    return ModelConfig(latent=2, inducing=60, noise="shared")


@pytest.fixture(scope="session")
def fitted(cartpole_data: Dataset, small_config: ModelConfig) -> MetaModel:
    """The collapsed fit."""
    return fit_model(cartpole_data, small_config, FitConfig(evaluations=100, restarts=1), seed=0)


@pytest.fixture(scope="session")
def fitted_with_task_noise(cartpole_data: Dataset, small_config: ModelConfig) -> MetaModel:
    """The collapsed fit with a noise level for every task."""
    model = small_config.model_copy(update={"noise": "task"})
    return fit_model(cartpole_data, model, FitConfig(evaluations=100, restarts=1), seed=0)


@pytest.fixture
def problem() -> tuple[LatentGP, TrainingSet]:
    """Three made-up tasks of 3, 5 and 4 points, dx = 2, D = 2, Q = 2, and a model with 6 inducing points, unfitted."""
    generator = torch.Generator().manual_seed(0)
    counts = [3, 5, 4]
    valid = (torch.arange(5) < torch.tensor(counts)[:, None]).unsqueeze(-1)
    x, y = (double(3, 5, 2, generator=generator) * valid for _ in range(2))
    descriptors, base = double(3, 2, generator=generator), double(2, 3, 2, generator=generator)
    gp = LatentGP(2, 2, double(3, 2, generator=generator), descriptors, task_noise=True)
    gp.place_inducing(double(6, 2, generator=generator), torch.tensor([0, 0, 1, 1, 2, 2]))
    with torch.no_grad():
        gp.kernel.base_kernel.raw_lengthscale.copy_(torch.tensor([[0.1, 0.4, 0.3, 0.6]]))
        gp.kernel.raw_outputscale.fill_(0.2)
        gp.likelihood.noise_covar.raw_noise.copy_(torch.tensor([[-1.0], [-2.0]]))
        gp.offset.copy_(0.5 * double(6, 2, generator=generator))
        gp.log_variance.copy_(double(3, 2, generator=generator) - 2.0)
        gp.log_ratio.copy_(torch.tensor([0.7, -1.1, 0.2]))
    return gp, TrainingSet.make(x, y, counts, descriptors, base)
