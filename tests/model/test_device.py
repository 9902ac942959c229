"""The model on a device other than the CPU, without one.

torch's `meta` device has shapes and no values: an operation with a tensor made elsewhere fails. `pretend` gives it
values, so that whole runs can be compared with those of the CPU.
"""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch
from dense import double
from known_tasks import candidates
from pretend import PRETENDED, pretend_device
from tiny import run_loop, tiny

from distpaml.config.schema import FitConfig
from distpaml.errors import UserError
from distpaml.model import collapsed, decoder, device, inference
from distpaml.model.device import CPU, device_here, device_name, device_of_fit
from distpaml.model.latent_gp import TrainingSet
from distpaml.model.meta_model import fit_model
from distpaml.model.posterior import Latents, Posterior
from distpaml.model.rollouts import rollout
from distpaml.select.context import SelectionContext
from distpaml.select.utilities import UTILITIES

META = torch.device("meta")


@pytest.fixture
def on_meta(problem, monkeypatch):
    """The small problem without values; whether a matrix is positive definite is then nobody's question."""
    for module in (collapsed, decoder):
        monkeypatch.setattr(module, "safe_cholesky", lambda matrix, what: torch.linalg.cholesky(matrix))
    gp, data = problem
    tensors = (part.to(META) for part in (data.x, data.y, data.descriptors, data.base))
    x, y, descriptors, base = tensors
    return gp.to(META), TrainingSet.make(x, y, data.counts, descriptors, base)


@pytest.mark.parametrize("uncertain", [True, False])
def test_the_bound_and_its_gradient_on_meta(on_meta, uncertain):
    gp, data = on_meta
    total = gp.terms(data, uncertain).total
    total.backward()
    assert total.device == META
    for name, parameter in gp.named_parameters():
        assert parameter.grad.device == META and parameter.grad.shape == parameter.shape, name


def test_predictions_on_meta(on_meta):
    posterior = Posterior.collapsed(*on_meta)
    x = torch.zeros(5, 4, 2, dtype=torch.float64, device=META)
    mean, variance = posterior.predict(x, Latents.prior(5, posterior.zh))
    assert mean.device == variance.device == META and mean.shape == variance.shape == (5, 4, 2)


def test_the_parts_of_inference_on_meta(on_meta):
    """All but the loop, which asks for values."""
    posterior, (_, data) = Posterior.collapsed(*on_meta), on_meta
    kx, n = torch.zeros(3, 5, 6, dtype=torch.float64, device=META), Latents.prior(3, posterior.zh).mean
    starts = inference.coarse_starts(n)
    found = inference._best_start(posterior, kx, data.y, starts, None, data.lengths)
    step = inference._evaluate(posterior, kx, data.y, data.valid, n, data.lengths, spread=True)
    bent = inference._second_derivatives(posterior, kx, data.y, n, step.pull)
    learned = inference._bfgs(step.curvature, n, step.gradient)
    for part, shape in (
        (found, (3, 2)),
        (step.value, (3,)),
        (step.gradient, (3, 2)),
        (bent, (3, 2)),
        (learned, (3, 2, 2)),
    ):
        assert part.device == META and part.shape == shape


