"""The joint fit of the GP and of the network that encodes images.

The embeddings of the training tasks are outputs of the encoder, and everything is learned from one bound, with n, t
those of the training tasks and the second part over all K images:

    F(GP; n, t)  +  sum_k  E_q[log p(image_k | h_k)] - KL(q(h_k) || N(0, I))

`fit_joint` (`fit.kind=collapsed`) lets GP and network take turns. The GP wants L-BFGS and tens of evaluations, each
of which costs as much as ten steps on all images; a network wants hundreds of steps with fresh samples. So

    1  the network, which starts anew in every round, is fitted to the images alone
    2  the GP is fitted with embeddings that are free to move, from where the encoder puts them
    3  the network is fitted to the images and to what the trajectories said about the latents
    4  once more 2 and 3, and at last the GP alone, with the embeddings where the encoder has them

What trajectories say about a latent is a Gaussian, N(n_i, 1 / c_i): at the optimum of 2 the bound's data term has a
curvature c = 1/t - 1 in n, since dF/dt = -c/2 + 1/(2t) - 1/2 = 0 there. In 3 it adds, to second order,

    -1/2 sum_i c_i ((n_i' - n_i)^2 + t_i')          n', t' the encoder's

Without 2 the joint bound has a bad optimum nearby: the images alone leave t so large that the GP learns to ignore h.

`fit_joint_stochastic` (`fit.kind=svgp`) is the paper's procedure: Adam over everything, one sample per step.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.model.collapsed import FitError
from distpaml.model.device import normal
from distpaml.model.fit import COMPETING, INDUCING, optimise, place, settle_variances
from distpaml.model.image_vae import Encoded, ImageVAE
from distpaml.model.latent_gp import LatentGP, Terms, TrainingSet
from distpaml.model.stochastic import CHECK, Inducing, explicit_bound, prior_inducing, sampled_bound

TURNS = 2
"""How often GP and network take turns."""
SHARPEST = 1e5
"""The largest precision of what is said to the network: an encoder need not be more exact."""
FREE = ("mean", "log_variance")
"""Parameters of the GP that the encoder gives."""
Result = TypeVar("Result")


class Message(NamedTuple):
    """What the trajectories say about the latents of the training tasks: mean and precision [N, Q]."""

    mean: Tensor
    precision: Tensor

    @classmethod
    def of(cls, gp: LatentGP) -> "Message":
        return cls(gp.mean.detach().clone(), (1.0 / gp.variance.detach() - 1.0).clamp(0.0, SHARPEST))

    def expected(self, encoded: Encoded) -> Tensor:
        """E_q[log N(h; mean, 1/precision)] [] without its constant."""
        square = (encoded.mean - self.mean).square() + encoded.log_variance.exp()
        return -0.5 * (self.precision * square).sum()


def joint_terms(gp: LatentGP, vae: ImageVAE, data: TrainingSet, base: Tensor, q: Inducing | None = None) -> Terms:
    """The bound's terms with base samples [S, K, Q] of the latents of all images; with the optimal q(u) or with `q`."""
    encoded = vae.encoded()
    own = encoded.take(vae.rows(data.descriptors))
    if q is None:
        evidence = encoded_gp(gp, own, lambda gp: gp.evidence(data))
    else:
        evidence = encoded_gp(gp, own, lambda gp: explicit_bound(gp, data, q).data)
    seen = vae.log_density(encoded.sample(base), vae.everything).mean(0)
    return Terms(evidence, -encoded.divergence().sum(), seen.sum(), gp.ratio_log_prior())


