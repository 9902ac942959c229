"""Ray and Tune are configured through environment variables; whoever calls us gets theirs back."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_environment() -> Iterator[None]:
    """Environment variables may change in here; afterwards they are as they were before."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
