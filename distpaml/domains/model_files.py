"""A MuJoCo model as one text that can travel: included files written out, meshes beside it, pictures left out.

    arm.xml                      a file; names in it are relative to its folder
    dm_control:acrobot           a model of dm_control's suite
    gymnasium:Hopper-v5          the model of one of gymnasium's MuJoCo environments

The text is the file's own, not what MuJoCo would write, which has fewer digits.
"""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from distpaml.durable_io import read_regular
from distpaml.errors import UserError
from distpaml.names import nearest

if TYPE_CHECKING:
    from mujoco import MjSpec

LARGEST = 6_000_000
"""Characters that a model may have in a config, meshes compressed."""
LARGEST_FILES = 100_000_000
"""Bytes of its meshes, not compressed."""
DEEPEST, MOST_FILES = 20, 1_000
"""Files that may include one another, and files in all."""
DEEPEST_BODY = 300
"""Elements within one another; MuJoCo reads 500."""
MOST_COPIES = 1_000
"""Copies by <replicate>, which no limit on the size of a file holds back."""
PICTURES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback", "content_type")


class ModelError(UserError):
    """A model that cannot be read; the text says why, to go after "but"."""


@dataclass(frozen=True)
class ModelText:
    """A model that needs no other file."""

    label: str
    """Of the file, for sentences and names: `arm`."""
    xml: str
    assets: dict[str, str] = field(default_factory=dict, compare=False)
    """Files of meshes and height fields by their name in the text: base64 of zlib."""

    @property
    def sha256(self) -> str:
        """Of all that the model consists of."""
        parts = [self.xml, *(f"{name}={data}" for name, data in sorted(self.assets.items()))]
        return sha256("\n".join(parts).encode()).hexdigest()

    def spec(self) -> MjSpec:
        """Parsed by MuJoCo, or a `ModelError` with what it says."""
        import mujoco

        try:
            assets = {name: _unpacked(data) for name, data in self.assets.items()}
            return mujoco.MjSpec.from_string(self.xml, assets=assets)
        except (ValueError, zlib.error) as error:
            raise ModelError(f"MuJoCo cannot read it: {' '.join(str(error).split())}") from error


def label_of(source: str) -> str:
    """A name for reports: arm.xml is `arm`, gymnasium:Hopper-v5 is `hopper`."""
    library, _, name = source.rpartition(":")
    return (name.lower().rpartition("-v")[0] or name) if library in ("dm_control", "gymnasium") else Path(source).stem


def read_model(source: str, folder: Path | None = None) -> ModelText:
    """The model that `source` names, with relative files in `folder`."""
    library, colon, name = source.partition(":")
    if colon and library in ("dm_control", "gymnasium"):
        path = _suite_file(name) if library == "dm_control" else _gymnasium_file(name)
    else:
        path = (folder or Path()) / source
    files = _Files()
    root = _flattened(path, path.parent, (), files)
    _check_depth(root)
    assets = _assets(root, path.parent, files)
    text = ModelText(label_of(source), _written(root), assets)
    size = len(text.xml) + sum(map(len, assets.values()))
    if size > LARGEST:
        raise ModelError(
            f"with its meshes it has {size / 1e6:.1f} MB, more than the {LARGEST / 1e6:g} MB that travel with a "
            "config; leave out meshes that are only looked at, or simplify them"
        )
    return text


def _written(root: ElementTree.Element) -> str:
    """As text, without the empty lines that comments and includes leave."""
    lines = ElementTree.tostring(root, encoding="unicode").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines if line.strip())


def _suite_file(name: str) -> Path:
    suite = Path(str(files("dm_control") / "suite"))
    path = suite / f"{name}.xml"
    if not path.is_file():
        raise ModelError(
            f"dm_control's suite has no model {name!r}{nearest(name, [p.stem for p in suite.glob('*.xml')])}"
        )
    return path


def _gymnasium_file(name: str) -> Path:
    """The model that the module of an environment names; the module itself needs packages that MuJoCo does not."""
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise ModelError("gymnasium is not installed: pip install 'distpaml[gymnasium]'") from error
    if name not in gymnasium.registry:
        raise ModelError(f"gymnasium has no environment {name!r}{nearest(name, gymnasium.registry)}")
    module = str(gymnasium.registry[name].entry_point).partition(":")[0]
    source = Path(str(files("gymnasium"))).joinpath(*module.split(".")[1:]).with_suffix(".py")
    found = re.search(r"[\"']([\w./-]+\.xml)[\"']", source.read_text(encoding="utf-8")) if source.is_file() else None
    path = Path(str(files("gymnasium") / "envs" / "mujoco" / "assets")) / (found[1] if found else "")
    if found is None or not path.is_file():
        raise ModelError(f"gymnasium's {name} is not made from an MJCF file; take domain.gymnasium instead")
    return path


