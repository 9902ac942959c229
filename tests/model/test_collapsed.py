"""The collapsed bound against the evidence of a plain GP."""

import pytest
import torch
from dense import covariance
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from distpaml.model.collapsed import FitError, safe_cholesky
from distpaml.model.latent_gp import LatentGP, TrainingSet


def random_problem(seed: int, size: int | None, task_noise: bool = True) -> tuple[LatentGP, TrainingSet]:
    """Known latents and noise ratios; inducing points on all of the data (`size` None), or `size` anywhere."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, y, descriptors = draw(3, 4, 2), draw(3, 4, 2), draw(3, 2)
    gp = LatentGP(2, 2, draw(3, 2), descriptors, task_noise)
    owner = torch.arange(3).repeat_interleave(4)
    if size is None:
        gp.place_inducing(x.flatten(0, 1), owner)
    else:
        gp.place_inducing(draw(size, 2), owner[:size])
    with torch.no_grad():
        gp.kernel.base_kernel.raw_lengthscale.copy_(0.3 * draw(1, 4))
        gp.kernel.raw_outputscale.copy_(draw(1)[0])
        gp.likelihood.noise_covar.raw_noise.copy_(draw(2, 1) - 1.0)
        gp.log_variance.fill_(-60.0)
        gp.log_ratio.copy_(draw(3) * task_noise)
        if size is not None:
            gp.offset.copy_(draw(size, 2))
    return gp, TrainingSet.make(x, y, [4, 4, 4], descriptors, draw(1, 3, 2))


def evidence(gp: LatentGP, data: TrainingSet) -> float:
    """log p(Y | X, H = mean) of the exact GP."""
    points = torch.cat([data.x, gp.mean.detach()[:, None].expand(-1, 4, -1)], -1).flatten(0, 1)
    k = covariance(gp, points, points)
    ratio = torch.diag(gp.log_ratio.detach().exp().repeat_interleave(4))
    return sum(
        multivariate_normal(cov=(k + noise * ratio).numpy()).logpdf(y.numpy())
        for y, noise in zip(data.y.flatten(0, 1).T, gp.noise.detach(), strict=True)
    )


@pytest.mark.parametrize("task_noise", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_with_all_points_and_known_latents_it_is_the_evidence(seed, task_noise):
    gp, data = random_problem(seed, None, task_noise)
    assert gp.terms(data).data.item() == pytest.approx(evidence(gp, data), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_of_latents_that_are_points_it_is_the_limit_of_small_variances(seed):
    """The value and every gradient, and it does not look at the variances."""
    gp, data = random_problem(seed, 5)
    limit = gp.evidence(data)
    names = [name for name, _ in gp.named_parameters() if name != "log_variance" and "decoder" not in name]
    parameters = [dict(gp.named_parameters())[name] for name in names]
    expected = torch.autograd.grad(limit, parameters)
    with torch.no_grad():
        gp.log_variance.fill_(1.0)
    of_points = gp.evidence(data, uncertain=False)
    assert of_points.item() == pytest.approx(limit.item(), rel=1e-12)
    for one, other in zip(torch.autograd.grad(of_points, parameters), expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 2**32), size=st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_it_never_exceeds_the_evidence(seed, size):
    gp, data = random_problem(seed, size)
    assert gp.terms(data).data.item() <= evidence(gp, data) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_with_uncertain_latents_it_is_below_the_evidence_averaged_over_the_prior(seed):
    """F - KL(q(H)) <= log E_p(H)[p(Y | H)], the right side by 1000 samples from q(H), weighted."""
    gp, data = random_problem(seed, None)
    with torch.no_grad():
        gp.log_variance.fill_(-2.0)
        terms, mean, deviation = gp.terms(data), gp.mean.clone(), gp.variance.sqrt()
        prior, q = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(mean, deviation)
        logs = []
        torch.manual_seed(seed)
        for _ in range(1000):
            gp.mean.copy_(q.sample())
            weight = (prior.log_prob(gp.mean) - q.log_prob(gp.mean)).sum().item()
            logs.append(evidence(gp, data) + weight)
    logs = torch.tensor(logs, dtype=torch.float64)
    average = logs.logsumexp(0) - torch.tensor(1000.0).log()
    assert (terms.data + terms.latent).item() < average.item() + 0.5


def test_gradient_in_the_models_own_parameters(problem):
    gp, data = problem
    parameters = list(gp.parameters())

    def total(*values: torch.Tensor) -> torch.Tensor:
        named = dict(zip(dict(gp.named_parameters()), values, strict=True))
        return torch.func.functional_call(_Total(gp), {f"gp.{k}": v for k, v in named.items()}, (data,))

    assert torch.autograd.gradcheck(total, parameters, rtol=1e-5, atol=1e-6)


class _Total(torch.nn.Module):
    def __init__(self, gp: LatentGP) -> None:
        super().__init__()
        self.gp = gp

    def forward(self, data: TrainingSet) -> torch.Tensor:
        return self.gp.terms(data).total


def test_latent_term_by_hand(problem):
    gp, data = problem
    n, t = gp.mean, gp.variance
    assert gp.terms(data).latent.item() == pytest.approx(-0.5 * (n.square() + t - 1.0 - t.log()).sum().item())


def test_cholesky_adds_only_the_jitter_it_needs():
    good = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    assert torch.equal(safe_cholesky(good, "it"), torch.linalg.cholesky(good))
    for lacking, bound in ((1e-9, 1.1e-8), (1e-7, 1.1e-6), (5e-5, 1.1e-4)):
        bad = torch.diag(torch.tensor([1.0, -lacking, 1.0], dtype=torch.float64))
        factor = safe_cholesky(bad, "it")
        added = (factor @ factor.T - bad).diagonal()
        assert (added >= lacking).all() and (added <= bound).all()


def test_cholesky_says_what_is_wrong():
    indefinite = torch.diag(torch.tensor([1.0, -1.0], dtype=torch.float64))
    with pytest.raises(FitError, match=r"^The table is not positive definite, even with 1e-4 of its diagonal added\.$"):
        safe_cholesky(indefinite, "The table")
    with pytest.raises(FitError, match=r"^The table is not finite; check the data for NaN"):
        safe_cholesky(torch.full((2, 2), torch.nan), "The table")


def test_data_that_are_not_numbers_are_an_error_and_no_silent_nan(problem):
    gp, data = problem
    data.x[0, 0, 0] = torch.nan
    broken = TrainingSet.make(data.x, data.y, data.counts, data.descriptors, data.base)
    with pytest.raises(FitError, match="not finite"):
        gp.terms(broken)
