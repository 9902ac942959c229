"""`python -m distpaml.domains.check module:Class`: does a domain keep its contract, in all its variants?

A YAML file, or the name of a shipped experiment, is checked as it says: a family from data has no class.
"""

import sys

from distpaml.domains import DOMAINS, Domain, get_domain
from distpaml.domains.contract import check_domain
from distpaml.errors import UserError

__all__ = ["check_domain"]


def main(arguments: list[str]) -> int:
    """Print a sentence per fault; 0 if there is none, 1 if there are, 2 if there is no such domain."""
    if len(arguments) != 1:
        print("usage: python -m distpaml.domains.check NAME|MODULE:CLASS|FILE.yaml", file=sys.stderr)
        return 2
    try:
        if (family := _family(arguments[0])) is not None:
            return _said(arguments[0], check_domain(family))
        domain = get_domain(arguments[0])
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    faults = 0
    for variant in domain.variants:
        try:
            sentences = check_domain(domain(variant))
        except Exception as error:
            sentences = [f"constructing it raised {type(error).__name__}: {error}"]
        for sentence in sentences:
            print(f"{arguments[0]}, variant {variant}: {sentence}")
        faults += len(sentences)
    if not faults:
        print(f"{arguments[0]} keeps the contract of a domain in variant {', '.join(domain.variants)}")
    return 1 if faults else 0


def _family(name: str) -> Domain | None:
    """The domain of a config: of a YAML file, or of a worked example."""
    if name in DOMAINS or ":" in name:
        return None
    from distpaml.config.load import load, worked_examples

    if not name.endswith((".yaml", ".yml")) and name not in worked_examples():
        return None
    return load(name).domain.make()


def _said(name: str, sentences: list[str]) -> int:
    for sentence in sentences:
        print(f"{name}: {sentence}")
    if not sentences:
        print(f"{name} keeps the contract of a domain")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
