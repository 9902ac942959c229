"""`python -m distpaml.domains.check module:Class`: does a domain keep its contract, in all its variants?

A YAML file, or the name of a shipped experiment, is checked as it says: a family from data has no class.
"""

import sys

from distpaml.command_line import Parser, called, config_and_overrides, say
from distpaml.domains import DOMAINS, Domain, get_domain
from distpaml.domains.contract import check_domain
from distpaml.errors import UserError
from distpaml.failures import described


def main(arguments: list[str] | None = None) -> int:
    """Print a sentence per fault; 0 if there is none, 1 if there are, 2 if there is no such domain."""
    parser = Parser(prog=called("domains.check"), description="Does a domain keep its contract?")
    parser.add_argument("name", nargs="?", metavar="CONFIG", help="a domain, your own as module:Class, or a YAML file")
    parser.add_argument("--config", metavar="CONFIG", help="the same as the first word")
    options = parser.parse_args(arguments)
    try:
        name, _ = config_and_overrides([options.name] if options.name else [], options.config)
        if name is None:
            raise UserError(
                f"Name what is to be checked: {', '.join(DOMAINS)}, your own as module:Class, or a YAML file."
            )
        if (family := _family(name)) is not None:
            return _said(name, check_domain(family))
        domain = get_domain(name)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    faults = 0
    for variant in domain.variants:
        try:
            sentences = check_domain(domain(variant))
        except (Exception, SystemExit) as error:
            sentences = [f"constructing it raised {described(error)}"]
        for sentence in sentences:
            say(f"{name}, variant {variant}: {sentence}")
        faults += len(sentences)
    if not faults:
        variants = " and ".join(domain.variants)
        say(f"{name} keeps the contract of a domain in variant{'s' if len(domain.variants) > 1 else ''} {variants}")
    return 1 if faults else 0


def _family(name: str) -> Domain | None:
    """The domain of a config: of a YAML file, or of one that is shipped."""
    if name in DOMAINS or ":" in name:
        return None
    from distpaml.config.load import load, shipped, worked_examples

    if not name.endswith((".yaml", ".yml", ".xml")) and name not in shipped() | worked_examples():
        return None
    return load(name).domain.make()


def _said(name: str, sentences: list[str]) -> int:
    for sentence in sentences:
        say(f"{name}: {sentence}")
    if not sentences:
        say(f"{name} keeps the contract of a domain")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
