"""Whether W&B can be reached with a key; answered within seconds and without a prompt."""

import os
from netrc import NetrcParseError, netrc
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

SECONDS = 3.0


def why_offline(url: str) -> str | None:
    """What is missing to send runs to the server at `url`; None if nothing is."""
    if not _has_key(url):
        return "there is no key (WANDB_API_KEY or an entry in ~/.netrc)"
    if not _reachable(url):
        return f"{url} cannot be reached"
    return None


def _has_key(url: str) -> bool:
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    try:
        file = netrc(Path(os.environ.get("NETRC", "~/.netrc")).expanduser())
    except (OSError, NetrcParseError):
        return False
    hosts = {urlsplit(url).netloc, urlsplit(url).hostname or ""}
    if "WANDB_BASE_URL" not in os.environ:
        hosts.add("api.wandb.ai")  # W&B's own server has several names, one account
    return any(file.authenticators(host) for host in hosts)


def _reachable(url: str) -> bool:
    """Any answer will do. In a thread, since a name lookup has no timeout of its own."""
    answered = []

    def ask() -> None:
        try:
            urlopen(url, timeout=SECONDS).close()
            answered.append(True)
        except HTTPError:
            answered.append(True)
        except (OSError, ValueError):
            pass

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(SECONDS + 1.0)
    return bool(answered)
