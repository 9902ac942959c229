"""The model as the program sees it: raw units, warm starts, and no dependence on the order of tasks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cart_pole_data import TASKS, cart_poles

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.data import Dataset
from distpaml.errors import UserError
from distpaml.model.fit import optimise, place, settle_variances
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.meta_model import _warm_start, fit_model


def test_terms_sum_to_the_bound(fitted):
    t = fitted.terms
    assert t["data_fit"] - t["kl_inducing"] - t["kl_latent"] + t["decoder"] == pytest.approx(t["elbo"], rel=1e-9)
    assert t["kl_inducing"] > 0 and t["kl_latent"] > 0


def test_predictions_are_in_raw_units(fitted, cartpole_data):
    mean, variance = fitted.predict(cartpole_data.inputs, fitted.embeddings)
    errors = mean - cartpole_data.targets
    explained = 1.0 - errors.var(axis=(0, 1)) / cartpole_data.targets.var(axis=(0, 1))
    assert (explained > 0.9).all()
    scores = errors**2 / variance
    assert 0.1 < scores.mean() < 2.0


def test_units_of_the_data_do_not_matter(cartpole_data, small_config):
    scaled = Dataset(
        cartpole_data.inputs * 1e3, cartpole_data.targets * 1e-3, cartpole_data.counts, cartpole_data.descriptors
    )
    other = fit_model(scaled, small_config, FitConfig(evaluations=5, restarts=1), seed=0)
    same = fit_model(cartpole_data, small_config, FitConfig(evaluations=5, restarts=1), seed=0)
    assert other.terms["elbo"] == pytest.approx(same.terms["elbo"], rel=1e-6)
    (mean, variance), (other_mean, other_variance) = (
        model.predict(data.inputs, model.embeddings) for model, data in ((same, cartpole_data), (other, scaled))
    )
    assert other_mean * 1e3 == pytest.approx(mean, rel=1e-3, abs=1e-3)
    assert other_variance * 1e6 == pytest.approx(variance, rel=1e-3)


def test_the_same_seed_gives_the_same_model(cartpole_data, small_config):
    fits = [fit_model(cartpole_data, small_config, FitConfig(evaluations=8, restarts=2), seed) for seed in (3, 3, 4)]
    assert fits[0].terms == fits[1].terms
    for name, value in fits[0].gp.state_dict().items():
        assert torch.equal(value, fits[1].gp.state_dict()[name])
    assert fits[0].terms["elbo"] != fits[2].terms["elbo"]


def test_shards_do_not_change_the_fit(cartpole_data, small_config):
    fits = [fit_model(cartpole_data, small_config, FitConfig(evaluations=8, restarts=1, shards=s), 0) for s in (1, 3)]
    assert fits[0].terms["elbo"] == pytest.approx(fits[1].terms["elbo"], rel=1e-6)


def test_more_evaluations_give_a_better_bound(cartpole_data, small_config, fitted):
    short = fit_model(cartpole_data, small_config, FitConfig(settling=5, evaluations=2, restarts=1), seed=0)
    assert fitted.terms["elbo"] > short.terms["elbo"] + 5.0


def test_a_warm_start_is_at_once_as_good_as_the_last_model(cartpole_data, small_config, fitted):
    again = fit_model(cartpole_data, small_config, FitConfig(evaluations=10, restarts=1), seed=0, last=fitted)
    cold = fit_model(cartpole_data, small_config, FitConfig(evaluations=10, restarts=1), seed=0)
    assert again.terms["elbo"] > cold.terms["elbo"]
    assert again.terms["elbo"] > fitted.terms["elbo"] - 10.0


def test_a_warm_start_keeps_length_scales_and_noise_in_raw_units(cartpole_data, small_config, fitted):
    """The new task is longer and faster, so the units change."""
    more = cartpole_data.append(cart_poles(np.array([[0.5, 0.5]]), 60))
    model = fit_model(more, small_config, FitConfig(evaluations=1, restarts=1), seed=0, last=fitted)
    start = _warm_start(fitted, more, model.inputs, model.targets, model.descriptors, None)
    scales = [m.inputs.scale for m in (fitted, model)]
    assert np.abs(np.log(scales[0] / scales[1])).max() > 0.1
    before, after = (gp.kernel.base_kernel.lengthscale.detach().numpy()[0, :6] for gp in (fitted.gp, start))
    assert after * scales[1] == pytest.approx(before * scales[0])
    noise = [gp.noise.detach().numpy() * m.targets.scale**2 for gp, m in ((fitted.gp, fitted), (start, model))]
    assert noise[1] == pytest.approx(noise[0])


def test_a_new_task_joins_the_old_ones(cartpole_data, small_config, fitted):
    more = cartpole_data.append(cart_poles(np.array([[2.0, 1.0]]), 25))
    model = fit_model(more, small_config, FitConfig(evaluations=10, restarts=1), seed=0, last=fitted)
    assert len(model.embeddings) == 5
    mean, _ = model.predict(more.inputs, model.embeddings)
    errors = model.targets.errors(mean - more.targets)[more.valid]
    assert (errors**2).mean() < 0.1


def permuted(gp: LatentGP, data: TrainingSet, order: torch.Tensor) -> tuple[LatentGP, TrainingSet]:
    """The same model and data with the tasks in another order."""
    other = LatentGP(data.x.shape[-1], data.y.shape[-1], gp.mean.detach()[order], data.descriptors[order], True)
    other.place_inducing(gp.zx.detach(), order.argsort()[gp.owner])
    own = {name: getattr(gp, name)[order] for name in ("mean", "log_variance", "log_ratio")}
    other.load_state_dict(gp.state_dict() | own | {"owner": other.owner})
    counts = [data.counts[i] for i in order]
    return other, TrainingSet.make(data.x[order], data.y[order], counts, data.descriptors[order], data.base[:, order])


def test_permuting_tasks_permutes_the_gradient(problem):
    order = torch.tensor([2, 0, 1])
    gp, data = problem
    other, moved = permuted(gp, data, order)
    bounds = [model.terms(training).total for model, training in ((gp, data), (other, moved))]
    assert bounds[0].item() == pytest.approx(bounds[1].item(), rel=1e-12)
    for bound in bounds:
        bound.backward()
    for name, p in gp.named_parameters():
        expected = p.grad[order] if name in ("mean", "log_variance", "log_ratio") else p.grad
        assert torch.allclose(dict(other.named_parameters())[name].grad, expected, rtol=1e-8, atol=1e-9), name


def test_permuting_tasks_permutes_the_embeddings_of_a_fit(problem):
    """From the same start and with the same base samples for each task. The first task stays: it has the first
    inducing point, as all points are equally uncertain then."""
    order = torch.tensor([0, 2, 1])
    gp, data = problem
    other, moved = permuted(gp, data, order)
    fits = []
    for start, training in ((gp, data), (other, moved)):
        place(start, training, ModelConfig(inducing=6))
        fits.append(optimise(start, training, [name for name, _ in start.named_parameters()], 12, 1e-9))
        settle_variances(start, training)
    ours, theirs = fits
    assert max(ours) == pytest.approx(max(theirs), rel=1e-6)
    assert ours[0] < max(ours) - 1.0
    assert torch.allclose(other.mean, gp.mean[order], rtol=1e-4, atol=1e-5)
    assert torch.allclose(other.variance, gp.variance[order], rtol=1e-3)


def test_latents_of_noisy_data_are_fitted_with_their_uncertainty(cartpole_data, monkeypatch):
    """Data under much noise leave latents uncertain: as good as if they never counted as points, which overfit."""
    noise = np.random.default_rng(0).normal(size=cartpole_data.targets.shape) * cartpole_data.targets.std((0, 1))
    noisy = replace(cartpole_data, targets=cartpole_data.targets + noise).first(4)
    settings = ModelConfig(inducing=20), FitConfig(evaluations=60, restarts=1)
    found = fit_model(noisy, *settings, seed=0)
    monkeypatch.setattr("distpaml.model.fit.SHARP", 0.0)
    exact = fit_model(noisy, *settings, seed=0)
    assert found.terms["elbo"] > exact.terms["elbo"] - 1.0


def test_float32(cartpole_data):
    model = fit_model(
        cartpole_data, ModelConfig(inducing=20, dtype="float32"), FitConfig(evaluations=10, restarts=1), 0
    )
    mean, variance = model.predict(cartpole_data.inputs, model.infer(cartpole_data))
    assert np.isfinite(mean).all() and (variance > 0).all()


def test_one_task_is_enough(small_config):
    data = cart_poles(TASKS[:1], 12)
    model = fit_model(data, small_config, FitConfig(evaluations=10, restarts=2), seed=0)
    assert len(model.gp.zx) == 11, "never more inducing points than there are transitions"
    mean, _ = model.predict(data.inputs, model.embeddings)
    assert np.isfinite(mean).all()


@pytest.mark.parametrize("part", ["inputs", "targets", "descriptors"])
def test_data_that_are_not_numbers(cartpole_data, small_config, part):
    broken = getattr(cartpole_data, part).copy()
    broken[1, ..., 1] = np.nan
    with pytest.raises(UserError, match=f"The {part} of task 1 are not all finite"):
        fit_model(replace(cartpole_data, **{part: broken}), small_config, FitConfig(), seed=0)


@pytest.mark.parametrize("kind", ["collapsed", "svgp"])
def test_float32_predicts_like_float64(cartpole_data, small_config, kind):
    """Half the digits cost some of the fit, not the predictions."""
    fit, errors = FitConfig(kind=kind, evaluations=40, adam_steps=200, restarts=1), []
    for dtype in ("float64", "float32"):
        model = fit_model(cartpole_data, small_config.model_copy(update={"dtype": dtype}), fit, seed=0)
        mean, variance = model.predict(cartpole_data.inputs, model.infer(cartpole_data))
        assert np.isfinite(variance).all()
        errors.append(np.sqrt(np.mean(((mean - cartpole_data.targets) / model.targets.scale) ** 2)))
    assert errors[1] == pytest.approx(errors[0], rel=0.3)
    assert errors[0] < 0.5
