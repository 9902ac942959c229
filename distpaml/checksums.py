"""Files that cannot change unnoticed.

A journal (`records.jsonl`, `journal.jsonl`) is a chain: every line ends with the SHA-256 of the line itself and of the
digest before it, and names the files that belong to it with theirs:

    {…, "files": {"round-07/arrays.npz": "3fa8…"}, "digest": "91c0…"}

So a changed bit in a line or in one of its files, a line that is missing and lines that swapped places all show.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from distpaml.durable_io import read_regular
from distpaml.errors import UserError

_SEAL = re.compile(rb',"digest":"([0-9a-f]{64})"\}\n')
_SEAL_BYTES = len(',"digest":""}\n') + 64


class DamagedError(UserError):
    """A file is not what was written."""


@dataclass(frozen=True)
class Line:
    """One line of a journal, with its checksum verified."""

    values: dict[str, Any]
    files: Mapping[str, str]
    """SHA-256 of the files that belong to the line, by their paths in the journal's directory."""
    digest: str
    size: int
    """In bytes."""


def checksum(contents: bytes) -> str:
    return sha256(contents).hexdigest()


def sealed(values: str, files: Mapping[str, str], previous: str) -> tuple[bytes, str]:
    """A line of a journal and its digest; `values` is a JSON object, `previous` the digest before, "" at first."""
    body = f'{values.removesuffix("}")},"files":{json.dumps(files)}'.encode()
    digest = checksum(previous.encode() + body)
    return body + f',"digest":"{digest}"}}\n'.encode(), digest


def verified(contents: bytes, journal: Path, remedy: str, previous: str = "", first: int = 1) -> Iterator[Line]:
    """The lines in `contents`, which begin with line number `first`; `remedy` says what can be done about a bad one.

    A last line without a line break was cut off while it was written, and is left out.
    """
    for number, line in enumerate(contents.split(b"\n")[:-1], start=first):
        body, seal = line[: 1 - _SEAL_BYTES], _SEAL.fullmatch(line[1 - _SEAL_BYTES :] + b"\n")
        if seal is None or checksum(previous.encode() + body).encode() != seal[1]:
            raise DamagedError(f"{journal} is damaged in line {number}, which does not match its checksum; {remedy}.")
        previous = seal[1].decode()
        values = json.loads(line)
        yield Line(values, values.pop("files"), values.pop("digest"), len(line) + 1)


def read_verified(file: Path, digest: str, remedy: str) -> bytes:
    """The contents of a file, if they are those that were written; `remedy` says what can be done if not."""
    try:
        contents = read_regular(file)
    except OSError as error:
        raise DamagedError(f"{file} cannot be read: {error.strerror}; {remedy}.") from error
    if checksum(contents) != digest:
        raise DamagedError(f"{file} is damaged: it does not match its checksum; {remedy}.")
    return contents
