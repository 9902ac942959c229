"""A device that is not there: real numbers that may not meet those of the CPU.

Inside of `with pretend_device():` tensors on torch's `meta` device have values, kept in a CPU tensor each. As on a GPU,
an operation on tensors of both devices is an error, and so are a generator of the other device and what a GPU cannot
do. Numbers without a dimension may mix, and only copies cross over.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

PRETENDED = torch.device("meta")
COPIES = (torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default)


class Pretended(torch.Tensor):
    """A tensor that says it is on `PRETENDED`, and has values."""

    values: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> "Pretended":
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), storage_offset=values.storage_offset(), dtype=values.dtype,
            device=PRETENDED,
        )  # fmt: skip

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{function} on the pretended device outside of it")


@contextmanager
def pretend_device() -> Iterator["_Operations"]:
    """Where `PRETENDED` is a device like a GPU; says how many operations it ran."""
    with _Operations() as operations, _Literals():
        yield operations


class _Literals(TorchFunctionMode):
    """`torch.tensor(…, device=PRETENDED)`, which torch would make without asking anybody."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.tensor and kwargs.get("device") == PRETENDED:
            return function(*args, **kwargs | {"device": "cpu"}).to(PRETENDED)
        return function(*args, **kwargs)


class _Operations(TorchDispatchMode):
    operations = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        theirs = [tensor for tensor in tensors if isinstance(tensor, Pretended)]
        asked = kwargs.get("device")
        target = torch.device(asked) if asked is not None else (PRETENDED if theirs else torch.device("cpu"))
        if theirs or target == PRETENDED:
            self.operations += 1
            self._check(function, tensors, theirs, kwargs)
        if target == PRETENDED and asked is not None:
            kwargs["device"] = torch.device("cpu")
        plain_args, plain_kwargs = tree_map(_values, (args, kwargs))
        result = function(*plain_args, **plain_kwargs)
        if target != PRETENDED:
            return result
        if torch.Tag.inplace_view in function.tags:
            with no_dispatch():
                function(*args, **kwargs)  # the shape changes outside, too
        same = {id(_values(tensor)): tensor for tensor in tensors}
        return tree_map(lambda leaf: _pretended(leaf, same), result)

    @staticmethod
    def _check(function: Any, tensors: list, theirs: list, kwargs: dict) -> None:
        others = [tensor for tensor in tensors if not isinstance(tensor, Pretended) and tensor.ndim]
        if theirs and others and function not in COPIES:
            raise RuntimeError(f"{function} of tensors on two devices")
        if kwargs.get("generator") is not None:
            raise RuntimeError(f"{function} with a generator of the CPU")
        if function is torch.ops.aten.linalg_lstsq.default and kwargs.get("driver") != "gels":
            raise RuntimeError("a GPU has no other driver than gels")


def _values(leaf: Any) -> Any:
    return leaf.values if isinstance(leaf, Pretended) else leaf


def _pretended(leaf: Any, same: dict[int, torch.Tensor]) -> Any:
    """What an in-place operation returns is the tensor it changed."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return same[id(leaf)] if id(leaf) in same else Pretended(leaf)
