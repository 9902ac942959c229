"""The meta-model as the rest of the program sees it: data in raw units in, predictions in raw units out."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.data import Dataset, Standardiser
from distpaml.model.collapsed import FitError
from distpaml.model.device import CPU, device_name, device_of_fit, normal
from distpaml.model.fit import fit_collapsed
from distpaml.model.image_vae import ImageVAE
from distpaml.model.inference import Described, infer
from distpaml.model.latent_gp import LatentGP, Terms, TrainingSet
from distpaml.model.posterior import Latents, Posterior
from distpaml.model.shards import LocalShards, MakePool
from distpaml.model.stochastic import explicit_bound, fit_stochastic
from distpaml.types import Array


@dataclass
class MetaModel:
    """A fitted model; `fit_model` makes one, nothing changes it."""

    gp: LatentGP
    posterior: Posterior
    inputs: Standardiser
    targets: Standardiser
    descriptors: Tensor  # [N, E], of the training tasks
    terms: Mapping[str, float]
    """The bound and its terms: elbo, data_fit, kl_inducing, kl_latent, decoder, prior; and the evaluations it took."""
    start: str = ""
    """Which of the competing starts won: last, opened, scratch, random-1, …"""
    fitted_on: str = "cpu"
    """`cpu`, or the name of the GPU."""

    def to(self, device: torch.device) -> "MetaModel":
        """The same model on `device`, where it then infers and predicts."""
        if self.descriptors.device == device:
            return self
        gp = deepcopy(self.gp).to(device)
        return replace(self, gp=gp, posterior=self.posterior.to(device), descriptors=self.descriptors.to(device))

    @property
    def embeddings(self) -> Latents:
        """q(h) of the training tasks."""
        return Latents(self.gp.mean.detach(), self.gp.variance.detach(), self.gp.log_ratio.detach().exp())

    @property
    def image_vae(self) -> ImageVAE | None:
        """The images and their network, if tasks are described by images."""
        return self.gp.decoder if isinstance(self.gp.decoder, ImageVAE) else None

    def infer(
        self, data: Dataset, steps: int = 100, starts: Array | None = None, use_descriptors: bool = False
    ) -> Latents:
        """q(h) of the tasks in `data`, from their valid transitions and, if wanted, from their descriptors.

        `starts` [S, Q] are more latents to begin the search from, beside the embeddings. A task without evidence keeps
        the prior.
        """
        known = np.full(len(data), True) if use_descriptors else data.counts > 0
        latents = Latents.prior(len(data), self.gp.mean.detach())
        if known.any():
            x, y = self._tensors(data)
            extra = [self.gp.mean.detach()] + ([] if starts is None else [self._tensor(starts)])
            index = torch.as_tensor(np.flatnonzero(known), device=x.device)
            found = infer(
                self.posterior,
                x[index],
                y[index],
                data.counts[known].tolist(),
                torch.cat(extra),
                steps,
                Described(self._tensor(data.descriptors)[index], self._decode) if use_descriptors else None,
                self.gp.task_noise,
            )
            latents.mean[index], latents.variance[index], latents.ratio[index] = found.mean, found.variance, found.ratio
        return latents

    def predict(self, inputs: Array, latents: Latents) -> tuple[Array, Array]:
        """Mean and variance [N, T, D] of one-step differences at inputs [N, T, dx], exact under q(h)."""
        x = self._tensor(self.inputs.apply(inputs))
        mean, variance = (part.cpu().numpy() for part in self.posterior.predict(x, latents.to(x.device)))
        return self.targets.undo(mean), variance * self.targets.scale**2

    def _decode(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.gp.decoder.conditional(h, self.gp.mean.detach(), self.descriptors)

    def decode(self, latents: Array) -> tuple[Array, Array]:
        """Mean and variance [K, E] of the descriptors at latents [K, Q]."""
        mean, variance = self.gp.decoder.predict(self._tensor(latents), self.gp.mean.detach(), self.descriptors)
        return mean.cpu().numpy(), variance.cpu().numpy()

    def _tensor(self, values: Array) -> Tensor:
        return torch.as_tensor(values, dtype=self.descriptors.dtype, device=self.descriptors.device)

    def _tensors(self, data: Dataset) -> tuple[Tensor, Tensor]:
        scaled = data.standardised(self.inputs, self.targets)
        return self._tensor(scaled.inputs), self._tensor(scaled.targets)


def fit_model(
    data: Dataset,
    model: ModelConfig,
    fit: FitConfig,
    seed: int,
    last: MetaModel | None = None,
    starts: Array | None = None,
    pool: MakePool = LocalShards,
) -> MetaModel:
    """Fit to `data`, from `last` if there is one, whose tasks come first in `data`.

    `starts` [K, Q] are guesses for the latents of the new tasks, such as those they were chosen for.
    `pool` says where the shards of the tasks live. All is computed on `fit.device`; the model returns on the CPU.
    """
    device = device_of_fit(fit.device)
    training, inputs, targets = training_set(data, model, fit.shards, seed, pool, device)
    first = None if last is None else _warm_start(last.to(device), data, inputs, targets, training.descriptors, starts)
    if fit.kind == "collapsed":
        result, terms = fit_collapsed(training, first, model, fit, seed)
        gp = result.gp
        posterior = Posterior.collapsed(gp, training)
    else:
        result, q = fit_stochastic(training, first, model, fit, seed)
        gp = result.gp
        posterior, terms = q.posterior(gp), explicit_bound(gp, training, q)
    plain = plain_terms(terms, posterior, len(result.values))
    fitted = MetaModel(gp, posterior, inputs, targets, training.descriptors, plain, result.start, device_name(device))
    return fitted.to(CPU)


def training_set(
    data: Dataset,
    model: ModelConfig,
    shards: int,
    seed: int,
    pool: MakePool = LocalShards,
    device: torch.device = CPU,
) -> tuple[TrainingSet, Standardiser, Standardiser]:
    """The data in standardised units with the decoder's base samples, and the units of inputs and targets."""
    for part in ("inputs", "targets", "descriptors"):
        finite = np.isfinite(getattr(data, part)).reshape(len(data), -1).all(1)
        if not finite.all():
            raise FitError(f"The {part} of task {int(np.argmin(finite))} are not all finite numbers.")
    inputs, targets = (Standardiser.fit(part[data.valid]) for part in (data.inputs, data.targets))
    scaled = data.standardised(inputs, targets)
    dtype = getattr(torch, model.dtype)
    parts = (scaled.inputs, scaled.targets, data.descriptors)
    x, y, descriptors = (torch.as_tensor(part, dtype=dtype, device=device) for part in parts)
    generator = torch.Generator().manual_seed(seed)
    pairs = (model.decoder_samples + 1) // 2
    base = normal(pairs, len(data), model.latent, like=x, generator=generator)
    counts = data.counts.tolist()
    base = torch.cat([base, -base])
    return TrainingSet(x, y, counts, descriptors, base, pool(x, y, counts, shards)), inputs, targets


