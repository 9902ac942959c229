"""The collapsed fit: where to start, what to optimise when, and when to stop.

In every round several starts compete (`starts`), each settled for `fit.settling` evaluations: fresh ones first among
themselves, with few inducing points, since that is quick. The best of them (in the first round the best two) then meets
those that have the last model's kernel, which only many points do justice to. All inducing points are placed by greedy
conditional variance under the kernel so far. The winner is optimised until the bound stops moving.

From then on, latents that the data determine to a small part of a length-scale count as points: the terms of the bound
that the variances t add are nearly constant then, and take half of the time. At the end t is set to its optimum, and
the bound that is kept is the exact one.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import torch
from torch import Tensor

from distpaml.config.schema import FitConfig, ModelConfig
from distpaml.model.collapsed import FitError
from distpaml.model.latent_gp import LatentGP, Terms, TrainingSet
from distpaml.model.lbfgs import Box, Variable, maximise
from distpaml.model.placement import greedy_variance
from distpaml.model.starts import Start, starts

COMPETING = 200
"""Inducing points while fresh starts compete."""
SHARP = 1e-3
"""Latents count as points while their variances are below this part of the squared length-scales."""
REMAINING = 1e-6
"""`inducing: auto` ends when the variance that is left is this part of the least noise, averaged over the points."""

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


def fit_collapsed(
    data: TrainingSet, last: LatentGP | None, model: ModelConfig, fit: FitConfig, seed: int
) -> tuple[Fit, Terms]:
    """Fit to `data`, with the terms of the bound at the end; the `last` model, if there is one, is among the starts."""
    known, fresh = starts(data, last, model.noise == "task", fit.restarts, seed)
    try:
        ranking = sorted(_settled(data, fresh, model, fit.settling, few=True), key=lambda fit: -fit.best)
    except FitError:
        if not known:
            raise
        ranking = []
    finalists = [*known, *(Start(fit.start, fit.gp) for fit in ranking[: 1 if known else 2])]
    final = _settled(data, finalists, model, fit.settling)
    values = [value for rival in (*ranking, *final) for value in rival.values]
    winner = max(final, key=lambda fit: fit.best)
    names = [name for name, _ in winner.gp.named_parameters()]
    if model.inducing_inputs == "data":
        names = [name for name in names if name not in INDUCING]
    values += optimise(winner.gp, data, names, fit.evaluations, fit.tolerance, are_uncertain(winner.gp))
    return Fit(winner.gp, values, winner.start), settle_variances(winner.gp, data)


def are_uncertain(gp: LatentGP) -> bool:
    """Whether some latent is known too loosely to count as a point."""
    return bool((gp.variance * gp.values.rate_h.square() > SHARP).any())


def place(gp: LatentGP, data: TrainingSet, model: ModelConfig, most: int | None = None) -> None:
    """Put inducing points on the data, where the kernel so far leaves the bound most to pay; at most `most` of them."""
    rate_x, rate_h, amplitude = gp.values
    tasks, inputs = data.valid.nonzero()[:, 0], data.x[data.valid]
    points = torch.cat([inputs * rate_x, (gp.mean * rate_h)[tasks]], -1).detach()
    size, enough = (model.inducing, 0.0)
    if size == "auto":
        size, enough = model.inducing_cap, REMAINING * (gp.noise.min() / amplitude).item()
    weights = (-gp.log_ratio).exp().detach()[tasks]
    chosen = greedy_variance(points, weights, min(size, most or size), enough)
    gp.place_inducing(inputs[chosen], tasks[chosen])


def settle_variances(gp: LatentGP, data: TrainingSet) -> Terms:
    """Set t to its optimum given all else: the data's term is nearly linear in t, so dF/dt = G + 1/(2t) - 1/2 = 0.

    Gradients in log t are a thousandth of those in the kernel, so L-BFGS alone would hardly move them. The bound's
    terms after that.
    """
    terms, before = gp.terms(data), gp.log_variance.detach().clone()
    (gradient,) = torch.autograd.grad(terms.data, gp.log_variance)
    with torch.no_grad():
        curvature = (-2.0 * gradient / gp.variance).clamp(min=0.0)
        gp.log_variance.copy_(-torch.log1p(curvature))
        try:
            after = gp.terms(data)
        except FitError:
            after = terms
        if after.total > terms.total:
            return after
        gp.log_variance.copy_(before)
    return terms


def _settled(
    data: TrainingSet, candidates: Sequence[Start], model: ModelConfig, evaluations: int, few: bool = False
) -> list[Fit]:
    """A short fit from a copy of every start, with inducing points that stay on their data.

    With `few` of them the bound is exact, so that it shows how well latents are known. Starts that fail are left out;
    if all do, the last failure is raised.
    """
    fits, failure = [], None
    for start in candidates:
        gp = deepcopy(start.gp)
        place(gp, data, model, COMPETING if few else None)
        names = [name for name, _ in gp.named_parameters() if name not in INDUCING]
        try:
            fits.append(Fit(gp, optimise(gp, data, names, evaluations, 0.0, few or are_uncertain(gp)), start.name))
            if few:
                settle_variances(gp, data)
        except FitError as error:
            failure = error
    if not fits and failure is not None:
        raise failure
    return fits


def optimise(
    gp: LatentGP, data: TrainingSet, names: list[str], budget: int, tolerance: float, uncertain: bool = True
) -> list[float]:
    """Maximise over the named parameters; `tolerance` in nats per observed number.

    If latents are not `uncertain`, they count as points, and their variances stay as they are.
    """
    parameters, sizes = dict(gp.named_parameters()), scales(gp, data)
    names = [name for name in names if uncertain or name != "log_variance"]
    last = {name: name.rpartition(".")[-1] for name in names}
    variables = [
        Variable(parameters[name], BOXES.get(last[name], (None, None)), sizes.get(last[name], DECODER_SCALE))
        for name in names
    ]
    return maximise(lambda: gp.terms(data, uncertain).total, variables, budget, tolerance * data.observed)


@torch.no_grad()
def scales(gp: LatentGP, data: TrainingSet) -> dict[str, Tensor | float]:
    """The steps that change the bound by about one, by the last part of a parameter's name.

    That of noises and ratios is one over the root of half the numbers observed. The others' were found by trying.
    """
    numbers, rate_x, rate_h = data.observed, *gp.values[:2]
    return {
        "raw_noise": (2.0 / data.points) ** 0.5,
        "log_ratio": (2.0 * len(gp.mean) / numbers) ** 0.5,
        "raw_lengthscale": (20.0 / numbers) ** 0.5,
        "raw_outputscale": (50.0 / numbers) ** 0.5,
        "mean": 0.025,
        "log_variance": 1.0,
        "zx": 0.01 / rate_x.clamp(0.1, 3.0),
        "offset": 0.01 / rate_h.clamp(0.1, 3.0),
    }
