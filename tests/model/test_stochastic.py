"""The stochastic bound and fit: exact where it can be, unbiased where it is sampled."""

import itertools

import pytest
import torch
from dense import conditional, double, hermite
from gpytorch.optim import NGD
from gpytorch.variational import CholeskyVariationalDistribution, NaturalVariationalDistribution

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.errors import UserError
from distpaml.model import stochastic
from distpaml.model.latent_gp import Terms, TrainingSet
from distpaml.model.meta_model import fit_model
from distpaml.model.posterior import Posterior
from distpaml.model.rollouts import known_latent
from distpaml.model.stochastic import Inducing, explicit_bound, fit_stochastic, sampled_bound
from distpaml.model.storage import load_model, serialised


def some_q(seed: int = 0) -> Inducing:
    generator = torch.Generator().manual_seed(seed)
    root = 0.3 * double(2, 6, 6, generator=generator).tril() + 0.5 * torch.eye(6, dtype=torch.float64)
    return Inducing(double(2, 6, generator=generator), root)


def optimal(gp, data) -> Inducing:
    best = Posterior.collapsed(gp, data)
    return Inducing(best.w, torch.linalg.cholesky(torch.cholesky_inverse(best.root)))


def test_explicit_bound_is_that_of_quadrature(problem):
    """E_q(H) E_q(f) log N(y; f, r s) - KL(q(u)), with q(f) from dense formulas and E_q(H) from quadrature."""
    gp, data = problem
    q = some_q()
    posterior = q.posterior(gp)
    expected = 0.0
    for i, count in enumerate(data.counts):
        noise = gp.noise.detach() * gp.log_ratio[i].detach().exp()
        nodes, weights = hermite(gp.mean[i].detach(), gp.variance[i].detach(), 40)
        for x, y in zip(data.x[i, :count], data.y[i, :count], strict=True):
            mean, variance = conditional(posterior, x.expand(len(nodes), -1), nodes)
            logs = -0.5 * ((2 * torch.pi * noise).log() + ((y - mean).square() + variance) / noise)
            expected += (weights @ logs).sum()
    truth = expected - posterior.divergence().sum()
    assert explicit_bound(gp, data, q).data.item() == pytest.approx(truth.item(), rel=1e-7)


def test_at_the_optimum_it_is_the_collapsed_bound_and_less_elsewhere(problem):
    gp, data = problem
    collapsed, best = gp.terms(data), optimal(gp, data)
    found = explicit_bound(gp, data, best)
    assert found.total.item() == pytest.approx(collapsed.total.item(), rel=1e-9)
    assert found.latent == collapsed.latent and found.decoder == collapsed.decoder
    for change in (1e-3, 0.1, 1.0):
        moved = Inducing(best.mean + change * double(2, 6), best.root)
        wider = Inducing(best.mean, best.root * (1.0 + change))
        for other in (moved, wider):
            assert explicit_bound(gp, data, other).total < found.total


def test_one_natural_gradient_step_reaches_the_collapsed_bound(problem):
    gp, data = problem
    module = NaturalVariationalDistribution(6, torch.Size([2])).double()
    start = some_q()
    precision = torch.linalg.inv(start.root @ start.root.mT)
    module.natural_vec.data = (precision @ start.mean.unsqueeze(-1)).squeeze(-1)
    module.natural_mat.data = -0.5 * precision
    before = explicit_bound(gp, data, Inducing.of(module)).total
    (-before).backward()
    NGD(module.parameters(), num_data=1, lr=1.0).step()
    after, best = explicit_bound(gp, data, Inducing.of(module)).total, gp.terms(data).total
    assert before < best - 1.0
    assert after.item() == pytest.approx(best.item(), rel=1e-9)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_mean_over_all_mini_batches_is_the_whole(problem, batch):
    """Exactly, for tasks of unequal lengths."""
    gp, data = problem
    q, eps = some_q(), double(3, 2)
    whole = sampled_bound(gp, data, q, torch.arange(3), eps)
    parts = [sampled_bound(gp, data, q, torch.tensor(b), eps) for b in itertools.combinations(range(3), batch)]
    assert (sum(parts) / len(parts)).item() == pytest.approx(whole.item(), rel=1e-12)


def test_with_known_latents_one_sample_is_the_exact_bound(problem):
    gp, data = problem
    with torch.no_grad():
        gp.log_variance.fill_(-80.0)
    q = some_q()
    found = sampled_bound(gp, data, q, torch.arange(3), double(3, 2))
    assert found.item() == pytest.approx(explicit_bound(gp, data, q).total.item(), rel=1e-9)


def test_the_mean_over_samples_is_the_exact_bound(problem):
    gp, data = problem
    q = some_q()
    generator = torch.Generator().manual_seed(8)
    eps = double(4000, 3, 2, generator=generator)
    with torch.no_grad():
        sampled = torch.stack([sampled_bound(gp, data, q, torch.arange(3), e) for e in eps])
        exact = explicit_bound(gp, data, q)
        decoder = gp.decoder.expected_log_density(gp.mean, gp.variance, data.descriptors, eps)
    difference = sampled.mean() - (exact.data + exact.latent + decoder)
    error = sampled.std() / len(eps) ** 0.5
    assert difference.abs() < 4 * error and error < 0.01 * exact.total.abs()


def test_gradient_of_the_sampled_bound(problem):
    gp, data = problem
    eps = double(3, 2)

    def bound(mean: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
        return sampled_bound(gp, data, Inducing(mean, root.tril()), torch.tensor([2, 0]), eps)

    assert torch.autograd.gradcheck(bound, [part.requires_grad_() for part in some_q()])
    (bound(*some_q())).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in gp.parameters())


