"""Runs that were changed on purpose, with checksums that say otherwise."""

import json
from pathlib import Path
from typing import Any

from distpaml.checksums import checksum, sealed


def reseal(run: Path, records: list[dict[str, Any]] | None = None) -> None:
    """Give the run in a directory these records, or those it has, and the checksums of the files that it has now."""
    lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    digest, contents = "", b""
    for line in lines if records is None else records:
        values = {key: value for key, value in line.items() if key not in ("files", "digest")}
        files = {
            name: checksum((run / name).read_bytes()) if (run / name).exists() else old
            for name, old in line["files"].items()
        }
        sealed_line, digest = sealed(json.dumps(values), files, digest)
        contents += sealed_line
    (run / "records.jsonl").write_bytes(contents)
