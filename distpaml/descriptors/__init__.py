"""Between domain and learner: what the learner sees of a task."""

from collections.abc import Mapping

from distpaml.config import DescriptorConfig, DomainConfig
from distpaml.descriptors.base import Descriptor
from distpaml.descriptors.full import Full
from distpaml.descriptors.image import ImageDescriptor
from distpaml.descriptors.noisy import Noisy
from distpaml.descriptors.partial import Partial
from distpaml.errors import UserError
from distpaml.plugins import load_object

KINDS: dict[str, type[Descriptor]] = {"full": Full, "partial": Partial, "noisy": Noisy, "image": ImageDescriptor}

__all__ = ["KINDS", "Descriptor", "ImageDescriptor", "get_descriptor"]


def get_descriptor(
    config: DescriptorConfig, box: Mapping[str, tuple[float, float]], domain: DomainConfig | None = None
) -> Descriptor:
    """The descriptor of `config.kind`, or your own class `module:Class`, over the domain's `box`.

    Image descriptors need `domain`.
    """
    kind = KINDS.get(config.kind) or load_object(config.kind, "descriptor.kind")
    if not (isinstance(kind, type) and issubclass(kind, Descriptor)):
        raise UserError(
            f"descriptor.kind is {config.kind!r}, but that is not a subclass of distpaml.descriptors.Descriptor."
        )
    descriptor = kind(config, box)
    if isinstance(descriptor, ImageDescriptor):
        descriptor.domain = domain or DomainConfig()
    return descriptor
