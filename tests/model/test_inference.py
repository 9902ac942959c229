"""Latents of tasks from their data: against the exact bound, and whatever else is in the batch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cart_pole_data import cart_poles
from dense import expected_kernel_product
from scipy.optimize import minimize_scalar

from distpaml.data import Dataset
from distpaml.model.expectations import expected_kernel, rbf
from distpaml.model.inference import BLOCK, coarse_starts, infer
from distpaml.model.latent_gp import RATIO_SPREAD
from distpaml.model.noise_ratio import best_log_ratio
from distpaml.model.posterior import Latents, Posterior

NEW = np.array([[1.0, 1.0], [2.0, 1.2], [4.0, 0.8]])


@pytest.fixture(scope="module")
def new_data() -> Dataset:
    return cart_poles(NEW, 20)


def exact_bound(
    p: Posterior, x: torch.Tensor, y: torch.Tensor, n: torch.Tensor, log_t: torch.Tensor, ratio: float = 1.0
) -> torch.Tensor:
    """-1/2 sum_d E_q(h)[|y_d - m_d(h)|^2 + sum var_d(h)] / r sigma_d^2 - KL(q(h) || N(0, I)), for one task."""
    t = log_t.exp()
    scaled = n * p.rate_h, t * p.rate_h.square(), p.zh
    e1, e2, kx = expected_kernel(*scaled), expected_kernel_product(*scaled), rbf(x * p.rate_x, p.zx)
    gram = kx.T @ kx * e2
    loss = 0.0
    for d, noise in enumerate(ratio * p.noise):
        alpha = p.alpha[:, d]
        second = ((torch.outer(alpha, alpha) - p.q[d]) * gram).sum() + len(x) * p.amplitude
        loss = loss + (y[:, d].square().sum() - 2.0 * (kx.T @ y[:, d]) @ (e1 * alpha) + second) / noise
    return -0.5 * loss - 0.5 * (n.square() + t - 1.0 - log_t).sum()


def by_adam(objective, n: torch.Tensor, log_t: torch.Tensor, steps: int = 800):
    """The best (n, t) and its bound after a long optimisation from here."""
    n, log_t = n.clone().requires_grad_(), log_t.clone().requires_grad_()
    adam = torch.optim.Adam([n, log_t], 0.03)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for _ in range(steps):
        adam.zero_grad()
        value = objective(n, log_t)
        (-value).backward()
        adam.step()
        schedule.step()
    return n.detach(), log_t.detach().exp(), value.item()


def tensors(model, data: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    scaled = data.standardised(model.inputs, model.targets)
    return torch.as_tensor(scaled.inputs), torch.as_tensor(scaled.targets)


def test_training_tasks_are_found_again(fitted, cartpole_data):
    found, truth = fitted.infer(cartpole_data), fitted.embeddings
    away = torch.cdist(truth.mean, truth.mean) + 1e9 * torch.eye(4, dtype=torch.float64)
    distance = (found.mean - truth.mean).norm(dim=-1)
    assert (distance < 0.1 * away.min(1).values).all()
    assert ((found.mean - truth.mean).abs() < 0.5 * truth.variance.sqrt()).all()
    ratio = found.variance / truth.variance
    assert ((ratio > 0.6) & (ratio < 1.7)).all()


def test_without_the_training_embeddings_as_starts_they_are_found_too(fitted, cartpole_data):
    x, y = tensors(fitted, cartpole_data)
    far = fitted.gp.mean.detach().new_full((1, 2), 3.0)
    found = infer(fitted.posterior, x, y, cartpole_data.counts.tolist(), far)
    assert ((found.mean - fitted.embeddings.mean).abs() < 0.5 * fitted.embeddings.variance.sqrt()).all()


def variational_ratio(p: Posterior, x: torch.Tensor, y: torch.Tensor, n: torch.Tensor, t: torch.Tensor) -> float:
    """The noise ratio that is best for the exact bound of one task at q(h) = N(n, diag t)."""
    divergence = 0.5 * (n.square() + t - 1.0 - t.log()).sum()
    misfit = -2.0 * (exact_bound(p, x, y, n, t.log()) + divergence)
    return best_log_ratio(misfit, torch.tensor(float(y.numel()), dtype=torch.float64)).exp().item()


@pytest.mark.parametrize("model", ["fitted", "fitted_with_task_noise"])
@pytest.mark.parametrize("which", ["training", "new"])
def test_it_agrees_with_a_long_optimisation_of_the_exact_bound(request, cartpole_data, new_data, which, model):
    """With a noise level per task, at the level that is best for what was found."""
    fitted = request.getfixturevalue(model)
    data, p = cartpole_data if which == "training" else new_data, fitted.posterior
    found = fitted.infer(data)
    for n, t, x, y in zip(found.mean, found.variance, *tensors(fitted, data), strict=True):
        r = variational_ratio(p, x, y, n, t) if model == "fitted_with_task_noise" else 1.0
        bound = exact_bound(p, x, y, n, t.log(), r).item()
        best_n, best_t, best = by_adam(lambda *q, x=x, y=y, r=r: exact_bound(p, x, y, *q, r), n, t.log())
        assert best - bound < 1.5
        assert ((n - best_n).abs() < (0.1 if which == "training" else 2.0) * best_t.sqrt()).all()
        assert ((t / best_t > 0.6) & (t / best_t < 1.7)).all()


def test_noise_ratios_of_training_tasks_are_found_again(fitted_with_task_noise, cartpole_data):
    """Those of the bound, at the latents that were found."""
    model, found = fitted_with_task_noise, fitted_with_task_noise.infer(cartpole_data)
    each = zip(found.mean, found.variance, *tensors(model, cartpole_data), strict=True)
    ratio = [variational_ratio(model.posterior, x, y, n, t) for n, t, x, y in each]
    np.testing.assert_allclose(np.log(ratio), model.embeddings.ratio.log(), atol=0.5)


@pytest.mark.parametrize("shots", [2, 19])
def test_noise_ratios_for_predictions_are_those_of_the_largest_predictive_density(
    fitted_with_task_noise, new_data, shots
):
    model, data = fitted_with_task_noise, new_data.first(shots)
    found = model.infer(data)
    mean, variance = model.predict(data.inputs, found)
    noise = model.posterior.noise.numpy() * model.targets.scale**2  # [D]
    for i, ratio in enumerate(found.ratio.tolist()):
        errors = (data.targets[i] - mean[i])[:shots] ** 2
        known = (variance[i] - ratio * noise)[:shots]

        def loss(log_ratio, errors=errors, known=known):
            total = known + np.exp(log_ratio) * noise
            return 0.5 * (np.log(total) + errors / total).sum() + 0.5 * (log_ratio / RATIO_SPREAD) ** 2

        best = minimize_scalar(loss, bounds=(-20.0, 20.0), method="bounded", options={"xatol": 1e-9})
        assert loss(np.log(ratio)) - best.fun < 0.15  # not knowing h adds a little variance
        assert loss(0.0) - best.fun > 0.2, "another ratio would do as well"


def test_a_task_that_the_model_cannot_follow_gets_a_large_noise(fitted_with_task_noise, cartpole_data):
    """So that its predictions say how wrong they are: within their 95 % intervals nearly always, not hardly ever."""
    shaken = cartpole_data.targets + cartpole_data.targets.std((0, 1)) * np.random.default_rng(0).normal(
        size=(4, 19, 4)
    )
    strange = replace(cartpole_data, targets=shaken)
    latents = fitted_with_task_noise.infer(strange)
    mean, variance = fitted_with_task_noise.predict(strange.inputs, latents)
    assert (latents.ratio > 100.0 * fitted_with_task_noise.embeddings.ratio).all()
    assert np.mean(np.abs(shaken - mean) < 1.96 * np.sqrt(variance)) > 0.9
    _, sure = fitted_with_task_noise.predict(strange.inputs, Latents(latents.mean, latents.variance))
    assert np.mean(np.abs(shaken - mean) < 1.96 * np.sqrt(sure)) < 0.5


def test_no_start_leads_to_a_better_optimum(fitted, new_data):
    """From eight corners and the middle of the prior, Adam finds nothing that is better by more than two nats."""
    found = fitted.infer(new_data)
    corners = torch.cartesian_prod(*[torch.tensor([-1.5, 0.0, 1.5], dtype=torch.float64)] * 2)
    for n, t, x, y in zip(found.mean, found.variance, *tensors(fitted, new_data), strict=True):

        def objective(*q, x=x, y=y):
            return exact_bound(fitted.posterior, x, y, *q)

        others = [by_adam(objective, corner, torch.full_like(corner, -4.0), 200)[2] for corner in corners]
        assert objective(n, t.log()).item() > max(others) - 2.0


def test_permuting_tasks_permutes_latents_and_a_task_alone_is_the_same(fitted, cartpole_data, new_data):
    """Over more than one block of tasks."""
    data = Dataset.concatenate([cartpole_data, new_data] * 2)
    assert len(data) > BLOCK
    order = np.random.default_rng(0).permutation(len(data))
    together, permuted = fitted.infer(data), fitted.infer(data.tasks(order))
    assert torch.allclose(permuted.mean, together.mean[order], rtol=1e-7, atol=1e-9)
    assert torch.allclose(permuted.variance, together.variance[order], rtol=1e-7)
    for i in range(7):
        alone = fitted.infer(data.tasks(slice(i, i + 1)))
        assert torch.allclose(alone.mean[0], together.mean[i], rtol=1e-7, atol=1e-9)
        assert torch.allclose(alone.variance[0], together.variance[i], rtol=1e-7)


def test_padding_does_not_matter(fitted, cartpole_data):
    longer = cartpole_data.append(cart_poles(NEW[:1], 45))
    plain, padded = fitted.infer(cartpole_data), fitted.infer(longer.tasks(slice(0, 4)))
    assert torch.allclose(plain.mean, padded.mean, rtol=1e-8, atol=1e-10)
    assert torch.allclose(plain.variance, padded.variance, rtol=1e-8)


def test_tasks_without_transitions_keep_the_prior(fitted, cartpole_data):
    nothing = fitted.infer(cartpole_data.first(0))
    assert not nothing.mean.any() and (nothing.variance == 1.0).all()
    mixed = fitted.infer(cartpole_data.append(cartpole_data.first(0)))
    assert not mixed.mean[4:].any() and (mixed.variance[4:] == 1.0).all()
    assert torch.allclose(mixed.mean[:4], fitted.infer(cartpole_data).mean, rtol=1e-7, atol=1e-9)


def test_more_shots_leave_less_uncertainty(fitted, cartpole_data):
    logs = [fitted.infer(cartpole_data.first(shots)).variance.log().mean().item() for shots in (0, 1, 3, 8, 19)]
    assert logs == sorted(logs, reverse=True)
    assert logs[-1] < logs[0] - 3.0


def test_given_starts_are_tried(fitted, cartpole_data):
    """With no steps the result is the best start: for training tasks their own embeddings."""
    x, y = tensors(fitted, cartpole_data)
    own = fitted.embeddings.mean
    found = infer(fitted.posterior, x, y, cartpole_data.counts.tolist(), own, steps=0)
    assert torch.equal(found.mean, own)


def test_coarse_starts_are_spread_as_the_prior():
    starts = coarse_starts(torch.zeros(1, 2, dtype=torch.float64))
    assert starts.shape == (128, 2) and starts.isfinite().all()
    assert starts.mean(0).abs().max() < 0.05 and (starts.var(0) - 1.0).abs().max() < 0.1


def test_a_descriptor_is_evidence_like_any_other(fitted, cartpole_data):
    """Without transitions, n maximises log p(psi | h) - |h|^2 / 2 on a grid; with them, both agree."""
    nothing = cartpole_data.first(0)
    found = fitted.infer(nothing, use_descriptors=True)
    axis = torch.linspace(-3, 3, 121, dtype=torch.float64)
    h = torch.cartesian_prod(axis, axis)
    mean, variance = (torch.as_tensor(part) for part in fitted.decode(h.numpy()))
    for task, psi in enumerate(torch.as_tensor(cartpole_data.descriptors)):
        prior = 0.5 * h.square().sum(-1)
        density = -0.5 * ((psi - mean).square() / variance + variance.log()).sum(-1) - prior
        assert (found.mean[task] - h[density.argmax()]).abs().max() < 0.06
    assert (found.variance < 1.0).all()
    both, data_only = fitted.infer(cartpole_data, use_descriptors=True), fitted.infer(cartpole_data)
    assert (both.variance < data_only.variance * 1.001).all()
    assert ((both.mean - data_only.mean).abs() < 3.0 * data_only.variance.sqrt()).all()
