"""A fitted model as one safetensors file: tensors, and a JSON header with the format's version. No pickle."""

import json
from dataclasses import fields
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from distpaml.data import Standardiser
from distpaml.errors import UserError
from distpaml.model.image_vae import ImageVAE
from distpaml.model.latent_gp import LatentGP
from distpaml.model.meta_model import MetaModel
from distpaml.model.networks import make_network
from distpaml.model.posterior import Posterior

FORMAT, VERSION = "distpaml-model", "2"


def serialised(model: MetaModel) -> bytes:
    """The contents of the model's file."""
    tensors = {f"gp.{name}": value for name, value in model.gp.state_dict().items()}
    tensors |= {f"posterior.{field.name}": getattr(model.posterior, field.name) for field in fields(Posterior)}
    for name, standardiser in (("inputs", model.inputs), ("targets", model.targets)):
        tensors |= {f"{name}.{part}": torch.tensor(getattr(standardiser, part)) for part in ("mean", "scale")}
    tensors["descriptors"] = model.descriptors
    header = {"format": FORMAT, "version": VERSION, "terms": json.dumps(dict(model.terms)), "start": model.start}
    header["fitted_on"] = model.fitted_on
    header["noise"] = "task" if model.gp.task_noise else "shared"
    if model.image_vae is not None:
        header["network"] = model.image_vae.name
    return save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, header)


def load_model(path: Path) -> MetaModel:
    """Read a model from what `serialised` gave; anything else is a `UserError`."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise UserError(f"{path} is not a distpaml model.")
            if header.get("version") != VERSION:
                theirs = header.get("version")
                raise UserError(f"{path} is a model of version {theirs}; this distpaml reads version {VERSION}.")
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        return _assembled(tensors, header)
    except OSError as error:
        raise UserError(f"The model {path} cannot be read: {error.strerror or error}.") from error
    except (SafetensorError, KeyError, ValueError, RuntimeError, TypeError, IndexError) as error:
        raise UserError(f"The model {path} is damaged: {' '.join(str(error).split())[:200]}.") from error


def _assembled(tensors: dict[str, Tensor], header: dict[str, str]) -> MetaModel:
    network = header.get("network")
    inputs, targets = (
        Standardiser(tensors[f"{name}.mean"].numpy(), tensors[f"{name}.scale"].numpy())
        for name in ("inputs", "targets")
    )
    sizes = len(inputs.mean), len(targets.mean)
    gp = LatentGP(*sizes, tensors["gp.mean"], tensors["descriptors"], header["noise"] == "task")
    owner = tensors["gp.owner"]
    if network is not None:
        images, labels = tensors["gp.decoder.images"], tensors["gp.decoder.labels"]
        shape = images.shape[1], images.shape[2], gp.mean.shape[-1]
        gp.decoder = ImageVAE(make_network(network, *shape, 0, images.dtype), images, labels, network)
    gp.place_inducing(tensors["gp.mean"].new_zeros(len(owner), len(inputs.mean)), owner)
    gp.load_state_dict({name[3:]: value for name, value in tensors.items() if name.startswith("gp.")})
    posterior = Posterior(**{field.name: tensors[f"posterior.{field.name}"] for field in fields(Posterior)})
    terms = json.loads(header["terms"])
    where = header["start"], header.get("fitted_on", "cpu")  # a file without it is of a fit on a CPU
    return MetaModel(gp, posterior, inputs, targets, tensors["descriptors"], terms, *where)