def _warm_start(
    last: MetaModel,
    data: Dataset,
    inputs: Standardiser,
    targets: Standardiser,
    descriptors: Tensor,
    starts: Array | None,
) -> LatentGP:
    """The last model's parameters in the units of the new data (save the amplitude, which all outputs share).

    New tasks start at their latents under the last model, inferred from their data, with `starts` tried too.
    """
    old = len(last.gp.mean)
    latents = last.infer(data.tasks(slice(old, None)), starts=starts)
    mean = torch.cat([last.gp.mean.detach(), latents.mean])
    gp = LatentGP(data.inputs.shape[-1], data.targets.shape[-1], mean, descriptors, last.gp.task_noise)
    inherit(gp, last, inputs, targets)
    gp.decoder.load_state_dict(last.gp.decoder.state_dict())
    with torch.no_grad():
        gp.log_variance[:old] = last.gp.log_variance
        gp.log_ratio[:old] = last.gp.log_ratio
    return gp


@torch.no_grad()
def inherit(gp: LatentGP, last: MetaModel, inputs: Standardiser, targets: Standardiser) -> None:
    """Give the GP the last model's kernel and noise in the units of `inputs` and `targets`."""
    gp.kernel.load_state_dict(last.gp.kernel.state_dict())
    gp.likelihood.load_state_dict(last.gp.likelihood.state_dict())
    units, noise = gp.kernel.base_kernel.raw_lengthscale, gp.likelihood.noise_covar.raw_noise
    units[0, : len(inputs.scale)] += torch.as_tensor(last.inputs.scale / inputs.scale).log().to(units)
    noise += 2.0 * torch.as_tensor(last.targets.scale / targets.scale).log()[:, None].to(noise)


def plain_terms(terms: Terms, posterior: Posterior, evaluations: int) -> dict[str, float]:
    """What a record says of the bound."""
    divergence = posterior.divergence().sum()
    return {
        "elbo": terms.total.item(),
        "data_fit": (terms.data + divergence).item(),
        "kl_inducing": divergence.item(),
        "kl_latent": -terms.latent.item(),
        "decoder": terms.decoder.item(),
        "prior": terms.prior.item(),
        "evaluations": evaluations,
    }
