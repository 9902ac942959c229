"""Was a chosen task where it was foreseen in latent space? Checks the map from descriptors to latents, `encoder`.

Embeddings of two fits may differ by a rotation, so both sides are under the model that chose: N(m, diag v) is what the
encoder foresaw for the task, N(n, diag t) what the same model infers from the task's data, and per dimension

    z = (n − m) / √(v + t)

An encoder that knows what it does not know has z of mean 0 and variance 1 over many choices; larger ones say that
candidates are ranked at places where they are not.
"""

import numpy as np

from distpaml.data import Dataset
from distpaml.model.meta_model import MetaModel
from distpaml.types import Array


def foreseen_errors(model: MetaModel, data: Dataset, mean: Array, variance: Array) -> Array:
    """z [B, Q] of chosen tasks, foreseen with mean and variance [B, Q] by `model`, given their data."""
    found = model.infer(data, starts=mean)
    return (found.mean.double().numpy() - mean) / np.sqrt(variance + found.variance.double().numpy())
