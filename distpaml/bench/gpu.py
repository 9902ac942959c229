"""The model on this machine's CPU and on its GPU, and what to expect of GPUs from the work there is to do.

Tasks of the cart-pole's box and an unfitted model with as many inducing points as a fit may have:

    evaluation     the bound and its gradient
    inference      the latents of the same tasks, with the model fixed
    prediction     the moments of their transitions

The work of each is counted once, batched as on a GPU: floating-point operations of products, solves and
factorisations; bytes that operations read and write; and the operations, each of which has to be started. A GPU is
expected to take

    max(flops / its rate, bytes / its bandwidth) + operations x `START`

with rates in float64 and bandwidths from data sheets, not measured. Last, what float32 costs in nats.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from distpaml.bench import Result
from distpaml.bench.problem import Problem
from distpaml.config.schema import ModelConfig
from distpaml.data import Dataset
from distpaml.model.device import CPU, GPU, device_name
from distpaml.model.fit import place
from distpaml.model.inference import GPU_BLOCK, infer
from distpaml.model.latent_gp import LatentGP, TrainingSet
from distpaml.model.meta_model import fit_model, training_set
from distpaml.model.placement import descriptor_embedding
from distpaml.model.posterior import PREDICTED, Latents, Posterior
from distpaml.model.shards import BLOCK, LocalShards

SIZES = (18, 100, 1000)
REPEATS = 3
START = 1e-5
"""Seconds until torch has started an operation on a GPU."""
GPUS = {
    "H100": (34e12, 3350e9),
    "A100": (9.7e12, 1555e9),
    "RTX 4090": (1.3e12, 1008e9),
    "A10G": (0.49e12, 600e9),
    "T4": (0.25e12, 320e9),
}
"""Float64 operations a second without tensor cores, and bytes a second."""
FLOAT32_TASKS = 18


def run(options: Namespace) -> Iterable[Result]:
    found = torch.cuda.is_available()
    problem = Problem.make("cartpole", max(SIZES))
    print(f"CPU: {torch.get_num_threads()} threads; GPU: {device_name(GPU) if found else 'none'}", flush=True)
    for tasks in SIZES:
        data, model = problem.first(tasks), problem.experiment.model
        model = model.model_copy(update={"inducing": model.inducing_cap})
        ours = _stages(data, model, CPU)
        theirs = _stages(data, model, GPU) if found else {}
        for name, work in _stages(data, model, CPU, batched=True).items():
            seconds = _seconds(ours[name])
            print(f"gpu-{name}-{tasks}: {seconds * 1e3:.0f} ms on the CPU; {Work.of(work)}", flush=True)
            if found:
                fast = _seconds(theirs[name])
                yield Result(f"gpu-{name}-{tasks}", seconds / fast, fast, seconds, "s", "the CPU")
    _float32(problem.first(FLOAT32_TASKS), problem)
    if not found:
        print("There is no GPU that torch can use here, so only the CPU was measured.", flush=True)


def _stages(
    data: Dataset, model: ModelConfig, device: torch.device, batched: bool = False
) -> dict[str, Callable[[], None]]:
    """What is measured, on `device`; `batched` as on a GPU, wherever it is."""
    training, gp = _problem(data, model, device)
    if batched and isinstance(training.pool, LocalShards):
        for shard in training.pool.shards:
            shard.group = BLOCK
    posterior, starts = Posterior.collapsed(gp, training), gp.mean.detach()
    known = posterior, training.x, training.y, training.counts, starts
    latents: list[Latents] = []

    def evaluation() -> None:
        gp.terms(training).total.backward()

    def inference() -> None:
        latents[:] = [infer(*known, task_noise=True, block=GPU_BLOCK if batched else None)]

    def prediction() -> None:
        posterior.predict(training.x, latents[0], PREDICTED if batched else None)

    return {stage.__name__: stage for stage in (evaluation, inference, prediction)}


def _problem(data: Dataset, model: ModelConfig, device: torch.device) -> tuple[TrainingSet, LatentGP]:
    training = training_set(data, model, shards=1, seed=0, device=device)[0]
    embedding = descriptor_embedding(training.descriptors, model.latent, torch.Generator().manual_seed(0))
    gp = LatentGP(training.x.shape[-1], training.y.shape[-1], embedding, training.descriptors, task_noise=True)
    place(gp, training, model)
    return training, gp


def _seconds(stage: Callable[[], None]) -> float:
    """The fastest of a few runs, after one that warms up unless it is long; a GPU has finished by then."""
    seconds: list[float] = []
    while len(seconds) < REPEATS + 1 and sum(seconds) < 10.0:
        begin = perf_counter()
        stage()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds.append(perf_counter() - begin)
    return min(seconds)


@dataclass(frozen=True)
class Work:
    """What a computation asks of a GPU."""

    flops: float
    bytes: float
    operations: int

    @classmethod
    def of(cls, stage: Callable[[], None]) -> "Work":
        with _Counter() as counter:
            stage()
        return cls(counter.flops, counter.bytes, counter.operations)

    def seconds(self, flops: float, bandwidth: float) -> float:
        return max(self.flops / flops, self.bytes / bandwidth) + self.operations * START

    def __str__(self) -> str:
        expected = ", ".join(f"{name} {self.seconds(*rates) * 1e3:.0f}" for name, rates in GPUS.items())
        work = f"{self.flops / 1e9:.1f} GFLOP, {self.bytes / 1e9:.1f} GB, {self.operations} operations"
        return f"{work}; expected ms: {expected}"


class _Counter(TorchDispatchMode):
    """Adds up the work of everything that runs inside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.flops, self.bytes, self.operations = 0.0, 0.0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **kwargs or {})
        read, written = (list(_tensors(part)) for part in ((args, kwargs), result))
        if not function.is_view and written:
            self.flops += _flops(function, read, written[0])
            self.bytes += sum(map(_size, read + written))
            self.operations += 1
        return result