def test_posterior_of_an_explicit_q_has_its_moments(problem):
    gp, _ = problem
    q = some_q()
    posterior = q.posterior(gp)
    eye = torch.eye(6, dtype=torch.float64)
    assert torch.allclose(posterior.root @ posterior.root.mT @ q.root @ q.root.mT, eye.expand(2, 6, 6), atol=1e-8)
    assert torch.equal(posterior.root, posterior.root.tril())
    assert posterior.divergence().sum().item() == pytest.approx(q.divergence().item(), rel=1e-9)
    x, h = double(4, 2), double(4, 2)
    for found, truth in zip(known_latent(posterior, x, h), conditional(posterior, x, h), strict=True):
        assert torch.allclose(found, truth, rtol=1e-6, atol=1e-9)


def test_the_distribution_starts_as_the_prior():
    for kind in (CholeskyVariationalDistribution, NaturalVariationalDistribution):
        q = Inducing.of(kind(4, torch.Size([3])).double())
        assert q.divergence().item() == pytest.approx(0.0, abs=1e-12)


FIT = {"adam_steps": 150, "batch_tasks": 2}


@pytest.mark.parametrize("kind", ["svgp", "svgp-ngd"])
def test_a_fit_improves_and_gives_a_model_to_use(cartpole_data, small_config, kind, tmp_path):
    short = fit_model(cartpole_data, small_config, FitConfig(kind=kind, **FIT | {"adam_steps": 1}), seed=1)
    model = fit_model(cartpole_data, small_config, FitConfig(kind=kind, **FIT), seed=1)
    assert model.terms["elbo"] > short.terms["elbo"] + 100.0
    parts = {name: model.terms[name] for name in ("data_fit", "kl_inducing", "kl_latent", "decoder")}
    assert parts["data_fit"] - parts["kl_inducing"] - parts["kl_latent"] + parts["decoder"] == pytest.approx(
        model.terms["elbo"]
    )
    mean, variance = model.predict(cartpole_data.inputs, model.infer(cartpole_data))
    errors = model.targets.errors(mean - cartpole_data.targets)
    assert (errors**2).mean() < 0.6 and (variance > 0).all()
    (tmp_path / "model").write_bytes(serialised(model))
    again, _ = load_model(tmp_path / "model").predict(cartpole_data.inputs, model.embeddings)
    assert (again == model.predict(cartpole_data.inputs, model.embeddings)[0]).all()


@pytest.mark.parametrize("kind", ["svgp", "svgp-ngd"])
def test_the_same_seed_gives_the_same_fit_and_another_does_not(cartpole_data, small_config, kind):
    fits = [
        fit_model(cartpole_data, small_config, FitConfig(kind=kind, **FIT | {"adam_steps": 5}), s) for s in (1, 1, 2)
    ]
    assert fits[0].terms == fits[1].terms
    assert torch.equal(fits[0].embeddings.mean, fits[1].embeddings.mean)
    assert not torch.equal(fits[0].embeddings.mean, fits[2].embeddings.mean)


def test_a_warm_start_begins_at_the_last_model(cartpole_data, small_config, fitted):
    model = fit_model(cartpole_data, small_config, FitConfig(kind="svgp", **FIT | {"adam_steps": 1}), 0, last=fitted)
    moved = (model.embeddings.mean - fitted.embeddings.mean).abs()
    assert 0 < moved.max() <= 0.0101, "one step of Adam moves nothing by more than its rate"


def prepared(data: TrainingSet, **change) -> tuple:
    return data, None, ModelConfig(inducing=6, noise="shared"), FitConfig(**FIT | {"kind": "svgp"} | change), 0


def test_the_best_state_is_kept(problem, monkeypatch):
    """With bounds that are made up: the second check is the best of four."""
    _, data = problem
    monkeypatch.setattr(stochastic, "CHECK", 1)
    seen, zero = [], torch.zeros(())

    def made_up(gp, data, q):
        seen.append((gp.mean.detach().clone(), q.mean.clone()))
        return Terms(torch.tensor([1.0, 5.0, 3.0, 4.0])[len(seen) - 1], zero, zero, zero)

    monkeypatch.setattr(stochastic, "explicit_bound", made_up)
    fit, q = fit_stochastic(*prepared(data, adam_steps=3))
    assert fit.values == [1.0, 5.0, 3.0, 4.0]
    assert torch.equal(fit.gp.mean, seen[1][0]) and torch.equal(q.mean, seen[1][1])
    assert not torch.equal(fit.gp.mean, seen[2][0])


@pytest.mark.parametrize("kind", ["svgp", "svgp-ngd"])
def test_a_step_that_fails_ends_the_fit_at_the_best_state(problem, monkeypatch, kind):
    _, data = problem
    monkeypatch.setattr(stochastic, "CHECK", 1)
    genuine, calls = stochastic.sampled_bound, []

    def failing(*arguments):
        calls.append(1)
        return genuine(*arguments) * (torch.nan if len(calls) > 3 else 1.0)

    monkeypatch.setattr(stochastic, "sampled_bound", failing)
    fit, q = fit_stochastic(*prepared(data, kind=kind))
    assert len(calls) == 4 and len(fit.values) == 4
    assert explicit_bound(fit.gp, data, q).total.item() == pytest.approx(max(fit.values), rel=1e-12)


@pytest.mark.parametrize("part", ["x", "y"])
def test_data_that_are_not_numbers(problem, part):
    _, data = problem
    getattr(data, part)[0, 0] = torch.nan
    broken = TrainingSet.make(data.x, data.y, data.counts, data.descriptors, data.base)
    for seed in range(5):  # the broken task is in some batches and not in others
        with pytest.raises(UserError, match=r"not finite.*\.$"):
            fit_stochastic(*prepared(broken, batch_tasks=1, adam_steps=1)[:-1], seed)
