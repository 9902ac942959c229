#!/usr/bin/env bash
# Installs the pinned package on a machine of a cluster, from the copy of the project that this file lies in, with the
# extra `cluster`, or `aws` or `gcp` where the head starts machines. Done again only if what is pinned has changed.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$project"

pinned=$(cat constraints.txt pyproject.toml | sha256sum | cut -d ' ' -f 1)
if [ "$(cat .venv/pinned 2>/dev/null)" != "$pinned" ]; then
    if ! python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        ! ldconfig -p | grep -q libEGL.so.1; then
        sudo apt-get update -qq
        sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libegl1 libgl1-mesa-dri python3-venv tmux
    fi
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        { echo "error: $(hostname) has $(python3 --version), but Python 3.11 or newer is needed." >&2; exit 1; }
    python3 -m venv --clear .venv
    .venv/bin/pip install -q -c constraints.txt -e ".[${1:-cluster}]"
    echo "$pinned" > .venv/pinned
fi

for line in ". '$project/cluster/env.sh'" "export PATH='$project/.venv/bin':\$PATH"; do
    grep -qxF "$line" ~/.bashrc 2>/dev/null || echo "$line" >> ~/.bashrc
done
if [ -f ~/.ray/auth_token ]; then chmod 600 ~/.ray/auth_token; fi
