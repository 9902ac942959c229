"""The decoder's density and predictions against dense formulas of others."""

import pytest
import torch
from dense import double, kernel
from scipy.stats import multivariate_normal

from distpaml.model.decoder import Decoder


@pytest.fixture
def decoder() -> tuple[Decoder, torch.Tensor, torch.Tensor]:
    """A decoder of 2 latents to 3 descriptors, with latents and descriptors of 5 tasks."""
    generator = torch.Generator().manual_seed(5)
    descriptors, mean = 2.0 + double(5, 3, generator=generator), double(5, 2, generator=generator)
    decoder = Decoder(2, descriptors)
    with torch.no_grad():
        decoder.log_lengthscale.copy_(torch.tensor([0.2, -0.3]))
        decoder.log_noise.copy_(torch.tensor([-3.0, -1.0, -2.0]))
    return decoder, mean, descriptors


def test_log_density_is_scipys_averaged_over_the_samples(decoder):
    decoder, mean, descriptors = decoder
    variance, base = double(5, 2).exp(), double(4, 5, 2)
    found = decoder.expected_log_density(mean, variance, descriptors, base)
    truth = 0.0
    scale = decoder.log_lengthscale.exp().detach()
    for eps in base:
        h = (mean + variance.sqrt() * eps) / scale
        for e in range(3):
            amplitude, noise = decoder.log_amplitude[e].exp().item(), decoder.log_noise[e].exp().item()
            k = amplitude * (kernel(h, h) + noise * torch.eye(5, dtype=torch.float64))
            truth += multivariate_normal(cov=k.numpy()).logpdf(descriptors[:, e].numpy()) / len(base)
    assert found.item() == pytest.approx(truth, rel=1e-9)


def test_predictions_are_those_of_a_plain_gp(decoder):
    decoder, mean, descriptors = decoder
    h = double(6, 2)
    found_mean, found_variance = decoder.predict(h, mean, descriptors)
    points = torch.cat([mean, h]) / decoder.log_lengthscale.exp().detach()
    for e in range(3):
        amplitude, noise = decoder.log_amplitude[e].exp().item(), decoder.log_noise[e].exp().item()
        joint = amplitude * (kernel(points, points) + noise * torch.eye(11, dtype=torch.float64))
        weights = torch.linalg.solve(joint[:5, :5], joint[:5, 5:]).T
        assert torch.allclose(found_mean[:, e], weights @ descriptors[:, e], rtol=1e-9, atol=1e-9)
        variance = (joint[5:, 5:] - weights @ joint[:5, 5:]).diagonal()
        assert torch.allclose(found_variance[:, e], variance, rtol=1e-9)


def test_gradient_of_the_log_density(decoder):
    decoder, mean, descriptors = decoder
    base, variance = double(2, 5, 2), 0.1 * double(5, 2).exp()
    names = ("log_lengthscale", "log_amplitude", "log_noise")

    def density(mean: torch.Tensor, variance: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(_Density(decoder, descriptors, base), _prefixed(state), (mean, variance))

    values = [mean.requires_grad_(), variance.requires_grad_(), *decoder.parameters()]
    assert torch.autograd.gradcheck(density, values, rtol=1e-5, atol=1e-7)


class _Density(torch.nn.Module):
    def __init__(self, decoder: Decoder, descriptors: torch.Tensor, base: torch.Tensor) -> None:
        super().__init__()
        self.decoder, self.descriptors, self.base = decoder, descriptors, base

    def forward(self, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return self.decoder.expected_log_density(mean, variance, self.descriptors, self.base)


def _prefixed(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"decoder.{name}": value for name, value in state.items()}


def test_derivatives_of_the_predictions(decoder):
    decoder, mean, descriptors = decoder
    h = double(4, 2)
    _, _, d_mean, d_variance = (part.detach() for part in decoder.conditional(h, mean, descriptors))
    for output, found in ((0, d_mean), (1, d_variance)):
        whole = torch.autograd.functional.jacobian(
            lambda h, output=output: decoder.conditional(h, mean, descriptors)[output], h
        )  # [K, E, K, Q]
        assert torch.allclose(torch.einsum("kekq->keq", whole), found, rtol=1e-9, atol=1e-12)
