"""Images in the model: the bound by hand, networks and their contract, what the joint fit learns."""

import math
import sys

import numpy as np
import pytest
import torch
from scipy.stats import norm, spearmanr
from torch import nn

from distpaml.config import load
from distpaml.config.schema import ModelConfig
from distpaml.data import ImageSet
from distpaml.data.tasks import TaskSet
from distpaml.errors import UserError
from distpaml.model import joint
from distpaml.model.fit import place
from distpaml.model.image_model import check_settings, fit_image_model, new_image_vae, reported_base
from distpaml.model.image_vae import Encoded, ImageVAE
from distpaml.model.latent_gp import LatentGP
from distpaml.model.meta_model import training_set
from distpaml.model.networks import Network, make_network
from distpaml.model.posterior import Posterior
from distpaml.model.stochastic import Inducing
from distpaml.model.storage import load_model, serialised
from distpaml.runtime.local import LocalSimulator

SMALL = [
    "descriptor.images=30",
    "descriptor.height=32",
    "descriptor.width=8",
    "domain.trajectory_length=30",
    "model.inducing=40",
]


class ByHand(Network):
    """Of one pixel p: h ~ N(2p, e^-1), logit = 3h."""

    def encode(self, images):
        return 2.0 * images[:, :, 0], torch.full((len(images), 1), -1.0, dtype=images.dtype)

    def decode(self, h):
        return 3.0 * h.unsqueeze(-1)


def test_the_bound_of_two_images_of_one_pixel_is_the_one_computed_by_hand():
    vae = ImageVAE(ByHand(1, 1, 1), torch.tensor([0.25, 0.5]).double().view(2, 1, 1), torch.zeros(2, 1))
    base = torch.tensor([1.0, -0.5]).double().view(2, 1, 1).expand(2, 2, 1)
    found = vae.bound(vae.encoded(), base)
    for p, bound in zip((0.25, 0.5), found.tolist(), strict=True):
        log_density = 0.0
        for e in (1.0, -0.5):
            grey = 1.0 / (1.0 + math.exp(-3.0 * (2.0 * p + math.exp(-0.5) * e)))
            log_density += (p * math.log(grey) + (1.0 - p) * math.log(1.0 - grey)) / 2.0
        divergence = 0.5 * (math.exp(-1.0) + (2.0 * p) ** 2 - 1.0 + 1.0)
        assert bound == pytest.approx(log_density - divergence, abs=1e-12)