def _tensors(tree: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


def _size(tensor: Tensor) -> int:
    """Bytes; a tensor that repeats its numbers has fewer than its shape says."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _flops(function: Any, read: list[Tensor], result: Tensor) -> float:
    """Of what grows with the cube of a size; everything else is bound by its bytes."""
    aten, operation = torch.ops.aten, function.overloadpacket
    if operation in (aten.mm, aten.bmm):
        return 2.0 * result.numel() * read[0].shape[-1]
    if operation in (aten.addmm, aten.addmm_, aten.baddbmm, aten.baddbmm_):
        return 2.0 * result.numel() * read[1].shape[-1]
    if operation is aten.linalg_solve_triangular:
        return 1.0 * result.numel() * read[0].shape[-1]
    if operation is aten.cholesky_solve:
        return 2.0 * result.numel() * read[1].shape[-1]
    if operation is aten.linalg_cholesky_ex:
        return result.numel() * result.shape[-1] / 3.0
    if operation is aten.cholesky_inverse:
        return 2.0 * result.numel() * result.shape[-1] / 3.0
    return 0.0


def _float32(data: Dataset, problem: Problem) -> None:
    """The bound of one model in both precisions, and that of models fitted in either, both bounds in float64."""
    fit, double = problem.experiment.fit, problem.experiment.model
    single = double.model_copy(update={"dtype": "float32"})
    exact, rough = (training_set(data, model, shards=1, seed=0)[0] for model in (double, single))
    fitted, other = (fit_model(data, model, fit, seed=0).gp for model in (double, single))
    with torch.no_grad():
        bounds = [gp.terms(exact).total.item() for gp in (fitted, deepcopy(other).double())]
        rounded = deepcopy(fitted).float().terms(rough).total.item()
    print(
        f"float32, {len(data)} tasks, {exact.observed} numbers: the bound of a fitted model is off by "
        f"{abs(rounded - bounds[0]) / exact.observed:.2g} nats per number; a fit in float32 ends "
        f"{(bounds[0] - bounds[1]) / exact.observed:.2g} nats per number below one in float64 "
        f"({bounds[0] / exact.observed:.3f})",
        flush=True,
    )
