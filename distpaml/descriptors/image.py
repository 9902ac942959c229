"""The learner sees an image of the system at rest, such as an upright pole.

A descriptor is the label of an image: the parameters that it was rendered from, E = P. Labels are for the records and
the simulator; the model gets `images(labels)` and never the labels. There are `descriptor.images` of them to choose
from, evenly spread over the box.

For other images, such as photographs, override `images` in a subclass and set `descriptor.kind=module:Class`.
"""

from collections.abc import Mapping

import numpy as np

from distpaml.config import DescriptorConfig, DomainConfig
from distpaml.descriptors.full import Full
from distpaml.types import Array


class ImageDescriptor(Full):
    """One image per task, drawn by MuJoCo from the domain's camera."""

    domain: DomainConfig
    """Set by `get_descriptor`."""

    def __init__(self, config: DescriptorConfig, box: Mapping[str, tuple[float, float]]) -> None:
        super().__init__(config, box)
        self.choices = self._spread(config.images)

    def images(self, labels: Array) -> Array:
        """Images [N, height, width] with these labels [N, E], grey values in [0, 1]."""
        from distpaml.descriptors.render import render

        return render(self.domain, labels, self.config.height, self.config.width)

    def _spread(self, size: int) -> Array:
        if len(self.low) == 1:
            return np.linspace(self.low, self.high, size)
        from scipy.stats import qmc  # takes long to import

        points = qmc.Halton(len(self.low), scramble=False).random(size)
        return self.low + (self.high - self.low) * points