def test_the_bound_is_below_the_evidence():
    """For images that are black or white the evidence is an integral over one latent."""
    vae = ImageVAE(ByHand(1, 1, 1), torch.tensor([0.0, 1.0]).double().view(2, 1, 1), torch.zeros(2, 1))
    base = torch.randn(20_000, 2, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = np.linspace(-8, 8, 4001)
    white = np.trapezoid(norm.pdf(h) / (1 + np.exp(-3 * h)), h)
    bound = vae.bound(vae.encoded(), base)
    assert bound[0] < math.log(1 - white) and bound[1] < math.log(white)


def test_a_message_is_the_expected_log_density_of_a_gaussian():
    encoded = Encoded(torch.tensor([[0.3, -1.0]]).double(), torch.tensor([[-2.0, 0.5]]).double())
    message = joint.Message(torch.tensor([[0.5, 0.0]]).double(), torch.tensor([[4.0, 9.0]]).double())
    eps = torch.randn(400_000, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    square = (encoded.sample(eps) - message.mean).square()
    sampled = -0.5 * (message.precision * square).sum(-1).mean().item()
    assert message.expected(encoded).item() == pytest.approx(sampled, rel=5e-3)


class Setting:
    """Images of 30 poles and the data of four of them."""

    def __init__(self) -> None:
        self.config = load("cartpole_images", SMALL)
        self.task_set = TaskSet(self.config)
        rows = [0, 10, 20, 29]
        self.data = (
            LocalSimulator(self.config).simulate(self.task_set.chosen(self.task_set.choices[rows], first=0)).result()
        )
        self.image_set = self.task_set.image_set(self.data.descriptors)
        self.training = training_set(self.data, self.config.model, 1, 0)[0]

    def start(self) -> LatentGP:
        gp = LatentGP(6, 4, self.training.x.new_zeros(4, 2), self.training.descriptors)
        gp.decoder = new_image_vae(self.image_set, self.config.model, 0)
        return gp


@pytest.fixture(scope="module")
def setting() -> Setting:
    return Setting()


def length_order(vae: ImageVAE) -> float:
    """|Spearman| of the true length and its best linear guess from the latents."""
    means, lengths = vae.encoded().mean.detach().numpy(), vae.labels[:, 0].numpy()
    features = np.column_stack([means, np.ones(len(means))])
    guess = features @ np.linalg.lstsq(features, lengths, rcond=None)[0]
    return abs(spearmanr(guess, lengths)[0])


@pytest.mark.parametrize("network, steps", [("mlp", 150), ("conv", 150)])
def test_the_encoder_recovers_the_order_of_lengths_from_images_alone(setting, network, steps):
    model = setting.config.model.model_copy(update={"network": network})
    vae = new_image_vae(setting.image_set, model, 0)
    joint.learn_images(vae, steps, 5e-3, torch.Generator().manual_seed(0))
    assert length_order(vae) >= 0.95


def test_the_joint_bound_is_that_of_the_gp_at_the_encoders_embeddings(setting):
    gp = setting.start()
    joint.embed(gp, setting.training)
    place(gp, setting.training, ModelConfig(inducing=40))
    vae = joint.image_vae_of(gp)
    base = reported_base(vae, 3)
    terms = joint.joint_terms(gp, vae, setting.training, base)
    assert terms.data.item() == pytest.approx(gp.evidence(setting.training).item(), rel=1e-12)
    assert (terms.latent + terms.decoder).item() == pytest.approx(
        vae.bound(vae.encoded(), base).sum().item(), rel=1e-12
    )


def test_gradients_of_the_gps_bound_flow_into_the_encoder(setting):
    """Against finite differences, along the gradient in the encoder's weights."""
    gp = setting.start()
    joint.embed(gp, setting.training)
    place(gp, setting.training, ModelConfig(inducing=40))
    vae = joint.image_vae_of(gp)
    rows = vae.rows(setting.training.descriptors)

    def evidence():
        return joint.encoded_gp(gp, vae.encoded().take(rows), lambda gp: gp.evidence(setting.training))

    weights = [weight for name, weight in vae.network.named_parameters() if name.startswith("encoder")]
    gradient = torch.autograd.grad(evidence(), weights)
    size = sum(g.square().sum() for g in gradient).sqrt()
    step = 1e-6
    values = []
    with torch.no_grad():
        for sign in (1.0, -2.0):
            for weight, g in zip(weights, gradient, strict=True):
                weight += sign * step * g / size
            values.append(evidence().item())
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(size.item(), rel=1e-3)


def test_the_optimal_inducing_distribution_gives_the_collapsed_bound(setting):
    gp = setting.start()
    joint.embed(gp, setting.training)
    place(gp, setting.training, ModelConfig(inducing=40))
    vae, best = joint.image_vae_of(gp), Posterior.collapsed(gp, setting.training)
    root = torch.linalg.cholesky(torch.cholesky_inverse(best.root))
    base = reported_base(vae, 3)
    with torch.no_grad():
        collapsed = joint.joint_terms(gp, vae, setting.training, base).total
        explicit = joint.joint_terms(gp, vae, setting.training, base, Inducing(best.w, root)).total
    assert explicit.item() == pytest.approx(collapsed.item(), abs=1e-5)


@pytest.fixture(scope="module")
def fitted(setting):
    fit = setting.config.fit.model_copy(update={"evaluations": 20})
    return fit_image_model(setting.data, setting.image_set, setting.config.model, fit, 0)


def test_the_joint_fit_uses_the_latents_and_keeps_the_order(setting, fitted):
    assert length_order(fitted.image_vae) >= 0.95
    assert fitted.embeddings.variance.median() < 1e-2  # the images alone leave it at 0.1
    rows = fitted.image_vae.rows(fitted.descriptors)
    torch.testing.assert_close(fitted.embeddings.mean, fitted.image_vae.encoded().mean[rows].detach(), rtol=0, atol=0)
    spread = fitted.image_vae.encoded().mean.detach().std(0).max() * fitted.gp.values.rate_h.detach().max()
    assert spread > 0.02


def test_the_joint_fit_is_far_above_two_hundred_steps_of_the_papers_schedule(setting, fitted):
    fit = setting.config.fit.model_copy(update={"kind": "svgp", "adam_steps": 200})
    paper = fit_image_model(setting.data, setting.image_set, setting.config.model, fit, 0)
    assert paper.terms["elbo"] > -1e5
    assert fitted.terms["elbo"] > paper.terms["elbo"] + 500


def test_the_papers_schedule_climbs_and_keeps_its_best(setting):
    gp, seen = setting.start(), []
    fit = setting.config.fit.model_copy(update={"adam_steps": 200})
    base = reported_base(joint.image_vae_of(gp), 3)
    watch = lambda step, value: seen.append(value)  # noqa: E731
    q = joint.fit_joint_stochastic(gp, setting.training, ModelConfig(inducing=40), fit, base, 0, watch)
    assert len(seen) == 3 and seen[-1] > seen[0] + 1000
    kept = joint.joint_terms(gp, joint.image_vae_of(gp), setting.training, base, q).total
    assert kept.item() == pytest.approx(max(seen), rel=1e-9)


def test_the_same_seed_is_the_same_model_whatever_was_drawn_before(setting, fitted):
    torch.manual_seed(123)
    state = torch.random.get_rng_state()
    fit = setting.config.fit.model_copy(update={"evaluations": 20})
    again = fit_image_model(setting.data, setting.image_set, setting.config.model, fit, 0)
    assert again.terms == fitted.terms
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_model_of_images_survives_its_file(fitted, tmp_path, setting):
    (tmp_path / "model.safetensors").write_bytes(serialised(fitted))
    loaded = load_model(tmp_path / "model.safetensors")
    assert torch.equal(loaded.image_vae.encoded().mean, fitted.image_vae.encoded().mean)
    assert torch.equal(loaded.image_vae.samples(3, 0), fitted.image_vae.samples(3, 0))
    assert torch.equal(loaded.infer(setting.data).mean, fitted.infer(setting.data).mean)
    images, _ = loaded.decode(loaded.embeddings.mean.numpy())
    assert images.shape == (4, 32 * 8) and images.min() >= 0 and images.max() <= 1


def test_images_that_changed_since_the_last_round_are_refused(setting, fitted):
    other = ImageSet(setting.image_set.images * 0.9, setting.image_set.labels)
    with pytest.raises(UserError, match="drawn differently from those of the last round"):
        fit_image_model(setting.data, other, setting.config.model, setting.config.fit, 0, fitted)


def test_what_images_cannot_do_is_a_sentence(setting, fitted):
    with pytest.raises(UserError, match="infer them from transitions"):
        fitted.infer(setting.data, use_descriptors=True)
    fit = setting.config.fit.model_copy(update={"kind": "svgp-ngd"})
    with pytest.raises(UserError, match="'collapsed' or 'svgp'"):
        check_settings(setting.image_set, setting.config.model, fit)
    with pytest.raises(UserError, match="no image with the label"):
        fitted.image_vae.rows(torch.tensor([[9.0]]).double())


OWN = """
import torch
from torch import nn
from distpaml.model.networks import Mlp, Network

class Good(Mlp):
    pass

class Dropping(Mlp):
    def encode(self, images):
        return super().encode(nn.functional.dropout(images, 0.5))

class Normalising(Mlp):
    def encode(self, images):
        return super().encode((images - images.mean(0)) / (images.std(0, correction=0) + 1e-3))

class Tall(Mlp):
    def decode(self, h):
        return super().decode(h).mT

class Single(Mlp):
    def encode(self, images):
        return super().encode(images)[0]

class Wide(Mlp):
    def encode(self, images):
        mean, log_variance = super().encode(images)
        return mean.repeat(1, 2), log_variance

class Constant(Network):
    def encode(self, images):
        return torch.zeros(len(images), 2), torch.zeros(len(images), 2)

class Infinite(Mlp):
    def decode(self, h):
        return super().decode(h) / 0.0

class Broken(Network):
    pass

class Stranger(nn.Module):
    pass
"""


@pytest.mark.parametrize(
    "name, fault",
    [
        ("Good", None),
        ("Dropping", "leave out dropout"),
        ("Normalising", "leave out batch normalisation"),
        ("Tall", r"decodes latents of shape \[2, 3, 2\] to \[2, 3, 8, 12\], not \[2, 3, 12, 8\]"),
        ("Single", "a pair of mean and log variance"),
        ("Wide", r"a mean of shape \[3, 4\], which should be \[3, 2\]"),
        ("Constant", "no weights that its encoding depends on"),
        ("Infinite", "not finite"),
        ("Broken", "NotImplementedError"),
        ("Stranger", "not a subclass of distpaml.model.networks.Network"),
        ("Missing", "has no Missing"),
    ],
)
def test_a_network_of_ones_own_keeps_the_contract_or_is_a_sentence(tmp_path, monkeypatch, name, fault):
    (tmp_path / "my_network.py").write_text(OWN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "my_network", raising=False)
    reference = f"my_network:{name}"
    if fault is None:
        network = make_network(reference, 12, 8, 2, 0, torch.float64)
        assert isinstance(network, nn.Module)
        return
    with pytest.raises(UserError, match=fault) as caught:
        make_network(reference, 12, 8, 2, 0, torch.float64)
    assert "model.network" in str(caught.value) and reference in str(caught.value)


@pytest.mark.parametrize("name", ["mlp", "conv"])
@pytest.mark.parametrize("height, width", [(64, 16), (9, 13)])
def test_shipped_networks_keep_the_contract_at_any_size(name, height, width):
    first, second = (make_network(name, height, width, 3, 7, torch.float64) for _ in range(2))
    images = torch.rand(2, height, width, dtype=torch.float64)
    assert torch.equal(first.encode(images)[0], second.encode(images)[0])
    other = make_network(name, height, width, 3, 8, torch.float64)
    assert not torch.equal(first.encode(images)[0], other.encode(images)[0])


def test_an_unknown_network_is_a_sentence():
    with pytest.raises(UserError, match=r"model\.network is 'mpl', but should be mlp, conv or your own"):
        make_network("mpl", 8, 8, 2, 0, torch.float64)
