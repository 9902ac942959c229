#!/usr/bin/env bash
# `ray down` for machines of one's own, and then `ray stop` on its workers, which `ray down` leaves running.
#     bash cluster/stop.sh cluster/on-premise.yaml
set -euo pipefail
file=${1:?error: name the YAML file of the cluster}
ray down -y "$file"
python - "$file" <<'PY' | while read -r user key host; do
import sys, yaml
with open(sys.argv[1]) as file:
    config = yaml.safe_load(file)
for host in config["provider"]["worker_ips"]:
    print(config["auth"]["ssh_user"], config["auth"]["ssh_private_key"], host)
PY
    ssh -n -i "${key/#\~/$HOME}" -o ConnectTimeout=10 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
        "$user@$host" "bash -ic 'ray stop --force'" 2>/dev/null || echo "warning: $host could not be reached; it may still run Ray." >&2
done