@pytest.mark.parametrize("group", [2, 3, 8])
def test_tasks_predicted_together_are_those_predicted_one_by_one(problem, group):
    posterior = Posterior.collapsed(*problem)
    x, latents = double(7, 4, 2), Latents(double(7, 2), double(7, 2).exp(), double(7).exp())
    for alone, together in zip(posterior.predict(x, latents), posterior.predict(x, latents, group), strict=True):
        assert torch.allclose(alone, together, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("block", [1, 4])
def test_tasks_inferred_together_are_those_inferred_by_blocks(fitted_with_task_noise, cartpole_data, block):
    model = fitted_with_task_noise
    x, y = model._tensors(cartpole_data)
    known = model.posterior, x, y, cartpole_data.counts.tolist(), model.gp.mean.detach()
    blocks = [inference.infer(*known, task_noise=True, block=size) for size in (block, 3)]
    for name in ("mean", "variance", "ratio"):
        assert torch.allclose(*(getattr(latents, name) for latents in blocks), rtol=1e-10, atol=1e-10), name


def test_numbers_of_the_two_devices_do_not_mix():
    """The device of these tests is as strict as a GPU."""
    with pretend_device() as device:
        here, there = torch.ones(2), torch.ones(2, device=PRETENDED)
        assert (there + there.to(CPU).to(PRETENDED)).cpu().tolist() == [2.0, 2.0]
        assert (2.0 * there[0] + torch.tensor(1.0)).item() == 3.0
        here.copy_(2.0 * there)
        assert here.tolist() == [2.0, 2.0] and device.operations > 5
        for forbidden in (
            lambda: here + there,
            lambda: there[torch.tensor([0])],
            lambda: torch.randn(2, device=PRETENDED, generator=torch.Generator()),
            lambda: torch.linalg.lstsq(there[:, None], there[:, None], driver="gelsd"),
            there.numpy,
        ):
            with pytest.raises(RuntimeError):
                forbidden()


@pytest.fixture
def gpu(monkeypatch):
    """This process has a GPU, pretended."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(device, "GPU", PRETENDED)
    with pretend_device() as operations:
        yield operations


@pytest.mark.parametrize("kind", ["collapsed", "svgp", "svgp-ngd"])
def test_a_fit_elsewhere_is_that_of_the_cpu(cartpole_data, small_config, gpu, kind):
    """Two rounds, so that the second starts from the first's model; then all that a model can do."""
    settings = {"kind": kind, "evaluations": 6, "settling": 3, "restarts": 2, "adam_steps": 10, "batch_tasks": 2}
    model = small_config.model_copy(update={"noise": "task"})
    found = []
    for name in ("cpu", "auto"):
        fit, last, before = FitConfig(device=name, **settings), None, gpu.operations
        for tasks in (2, 4):
            last = fit_model(cartpole_data.tasks(slice(0, tasks)), model, fit, 0, last)
        assert last.fitted_on == name.replace("auto", "meta") and last.descriptors.device == CPU
        assert (gpu.operations > before + 1000) == (name == "auto")
        found.append(last)
    here, there = found
    assert there.terms == pytest.approx(here.terms, rel=1e-5)
    moved = there.to(PRETENDED)
    latents = moved.infer(cartpole_data, use_descriptors=True)
    assert latents.mean.device == PRETENDED and moved.to(PRETENDED) is moved
    mean, variance = moved.predict(cartpole_data.inputs, latents)
    expected = there.predict(cartpole_data.inputs, there.infer(cartpole_data, use_descriptors=True))
    assert mean == pytest.approx(expected[0], rel=1e-6, abs=1e-8) and variance == pytest.approx(expected[1], rel=1e-6)
    assert moved.decode(np.zeros((3, 2)))[0] == pytest.approx(there.decode(np.zeros((3, 2)))[0], rel=1e-9)
    start, controls, one = np.zeros(4), np.zeros((5, 1)), latents.take(slice(0, 1))
    states = [rollout(model, start, controls, own, [1], 3, 0) for model, own in ((moved, one), (there, one.to(CPU)))]
    assert states[0] == pytest.approx(states[1], rel=1e-6)


SHORT = "rounds=1", "fit.evaluations=5", "fit.settling=3"


def test_a_whole_run_elsewhere_is_that_of_the_cpu(gpu):
    """Fits, choices of two tasks by a utility that uses the model, evaluations."""
    overrides = *SHORT, "method=paml-pool", "selection.utility=predictive_variance", "selection.batch=2"
    runs = (run_loop(tiny(*overrides, "evaluation.shots=[0, 5]", f"fit.device={name}")) for name in ("cpu", "auto"))
    for here, there in zip(*runs, strict=True):
        assert (here.record.device, there.record.device) == ("cpu", "meta")
        assert there.record.rmse == pytest.approx(here.record.rmse, rel=1e-3)
        assert there.record.added[-1].descriptor == here.record.added[-1].descriptor


ON_THE_CPU = "surprisal", "latent_maximin", "descriptor_maximin"


@pytest.mark.parametrize("name", UTILITIES.keys() - ON_THE_CPU)
def test_utilities_score_elsewhere(gpu, name):
    first = run_loop(tiny(*SHORT, "rounds=0", "fit.device=cpu"))[0]
    some = candidates(np.random.default_rng(1).normal(0, 1.5, (20, 2)))
    box = np.array([0.5, 0.5]), np.array([5.0, 2.0])
    context = SelectionContext.of(first.model, first.data, some, *box).observing(some.take(slice(0, 1)))
    before = gpu.operations
    there = UTILITIES[name](some, replace(context, device=PRETENDED))
    assert gpu.operations > before
    assert there == pytest.approx(UTILITIES[name](some, context), rel=1e-9)


@pytest.mark.gl
@pytest.mark.filterwarnings("ignore:for .* copying from a non-meta parameter")  # torch does not know of its values
@pytest.mark.parametrize("kind", ["collapsed", "svgp"])
def test_a_fit_with_images_elsewhere_is_that_of_the_cpu(gpu, kind, monkeypatch):
    optimiser = import_module("torch.optim.optimizer")  # torch hides the name of its module
    monkeypatch.setattr(optimiser, "_get_fused_kernels_supported_devices", lambda: ["cpu", "meta"])
    overrides = *SHORT, "method=paml", "descriptor.images=8", f"fit.kind={kind}", "fit.adam_steps=10"
    sizes = "descriptor.height=32", "descriptor.width=8"
    here, there = (
        run_loop(tiny(*overrides, *sizes, f"fit.device={name}", experiment="cartpole_images"))[-1].record
        for name in ("cpu", "auto")
    )
    assert (here.device, there.device) == ("cpu", "meta")
    assert there.terms == pytest.approx(here.terms, rel=1e-3)


def test_what_a_config_means_where_there_is_no_gpu(monkeypatch, cartpole_data, small_config):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert {device_here(name) for name in ("auto", "cpu", "cuda")} == {CPU}
    assert device_of_fit("auto") == CPU and device_name(CPU) == "cpu"
    with pytest.raises(
        UserError, match=r"^fit\.device is 'cuda', but there is no GPU .*fit\.device=auto to fit without one\.$"
    ):
        fit_model(cartpole_data, small_config, FitConfig(device="cuda"), seed=0)
    with pytest.raises(
        UserError, match=r"^runtime\.gpus is 0\.5, but there is no GPU .*runtime\.gpus=0 to fit without one\.$"
    ):
        run_loop(tiny("runtime.gpus=0.5"))


def test_what_a_config_means_where_there_is_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {device.index}")
    assert device_of_fit("auto") == device_of_fit("cuda") == device_here("cuda") == torch.device("cuda", 0)
    assert device_of_fit("cpu") == CPU and device_name(device_here("auto")) == "GPU 0"