class _Files:
    """Reads the files of one model, and refuses more of them than any robot has."""

    def __init__(self) -> None:
        self._count, self._bytes = 0, 0

    def read(self, path: Path, most: int) -> bytes:
        """A file's contents, `most` bytes together with all before it."""
        self._count += 1
        if self._count > MOST_FILES:
            raise ModelError(f"it consists of more than {MOST_FILES} files, counting each as often as it is included")
        contents = read_regular(path, most)
        self._bytes += len(contents)
        if self._bytes > most:
            raise ModelError(f"its files have more than {most / 1e6:g} MB")
        return contents


def _check_depth(root: ElementTree.Element) -> None:
    depth, level = 0, [root]
    while level := [child for element in level for child in element]:
        depth += 1
    if depth > DEEPEST_BODY:
        raise ModelError(f"it has {depth} elements within one another, more than {DEEPEST_BODY}")
    if (copies := _copies(root)) > MOST_COPIES:
        raise ModelError(f"<replicate> makes {copies} copies, more than {MOST_COPIES}")


def _copies(element: ElementTree.Element) -> int:
    """How many elements <replicate> makes of those within it."""
    count = element.get("count", "") if element.tag == "replicate" else ""
    inside = sum(map(_copies, element))
    return int(count[:20]) * max(inside, 1) if count.isdecimal() else inside


def _flattened(path: Path, folder: Path, above: tuple[Path, ...], files: _Files) -> ElementTree.Element:
    """The root of a file, with the contents of the files that it includes in their place."""
    if path in above or len(above) > DEEPEST:
        raise ModelError(f"{path.name} includes itself")
    try:
        root = ElementTree.fromstring(files.read(path, LARGEST))
    except ElementTree.ParseError as error:
        raise ModelError(f"{path.name} is not XML: {error}") from error
    except (OSError, ValueError) as error:
        others = [p.name for p in path.parent.glob("*.xml")] if isinstance(error, FileNotFoundError) else []
        hint = nearest(path.name, others)
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"the file {path.name} cannot be read ({reason}){'' if hint.endswith('none') else hint}"
        ) from error
    if root.tag not in ("mujoco", "mujocoinclude"):
        raise ModelError(f"{path.name} is not MJCF: its root is <{root.tag}> and not <mujoco>")
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "include":
                included = _flattened(folder / child.get("file", ""), folder, (*above, path), files)
                place = list(parent).index(child)
                parent.remove(child)
                for offset, element in enumerate(included):
                    parent.insert(place + offset, element)
    return root


def _assets(root: ElementTree.Element, folder: Path, files: _Files) -> dict[str, str]:
    """The files that meshes and height fields come from; pictures become a plain colour."""
    directory = ""
    for compiler in root.iter("compiler"):
        directory = compiler.get("meshdir", compiler.get("assetdir", directory))
    assets: dict[str, str] = {}
    for texture in root.iter("texture"):
        if any(texture.attrib.pop(name, None) for name in PICTURES):
            texture.attrib |= {"builtin": "flat", "width": "1", "height": "1"}
            texture.attrib.pop("gridsize", None)
            texture.attrib.pop("gridlayout", None)
    for element in root.iter():
        if element.tag in ("mesh", "hfield", "skin", "flexcomp") and (name := element.get("file")):
            assets[name] = assets.get(name) or _packed(folder / directory / name, files)
        elif element.tag == "model" and element.get("file"):
            raise ModelError("it attaches another model file; save it as one file first (MjSpec.to_xml)")
    return assets


def _packed(path: Path, files: _Files) -> str:
    try:
        return base64.b64encode(zlib.compress(files.read(path, LARGEST_FILES), 9)).decode()
    except OSError as error:
        raise ModelError(f"its file {path.name} cannot be read: {error.strerror}") from error


def _unpacked(data: str) -> bytes:
    unpacking = zlib.decompressobj()
    contents = unpacking.decompress(base64.b64decode(data), LARGEST_FILES)
    if not unpacking.eof:
        raise ValueError(f"a mesh is cut off or has more than {LARGEST_FILES / 1e6:g} MB")
    return contents
