"""Tasks described by images: a variational auto-encoder in the place of the GP from latents to descriptors.

    q(h_k | image_k) = N(n_k, diag t_k)          the encoder's, for all K images there are, chosen or not
    p(image_k | h_k) = prod_pixels Bernoulli     with the decoder's probabilities; grey values count as such

Its part of the bound is that of all images, the training tasks' and the candidates':

    sum_k  E_q[log p(image_k | h_k)] - KL(q(h_k) || N(0, I))

The images have labels, by which data and records refer to them. The network never sees a label.

Reference: Kingma & Welling 2014, Auto-encoding variational Bayes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from distpaml.errors import UserError
from distpaml.model.decoder import DescriptorModel
from distpaml.model.device import normal
from distpaml.model.networks import Network


@dataclass(frozen=True)
class Encoded:
    """q(h) of some images: mean and log variance [K, Q]."""

    mean: Tensor
    log_variance: Tensor

    def take(self, rows: Tensor) -> "Encoded":
        return Encoded(self.mean[rows], self.log_variance[rows])

    def divergence(self) -> Tensor:
        """KL(q(h_k) || N(0, I)) [K]."""
        return 0.5 * (self.log_variance.exp() + self.mean.square() - 1.0 - self.log_variance).sum(-1)

    def sample(self, base: Tensor) -> Tensor:
        """h = n + sqrt(t) base, for base [..., K, Q]."""
        return self.mean + (0.5 * self.log_variance).exp() * base


class ImageVAE(DescriptorModel):
    """All images there are, with their labels, and the network that encodes and decodes them."""

    images: Tensor  # [K, H, W]
    labels: Tensor  # [K, E]

    def __init__(self, network: Network, images: Tensor, labels: Tensor, name: str = "mlp") -> None:
        super().__init__()
        self.network, self.name = network, name  # the name as in `model.network`
        self.register_buffer("images", images)
        self.register_buffer("labels", labels)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def everything(self) -> Tensor:
        """The rows of all images [K]."""
        return torch.arange(len(self), device=self.images.device)

    def rows(self, labels: Tensor) -> Tensor:
        """Where the images with these labels [N, E] are [N]."""
        same = (labels.unsqueeze(1) == self.labels).all(-1)  # [N, K]
        if not same.any(1).all():
            missing = labels[int(same.any(1).int().argmin())].tolist()
            raise UserError(f"There is no image with the label {missing}.")
        return same.int().argmax(1)

    def encoded(self) -> Encoded:
        """q(h) of all images."""
        return Encoded(*self.network.encode(self.images))

    def log_density(self, h: Tensor, rows: Tensor) -> Tensor:
        """log p(image | h) [..., N] of the images `rows` [N] at latents h [..., N, Q]."""
        logits = self.network.decode(h)
        grey = self.images[rows].expand_as(logits)
        return -binary_cross_entropy_with_logits(logits, grey, reduction="none").sum((-2, -1))

    def bound(self, encoded: Encoded, base: Tensor) -> Tensor:
        """The images' part of the bound, one number per image [K], averaged over base [S, K, Q]."""
        return self.log_density(encoded.sample(base), self.everything).mean(0) - encoded.divergence()

    def expected_log_density(self, mean: Tensor, variance: Tensor, descriptors: Tensor, base: Tensor) -> Tensor:
        """Of the images with the labels `descriptors` alone."""
        return self.log_density(mean + variance.sqrt() * base, self.rows(descriptors)).mean(0).sum()

    @torch.no_grad()
    def predict(self, h: Tensor, mean: Tensor, descriptors: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [K, H W] of the grey values at latents h [K, Q]."""
        grey = self.network.decode(h).sigmoid().flatten(1)
        return grey, grey * (1.0 - grey)

    def conditional(self, h: Tensor, mean: Tensor, descriptors: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        raise UserError("An image is no evidence in the inference of latents; infer them from transitions.")

    @torch.no_grad()
    def samples(self, size: int, seed: int) -> Tensor:
        """Images [size, H, W] from the prior, h ~ N(0, I); the same h for the same seed, whatever the network."""
        generator = torch.Generator().manual_seed(seed)
        h = normal(size, self.network.latent, like=self.images, generator=generator)
        return self.network.decode(h).sigmoid()
