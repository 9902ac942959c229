"""`python -m distpaml.domains.check module:Class`: does a domain keep its contract, in all its variants?"""

import sys

from distpaml.domains import get_domain
from distpaml.domains.contract import check_domain
from distpaml.errors import UserError

__all__ = ["check_domain"]


def main(arguments: list[str]) -> int:
    """Print a sentence per fault; 0 if there is none, 1 if there are, 2 if there is no such domain."""
    if len(arguments) != 1:
        print("usage: python -m distpaml.domains.check NAME|MODULE:CLASS", file=sys.stderr)
        return 2
    try:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
