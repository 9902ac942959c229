"""Images as descriptors: a folder of image files or an npz file, read once when an experiment is made.

What the model sees of an image are its first principal components among all images: a fixed, linear code. It tells
images apart that differ in brightness or in where things are; where that is not enough, give numbers of your own as
a list of choices.
"""

import os
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np

from distpaml.ask_tell.dimensions import Images, principal_components
from distpaml.ask_tell.tables import UNPACKED, unpacked
from distpaml.durable_io import read_regular
from distpaml.errors import UserError
from distpaml.types import Array

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
LARGEST = 2_000
"""Images that can be chosen among."""
SIDE = 64
"""Images of a folder are read in grey and at most so large."""


def with_codes(dimension: Images) -> Images:
    """The same dimension with the code of every image."""
    if dimension.codes is not None:
        return dimension
    names, images = _read(Path(dimension.images))
    if not 2 <= len(names) <= LARGEST:
        raise UserError(f"{dimension.images} has {len(names)} images, but there should be from 2 to {LARGEST}.")
    codes = principal_components(images, dimension.components)
    return dimension.model_copy(
        update={"codes": {name: tuple(code) for name, code in zip(names, codes.tolist(), strict=True)}}
    )


def _read(path: Path) -> tuple[list[str], Array]:
    if os.path.isdir(path):  # False also where the name is too long
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
        if len(files) > LARGEST:
            raise UserError(f"{path} has {len(files)} images, but at most {LARGEST} can be chosen among.")
        return [file.name for file in files], np.array([_image(file) for file in files])
    try:
        arrays = unpacked(read_regular(path, UNPACKED))
        images = arrays["images"]
        names = [str(name) for name in arrays.get("names", range(len(images)))]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, TypeError) as error:
        raise UserError(
            f"{path} is neither a folder of images nor an npz file with an array named images [K, …] ({error})."
        ) from error
    if images.ndim < 2 or len(names) != len(images) or len(set(names)) < len(names):
        raise UserError(f"{path} should hold images [K, …] and, if any, as many different names.")
    if images.dtype.kind not in "buif" or not np.isfinite(images).all():
        raise UserError(f"The images in {path} should be finite numbers.")
    return names, images


def _image(file: Path) -> Array:
    from PIL import Image  # only folders need it

    try:
        with Image.open(BytesIO(read_regular(file, UNPACKED))) as image:
            return np.asarray(image.convert("L").resize((SIDE, SIDE)), dtype=float)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{file} cannot be read as an image: {error}.") from error
