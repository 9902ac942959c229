"""Where the numbers are: on the CPU, or on the GPU that this process was given.

A fit, the inference of latents, predictions and the utilities that use the model run on the device of `fit.device`. A
fitted model then returns to the CPU, since it travels to other processes and to disk. Random numbers are drawn on the
CPU: a seed means the same ones everywhere.
"""

import torch
from torch import Tensor

from distpaml.model.collapsed import FitError

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
"""A process computes on one GPU; Ray and `CUDA_VISIBLE_DEVICES` decide which one it sees as the first."""


def device_here(name: str) -> torch.device:
    """For `auto` and `cuda` the GPU that this process was given; where it has none, and for `cpu`, the CPU."""
    return GPU if name != "cpu" and torch.cuda.is_available() else CPU


def device_of_fit(name: str) -> torch.device:
    """`device_here`, save that `cuda` without a GPU is an error."""
    if name == "cuda":
        require_gpu("fit.device is 'cuda'")
    return device_here(name)


def require_gpu(why: str) -> None:
    """An error if this process has no GPU, rather than a fit on the CPU that nobody asked for."""
    if not torch.cuda.is_available():
        raise FitError(f"{why}, but there is no GPU that torch can use; fit.device=auto takes one if there is.")


def device_name(device: torch.device) -> str:
    """`cpu`, or what the GPU is called."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def at_once(like: Tensor, cpu: int, gpu: int) -> int:
    """How many tasks to compute together: as many as a cache holds, or enough to keep a GPU busy."""
    return cpu if like.device.type == "cpu" else gpu


def normal(*shape: int, like: Tensor, generator: torch.Generator) -> Tensor:
    """Standard normal numbers of this shape, with the type and the device of `like`."""
    return torch.randn(*shape, generator=generator, dtype=like.dtype).to(like.device)
