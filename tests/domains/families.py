"""Families for tests: a folder with a YAML file, and what comes of it."""

from pathlib import Path

import yaml

from distpaml.config import ExperimentConfig, load
from distpaml.config.load import worked_examples

ARM_XML = worked_examples()["two_link_arm"].with_suffix(".xml").read_text()
ARM = yaml.safe_load(worked_examples()["two_link_arm"].read_text())["domain"]


def write_family(folder: Path, domain: dict, **files: str) -> Path:
    """A YAML file with this domain, beside the arm's XML and further files, named without their suffix."""
    (folder / "two_link_arm.xml").write_text(ARM_XML)
    for name, text in files.items():
        (folder / f"{name}.xml").write_text(text)
    path = folder / "family.yaml"
    path.write_text(yaml.safe_dump({"domain": domain}, sort_keys=False))
    return path


def load_family(folder: Path, domain: dict, *overrides: str, **files: str) -> ExperimentConfig:
    return load(write_family(folder, domain, **files), overrides)
