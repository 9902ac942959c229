"""Numbers in few bytes: rounded for JSON, or quantised between the lowest and the highest."""

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def rounded(values: ArrayLike, digits: int = 5) -> Any:
    """Nested lists with `digits` significant digits; None for non-finite numbers."""
    array = np.asarray(values, float)
    if array.ndim:
        return [rounded(row, digits) for row in array]
    return float(f"{array:.{digits}g}") if np.isfinite(array) else None


def packed(values: ArrayLike, bits: int = 16) -> dict[str, Any]:
    """{"low", "high", "bits", "data"}: value = low + (high − low) · step / (2^bits − 1), flattened, base64."""
    array = np.asarray(values, float).ravel()
    low, high = float(array.min()), float(array.max())
    steps = np.round((array - low) / ((high - low) or 1.0) * (2**bits - 1)).astype(f"<u{bits // 8}")
    return {"low": low, "high": high, "bits": bits, "data": b64encode(steps.tobytes()).decode()}


def unpacked(tree: dict[str, Any]) -> NDArray[np.float64]:
    """The values of `packed`, flat, to half a step."""
    steps = np.frombuffer(b64decode(tree["data"]), f"<u{tree['bits'] // 8}")
    return tree["low"] + (tree["high"] - tree["low"]) * steps / (2 ** tree["bits"] - 1)
