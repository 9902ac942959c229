#!/usr/bin/env bash
# The README's test command as a newcomer has it: a new user with an empty home, in a fresh clone of HEAD, without GL and
# without Chromium. As root, on Linux: `bash tests/fresh_user.sh [PYTEST ARGUMENTS]`. Pytest lists what it skipped, and
# its status is the status here. Of the environment, pip's variables (PIP_…) are passed on, and nothing else.
set -euo pipefail

here=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)
command=$(sed -n '/^<!-- test command -->$/,/^```$/p' "$here/README.md" | grep '^python3 ')
top=$(mktemp -d /tmp/fresh-user-XXXXXX)
user=fresh-user-$$
trap 'userdel --force "$user" 2>/dev/null || true; rm -rf "$top"' EXIT

mkdir "$top/empty"
useradd --create-home --home-dir "$top/home" --skel "$top/empty" --shell /bin/bash "$user"
git clone --quiet "$here" "$top/clone"
chmod 755 "$top"
chown -R "$user" "$top/clone"

mapfile -t hidden < <(
    type -P chromium chromium-browser google-chrome || true
    /sbin/ldconfig -p | awk '/lib(EGL|OSMesa)\.so/ { print $NF }'
)
settings=(HOME="$top/home" PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8)
for name in "${!PIP_@}"; do settings+=("$name=${!name}"); done

# shellcheck disable=SC2016  # the words are for the shells inside
unshare --mount bash -c '
    user=$1 clone=$2 command=$3 count=$4; shift 4
    for file in "${@:1:count}"; do mount --bind /dev/null "$(readlink -f "$file")"; done
    shift "$count"
    cd "$clone" && exec runuser -u "$user" -- env -i "$@" bash -c "$command"
' - "$user" "$top/clone" "$command${*:+ ${*@Q}}" "${#hidden[@]}" "${hidden[@]}" "${settings[@]}"
