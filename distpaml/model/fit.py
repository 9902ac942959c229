"""The collapsed fit: where to start, what to optimise when, and when to stop.

In every round several starts compete (`starts`). All but the last model are settled with few inducing points. The best
of them then meets the last model, both with all inducing points, placed by greedy conditional variance under the
kernel so far. Each stage takes `fit.settling` evaluations. The winner is optimised until the bound stops moving.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.model.collapsed import FitError
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.lbfgs import Box, Variable, maximise
from distpaml.model.placement import greedy_variance
from distpaml.model.starts import Start, starts

COMPETING = 200
"""Inducing points while starts compete."""
REMAINING = 1e-4
"""`inducing: auto` ends when the variance that is left, averaged over the points, is this part of the least noise."""

BOXES: dict[str, Box] = {
    "raw_lengthscale": (-4.0, 8.0),
    "raw_outputscale": (-7.0, 9.0),
    "raw_noise": (-13.8, 2.0),
    "log_variance": (-25.0, 2.0),
    "log_lengthscale": (-3.0, 5.0),
    "log_noise": (-9.0, 2.0),
    "log_ratio": (-10.0, 15.0),
}
"""Sane values of the parameters, whose names end so; all are logarithms. Noise ends at 1e-6, as in GPflow."""
DECODER_SCALE = 0.3
"""The step of every parameter of the decoder."""
INDUCING = ("zx", "offset")
"""The parameters that are inducing inputs."""


@dataclass
class Fit:
    """A fitted model, the bound after each evaluation in nats, and the name of the start that won."""

    gp: LatentGP
    values: list[float] = field(default_factory=list)
    start: str = ""

    @property
    def best(self) -> float:
        return max(self.values)


def fit_collapsed(data: TrainingSet, last: LatentGP | None, model: ModelConfig, fit: FitConfig, seed: int) -> Fit:
    """Fit to `data`; the `last` model, if there is one, is among the starts."""
    first, *others = starts(data, last, model.noise == "task", fit.restarts, seed)
    if last is None:
        rivals = _settled(data, [first, *others], model, fit.settling, most=COMPETING)
        winner = max(rivals, key=lambda fit: fit.best)
        place(winner.gp, data, model)
    else:
        rivals = _settled(data, others, model, fit.settling, most=COMPETING)
        challenger = max(rivals, key=lambda fit: fit.best)
        final = _settled(data, [first, Start(challenger.start, challenger.gp)], model, fit.settling)
        winner = max(final, key=lambda fit: fit.best)
        rivals += final
    names = [name for name, _ in winner.gp.named_parameters()]
    if model.inducing_inputs == "data":
        names = [name for name in names if name not in INDUCING]
    values = optimise(winner.gp, data, names, fit.evaluations, fit.tolerance)
    settle_variances(winner.gp, data)
    return Fit(winner.gp, [value for rival in rivals for value in rival.values] + values, winner.start)


def place(gp: LatentGP, data: TrainingSet, model: ModelConfig, most: int | None = None) -> None:
    """Put inducing points on the data, where the kernel so far is least certain; at most `most` of them."""
    rate_x, rate_h, amplitude = gp.values
    tasks, inputs = data.valid.nonzero()[:, 0], data.x[data.valid]
    points = torch.cat([inputs * rate_x, (gp.mean * rate_h)[tasks]], -1).detach()
    size, enough = (model.inducing, 0.0)
    if size == "auto":
        size, enough = model.inducing_cap, REMAINING * (gp.noise.min() / amplitude).item()
    chosen = greedy_variance(points, min(size, most or size), enough)
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


def _settled(
    data: TrainingSet, candidates: Sequence[Start], model: ModelConfig, evaluations: int, most: int | None = None
) -> list[Fit]:
    """A short fit from every start, with inducing points that stay on their data; starts that fail are left out.

    If all fail, the last failure is raised.
    """
    fits, failure = [], None
    for start in candidates:
        place(start.gp, data, model, most)
        names = [name for name, _ in start.gp.named_parameters() if name not in INDUCING]
        try:
            fits.append(Fit(start.gp, optimise(start.gp, data, names, evaluations, 0.0), start.name))
        except FitError as error:
            failure = error
    if not fits and failure is not None:
        raise failure
    return fits


def optimise(gp: LatentGP, data: TrainingSet, names: list[str], budget: int, tolerance: float) -> list[float]:
    """Maximise over the named parameters; `tolerance` in nats per observed number."""
    parameters, sizes = dict(gp.named_parameters()), scales(gp, data)
    last = {name: name.rpartition(".")[-1] for name in names}
    variables = [
        Variable(parameters[name], BOXES.get(last[name], (None, None)), sizes.get(last[name], DECODER_SCALE))
        for name in names
    ]
    return maximise(lambda: gp.terms(data).total, variables, budget, tolerance * data.observed)


@torch.no_grad()
def scales(gp: LatentGP, data: TrainingSet) -> dict[str, Tensor | float]:
    """The steps that change the bound by about one, by the last part of a parameter's name.

    That of noises and ratios is one over the root of half the numbers observed. Embeddings are known to their standard
    deviations; they may move by ten, since with them moves the kernel. The others' were found by trying.
    """
    numbers, rate_x, rate_h = data.observed, *gp.values[:2]
    return {
        "raw_noise": (2.0 / data.points) ** 0.5,
        "log_ratio": (2.0 * len(gp.mean) / numbers) ** 0.5,
        "raw_lengthscale": (20.0 / numbers) ** 0.5,
        "raw_outputscale": (50.0 / numbers) ** 0.5,
        "mean": 10.0 * gp.variance.sqrt(),
        "log_variance": 1.0,
        "zx": 0.01 / rate_x.clamp(0.1, 3.0),
        "offset": 0.01 / rate_h.clamp(0.1, 3.0),
    }
