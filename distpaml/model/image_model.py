"""A meta-model of tasks that are described by images: `fit_model` with a network in the place of the decoder."""

from collections.abc import Callable

import torch
from torch import Tensor

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.data import Dataset, ImageSet
from distpaml.errors import UserError
from distpaml.model.device import CPU, device_name, device_of_fit, normal
from distpaml.model.image_vae import ImageVAE
from distpaml.model.joint import fit_joint, fit_joint_stochastic, joint_terms
from distpaml.model.latent_gp import LatentGP
from distpaml.model.meta_model import MetaModel, inherit, plain_terms, training_set
from distpaml.model.networks import make_network
from distpaml.model.posterior import Posterior

REPORTED = 16
"""Pairs of samples of the latents in the bound that is reported."""


def new_image_vae(image_set: ImageSet, model: ModelConfig, seed: int) -> ImageVAE:
    """All images with a network that has learned nothing yet."""
    dtype = getattr(torch, model.dtype)
    _, height, width = image_set.images.shape
    network = make_network(model.network, height, width, model.latent, seed, dtype)
    images, labels = (torch.as_tensor(part, dtype=dtype) for part in (image_set.images, image_set.labels))
    return ImageVAE(network, images, labels, model.network)


def check_settings(image_set: ImageSet, model: ModelConfig, fit: FitConfig) -> None:
    """A `UserError` if such a model cannot be fitted, before anything else is done."""
    if fit.kind == "svgp-ngd":
        raise UserError("fit.kind is 'svgp-ngd', but a model of images is fitted by 'collapsed' or 'svgp'.")
    new_image_vae(image_set, model, seed=0)


def reported_base(vae: ImageVAE, seed: int) -> Tensor:
    """The samples [S, K, Q] of the bound that is reported, and by which the paper's procedure keeps its best state."""
    generator = torch.Generator().manual_seed(seed)
    base = normal(REPORTED, len(vae), vae.network.latent, like=vae.images, generator=generator)
    return torch.cat([base, -base])


def fit_image_model(
    data: Dataset,
    image_set: ImageSet,
    model: ModelConfig,
    fit: FitConfig,
    seed: int,
    last: MetaModel | None = None,
    watch: Callable[[int, float], None] = lambda step, bound: None,
) -> MetaModel:
    """Fit to `data`, whose descriptors are labels of images in `image_set`; the kernel starts from that of `last`.

    `watch(step, bound)` hears of the progress of the paper's schedule.
    """
    device = device_of_fit(fit.device)
    training, inputs, targets = training_set(data, model, fit.shards, seed, device=device)
    vae = new_image_vae(image_set, model, seed)
    if last is not None and last.image_vae is not None:
        _check_the_same(vae, last.image_vae)
    vae = vae.to(device)
    mean = training.x.new_zeros(len(data), model.latent)
    gp = LatentGP(training.x.shape[-1], training.y.shape[-1], mean, training.descriptors, model.noise == "task")
    gp.decoder = vae
    if last is not None:
        inherit(gp, last, inputs, targets)
        with torch.no_grad():  # a new network has a new latent space
            gp.kernel.base_kernel.raw_lengthscale[0, -model.latent :] = LatentGP.LATENT_SCALE
    base = reported_base(vae, seed + 1)
    if fit.kind == "collapsed":
        evaluations = len(fit_joint(gp, training, model, fit, seed + 2))
        q, posterior = None, Posterior.collapsed(gp, training)
    else:
        evaluations = fit.adam_steps
        q = fit_joint_stochastic(gp, training, model, fit, base, seed + 2, watch)
        posterior = q.posterior(gp)
    with torch.no_grad():
        terms = joint_terms(gp, vae, training, base, q)
    for parameter in gp.parameters():
        parameter.grad = None
    plain = plain_terms(terms, posterior, evaluations)
    fitted = MetaModel(gp, posterior, inputs, targets, training.descriptors, plain, fitted_on=device_name(device))
    return fitted.to(CPU)


def _check_the_same(now: ImageVAE, before: ImageVAE) -> None:
    """Images must not change in the middle of a run, as they might on a machine with other GL libraries."""
    if not torch.equal(now.images, before.images):
        raise UserError(
            "The images are drawn differently from those of the last round; go on where the run began, or with the "
            "same GL libraries."
        )
