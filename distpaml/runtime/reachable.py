"""Whether a cluster answers at its address: Ray itself would try for minutes."""

import socket

from distpaml.errors import UserError

SECONDS = 5.0


def check_reachable(address: str) -> None:
    """Raise unless something listens at `HOST:PORT` or `ray://HOST:PORT`; other addresses are left to Ray."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
    except OSError as error:
        raise UserError(
            f"Ray cannot be reached at {address}: {error.strerror or error}; start the cluster, or unset RAY_ADDRESS "
            "and run `ray stop` to use this machine alone."
        ) from error
