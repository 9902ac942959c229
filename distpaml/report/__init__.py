from pathlib import Path


def write_report(paths, out):
    return Path(out) / "index.html"
