"""Errors whose text is a sentence for a person: what, where, which value, what to do."""


class UserError(Exception):
    """Something the user can fix; commands print it as one line and exit with status 2."""
