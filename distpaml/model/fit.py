"""The collapsed fit: where to start, what to optimise when, and when to stop.

First round: several initial embeddings are settled for a few evaluations each, with inducing points that stay on
their data; the best goes on. Later rounds start from the last model; a new task starts where its data say. Then
inducing points are placed by greedy conditional variance under the kernel so far, and everything is optimised
together until the bound stops moving.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from distpaml.model.collapsed import FitError
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.lbfgs import Box, maximise
from distpaml.model.placement import descriptor_embedding, greedy_variance

SETTLING = 15
"""Evaluations for each initial embedding."""

BOXES: dict[str, Box] = {
    "raw_lengthscale": (-4.0, 8.0),
    "raw_outputscale": (-7.0, 9.0),
    "raw_noise": (-13.8, 2.0),
    "log_variance": (-25.0, 2.0),
    "log_lengthscale": (-3.0, 5.0),
    "log_noise": (-9.0, 2.0),
}
"""Sane values of the parameters, whose names end so; all are logarithms. Noise ends at 1e-6, as in GPflow."""


@dataclass
class Fit:
    """A fitted model and the bound after each evaluation, in nats."""

    gp: LatentGP
    values: list[float]


def fit_collapsed(
    data: TrainingSet, first: LatentGP | None, inducing: int, budget: int, tolerance: float, restarts: int, seed: int
) -> Fit:
    """Fit from `first`, or from `restarts` initial embeddings if there is none, with `budget` evaluations."""
    values: list[float] = []
    if first is None:
        settled = _settled(data, _embeddings(data, restarts, seed), inducing)
        first = max(settled, key=lambda fit: max(fit.values)).gp
        values = [value for fit in settled for value in fit.values]
    place(first, data, inducing)
    values += optimise(first, data, list(dict(first.named_parameters())), budget, tolerance)
    settle_variances(first, data)
    return Fit(first, values)


def place(gp: LatentGP, data: TrainingSet, inducing: int) -> None:
    """Put inducing points on the data, where the kernel so far is least certain."""
    rate_x, rate_h, _ = gp.values
    tasks = torch.repeat_interleave(torch.arange(len(data.counts)), torch.tensor(data.counts))
    inputs = torch.cat([x[:count] for x, count in zip(data.x, data.counts, strict=True)])
    points = torch.cat([inputs * rate_x, (gp.mean * rate_h)[tasks]], -1).detach()
    chosen = greedy_variance(points, inducing)
    gp.place_inducing(inputs[chosen], tasks[chosen])


def settle_variances(gp: LatentGP, data: TrainingSet) -> None:
    """Set t to its optimum given all else: the data's term is nearly linear in t, so dF/dt = G + 1/(2t) - 1/2 = 0.

    Gradients in log t are a thousandth of those in the kernel, so L-BFGS alone would hardly move them.
    """
    terms, before = gp.terms(data), gp.log_variance.detach().clone()
    (gradient,) = torch.autograd.grad(terms.data, gp.log_variance)
    with torch.no_grad():
        curvature = (-2.0 * gradient / gp.variance).clamp(min=0.0)
        gp.log_variance.copy_(-torch.log1p(curvature))
        try:
            better = bool(gp.terms(data).total >= terms.total)
        except FitError:
            better = False
        if not better:
            gp.log_variance.copy_(before)


def _embeddings(data: TrainingSet, restarts: int, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed + 1)  # the decoder's base samples are drawn with `seed`
    latent, dtype = data.base.shape[-1], data.x.dtype
    first = descriptor_embedding(data.descriptors, latent, generator)
    others = [torch.randn(*first.shape, generator=generator, dtype=dtype) for _ in range(restarts - 1)]
    return [first, *others]


def _settled(data: TrainingSet, embeddings: list[Tensor], inducing: int) -> list[Fit]:
    """A short fit from every embedding; those that fail are left out, unless all do."""
    fits, failure = [], None
    for embedding in embeddings:
        gp = LatentGP(data.x.shape[-1], data.y.shape[-1], embedding, data.descriptors)
        place(gp, data, inducing)
        names = [name for name, _ in gp.named_parameters() if name not in ("zx", "offset")]
        try:
            fits.append(Fit(gp, optimise(gp, data, names, SETTLING, 0.0)))
        except FitError as error:
            failure = error
    if not fits and failure is not None:
        raise failure
    return fits


def optimise(gp: LatentGP, data: TrainingSet, names: list[str], budget: int, tolerance: float) -> list[float]:
    """Maximise over the named parameters; `tolerance` in nats per observed number."""
    parameters = dict(gp.named_parameters())
    boxed = [(parameters[name], BOXES.get(name.rpartition(".")[-1], (None, None))) for name in names]
    return maximise(lambda: gp.terms(data).total, boxed, budget, tolerance * data.observed)
