"""Networks between images and latents: the paper's `mlp`, a small convolutional one, `conv`, or one's own.

A network of one's own is named as `model.network=module:Class`. The class derives from `Network` and keeps this:

    __init__(height, width, latent)    images are [height, width], latents have `latent` dimensions Q
    encode(images [N, H, W])           -> mean [N, Q] and log variance [N, Q] of q(h | image)
    decode(h [..., Q])                 -> logits [..., H, W]; sigmoid(logit) is the expected grey value

Each image is encoded by itself, and the same image twice gives the same: no batch normalisation, no dropout. Weights
are those of `torch`'s default initialisation unless the class says otherwise; the seed is set before it is made.
`make_network` tries all of this and says what is wrong in one sentence.
"""

from typing import Any

import torch
from torch import Tensor, nn

from distpaml.errors import UserError
from distpaml.plugins import load_object

HIDDEN = 200
CHANNELS = 16


class Network(nn.Module):
    """An encoder and a decoder of images."""

    def __init__(self, height: int, width: int, latent: int) -> None:
        super().__init__()
        self.height, self.width, self.latent = height, width, latent

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance [N, Q] of q(h | image) for images [N, H, W]."""
        raise NotImplementedError

    def decode(self, h: Tensor) -> Tensor:
        """Logits [..., H, W] of the grey values at latents h [..., Q]."""
        raise NotImplementedError


class Mlp(Network):
    """The paper's: two hidden layers of 200 units and leaky ReLUs, in either direction."""

    def __init__(self, height: int, width: int, latent: int) -> None:
        super().__init__(height, width, latent)
        self.encoder = _layers(height * width, 2 * latent)
        self.decoder = _layers(latent, height * width)

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.encoder(images.flatten(1)).chunk(2, -1)
        return mean, log_variance

    def decode(self, h: Tensor) -> Tensor:
        return self.decoder(h).unflatten(-1, (self.height, self.width))


class Conv(Network):
    """Two convolutions that halve height and width each, one hidden layer, and the way back."""

    def __init__(self, height: int, width: int, latent: int) -> None:
        super().__init__(height, width, latent)
        self.small = -(-height // 4), -(-width // 4)  # rounded up
        size = 2 * CHANNELS * self.small[0] * self.small[1]
        self.encoder = nn.Sequential(
            nn.Conv2d(1, CHANNELS, 3, stride=2, padding=1), nn.LeakyReLU(),
            nn.Conv2d(CHANNELS, 2 * CHANNELS, 3, stride=2, padding=1), nn.LeakyReLU(),
            nn.Flatten(), nn.Linear(size, HIDDEN), nn.LeakyReLU(), nn.Linear(HIDDEN, 2 * latent),
        )  # fmt: skip
        self.grow = nn.Sequential(nn.Linear(latent, HIDDEN), nn.LeakyReLU(), nn.Linear(HIDDEN, size), nn.LeakyReLU())
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(2 * CHANNELS, CHANNELS, 4, stride=2, padding=1), nn.LeakyReLU(),
            nn.ConvTranspose2d(CHANNELS, 1, 4, stride=2, padding=1),
        )  # fmt: skip

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.encoder(images.unsqueeze(1)).chunk(2, -1)
        return mean, log_variance

    def decode(self, h: Tensor) -> Tensor:
        grown = self.grow(h.reshape(-1, self.latent)).unflatten(-1, (2 * CHANNELS, *self.small))
        logits = self.decoder(grown)[:, 0, : self.height, : self.width]
        return logits.reshape(*h.shape[:-1], self.height, self.width)


def _layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN), nn.LeakyReLU(),
        nn.Linear(HIDDEN, HIDDEN), nn.LeakyReLU(),
        nn.Linear(HIDDEN, outputs),
    )  # fmt: skip


NETWORKS: dict[str, type[Network]] = {"mlp": Mlp, "conv": Conv}


def get_network(name: str) -> type[Network]:
    """The network called `name`, or the class `module:Class`."""
    if name in NETWORKS:
        return NETWORKS[name]
    if ":" not in name:
        raise UserError(f"model.network is {name!r}, but should be {', '.join(NETWORKS)} or your own as module:Class.")
    found = load_object(name, "model.network")
    if not (isinstance(found, type) and issubclass(found, Network)):
        raise UserError(f"model.network is {name!r}, but that is not a subclass of distpaml.model.networks.Network.")
    return found


def make_network(name: str, height: int, width: int, latent: int, seed: int, dtype: torch.dtype) -> Network:
    """A new network, whose weights depend on the seed alone; one that breaks the contract is a `UserError`."""
    kind = get_network(name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            network = kind(height, width, latent).to(dtype)
            fault = _fault(network, height, width, latent, dtype)
        except Exception as error:  # whatever a user's class raises
            detail = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise UserError(
                f"model.network {name!r} fails on images of {height} by {width} pixels ({detail})."
            ) from error
    if fault:
        raise UserError(f"model.network {name!r} {fault}.")
    return network


def _fault(network: Network, height: int, width: int, latent: int, dtype: torch.dtype) -> str | None:
    """What breaks the contract, if anything does."""
    images = torch.rand(3, height, width, dtype=dtype, generator=torch.Generator().manual_seed(0))
    encoded: Any = network.encode(images)
    if not (isinstance(encoded, tuple) and len(encoded) == 2):
        return "should encode images to a pair of mean and log variance"
    for what, part in zip(("mean", "log variance"), encoded, strict=True):
        if part.shape != (3, latent):
            return f"encodes 3 images to a {what} of shape {list(part.shape)}, which should be {[3, latent]}"
    if not any(part.requires_grad for part in encoded):
        return "has no weights that its encoding depends on"
    if not all(torch.equal(one, two) for one, two in zip(encoded, network.encode(images), strict=True)):
        return "encodes the same images differently the second time; leave out dropout"
    if not torch.allclose(network.encode(images[:1])[0], encoded[0][:1], rtol=1e-3, atol=1e-5):
        return "encodes an image differently when others are with it; leave out batch normalisation"
    logits = network.decode(encoded[0].expand(2, 3, latent))
    if logits.shape != (2, 3, height, width):
        return f"decodes latents of shape {[2, 3, latent]} to {list(logits.shape)}, not {[2, 3, height, width]}"
    if not all(torch.isfinite(part).all() for part in (*encoded, logits)):
        return "gives values that are not finite"
    return None