def fit_joint(gp: LatentGP, data: TrainingSet, model: ModelConfig, fit: FitConfig, seed: int) -> list[float]:
    """Fit the GP and its VAE in place, the network from its first weights; the values seen by L-BFGS."""
    vae, generator = image_vae_of(gp), torch.Generator().manual_seed(seed)
    learn_images(vae, fit.image_adam_steps, fit.image_learning_rate, generator)
    embed(gp, data)
    with torch.no_grad():
        gp.log_variance.fill_(-12.0)
    names = [name for name, _ in gp.named_parameters() if not name.startswith("decoder.")]
    on_data = [name for name in names if name not in INDUCING]
    place(gp, data, model, most=COMPETING)
    values = optimise(gp, data, on_data, fit.settling, 0.0)
    place(gp, data, model)
    names = on_data if model.inducing_inputs == "data" else names
    for _ in range(TURNS):
        values += optimise(gp, data, names, fit.evaluations, fit.tolerance)
        settle_variances(gp, data)
        learn_images(vae, fit.image_adam_steps * 2 // 3, fit.image_learning_rate, generator, data, Message.of(gp))
        embed(gp, data)
    kernel = [name for name in names if name not in FREE]
    return values + optimise(gp, data, kernel, fit.evaluations, fit.tolerance)


def learn_images(
    vae: ImageVAE,
    steps: int,
    rate: float,
    generator: torch.Generator,
    data: TrainingSet | None = None,
    message: Message | None = None,
) -> None:
    """Adam on the images' part of the bound and on the message, if there is one, about the tasks of `data`.

    A step takes one fresh sample of all latents; the rate falls to nothing.
    """
    rows = None if data is None else vae.rows(data.descriptors)
    adam = torch.optim.Adam(vae.parameters(), rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, max(steps, 1))
    for _ in range(steps):
        encoded = vae.encoded()
        bound = vae.bound(encoded, normal(1, *encoded.mean.shape, like=encoded.mean, generator=generator)).sum()
        if message is not None and rows is not None:
            bound = bound + message.expected(encoded.take(rows))
        _ascend(bound, adam)
        schedule.step()


@torch.no_grad()
def embed(gp: LatentGP, data: TrainingSet) -> None:
    """Give the GP the embeddings that the encoder has now."""
    vae = image_vae_of(gp)
    own = vae.encoded().take(vae.rows(data.descriptors))
    gp.mean.copy_(own.mean)
    gp.log_variance.copy_(own.log_variance)


def fit_joint_stochastic(
    gp: LatentGP,
    data: TrainingSet,
    model: ModelConfig,
    fit: FitConfig,
    base: Tensor,
    seed: int,
    watch: Callable[[int, float], None] = lambda step, value: None,
) -> Inducing:
    """The paper's procedure, in place; q(v) starts as the prior, embeddings where the first weights put them.

    Every `CHECK` steps the bound is computed with the samples `base` [S, K, Q]; `watch(step, bound)` hears of it, and
    the best state by it is the result.
    """
    vae, generator = image_vae_of(gp), torch.Generator().manual_seed(seed)
    embed(gp, data)
    place(gp, data, model)
    q, rows = prior_inducing(gp), vae.rows(data.descriptors)
    others = vae.everything[~torch.isin(vae.everything, rows)]
    weights = [value for name, value in gp.named_parameters() if name not in FREE]  # the network's are among them
    adam = torch.optim.Adam([*weights, *q.parameters()], fit.learning_rate, fused=True)
    kept, best = deepcopy((gp.state_dict(), q.state_dict())), -torch.inf
    for step in range(fit.adam_steps + 1):
        if step % CHECK == 0 or step == fit.adam_steps:
            with torch.no_grad():
                value = joint_terms(gp, vae, data, base, Inducing.of(q)).total.item()
            watch(step, value)
            if value > best:
                kept, best = deepcopy((gp.state_dict(), q.state_dict())), value
        if step < fit.adam_steps:
            encoded = vae.encoded()
            eps = normal(*encoded.mean.shape, like=encoded.mean, generator=generator)
            tasks = torch.randperm(len(rows), generator=generator)[: fit.batch_tasks].to(rows.device)
            bound = _sampled(gp, data, encoded.take(rows), Inducing.of(q), tasks, eps[rows])
            rest = encoded.take(others)
            seen = vae.log_density(rest.sample(eps[others]), others).sum()
            _ascend(bound + seen - rest.divergence().sum(), adam)
    gp.load_state_dict(kept[0])
    q.load_state_dict(kept[1])
    embed(gp, data)
    with torch.no_grad():
        return Inducing.of(q)


def _sampled(gp: LatentGP, data: TrainingSet, own: Encoded, q: Inducing, tasks: Tensor, eps: Tensor) -> Tensor:
    return encoded_gp(gp, own, lambda gp: sampled_bound(gp, data, q, tasks, eps))


def _ascend(bound: Tensor, optimiser: torch.optim.Optimizer) -> None:
    if not torch.isfinite(bound):
        raise FitError("The fit of the images diverged; lower fit.image_learning_rate or fit.learning_rate.")
    optimiser.zero_grad()
    (-bound).backward()
    optimiser.step()


def image_vae_of(gp: LatentGP) -> ImageVAE:
    """The model of the images that stands in the place of the decoder."""
    assert isinstance(gp.decoder, ImageVAE)
    return gp.decoder


def encoded_gp(gp: LatentGP, encoded: Encoded, function: Callable[[LatentGP], Result]) -> Result:
    """`function` of the GP with these embeddings, such that gradients flow into them."""
    embeddings = {"gp.mean": encoded.mean, "gp.log_variance": encoded.log_variance}
    return functional_call(_Holder(gp), embeddings, (function,))


class _Holder(nn.Module):
    def __init__(self, gp: LatentGP) -> None:
        super().__init__()
        self.gp = gp

    def forward(self, function: Callable[[LatentGP], Any]) -> Any:
        return function(self.gp)
