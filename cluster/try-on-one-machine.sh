#!/usr/bin/env bash
# The whole road on one machine: `ray up` of on-premise.yaml against three hosts, a sweep over them, one host killed in
# the middle, the results compared with those of one process, and `ray down`. A host is a network, process and mount
# namespace with an address and an sshd of its own; outside of them nothing is changed.
#     sudo bash cluster/try-on-one-machine.sh [PYTHON]
# It needs root, openssh-server, rsync and iproute2, and PYTHON is one that has distpaml[cluster]. It takes minutes.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
hosts="1 2 3"
step() { printf '\n+ %s (%s s)\n' "$*" "$SECONDS"; }
fail() { echo "error: $*" >&2; exit 1; }

private_tmp() {  # what is written to /tmp from here on is gone with the namespace
    mkdir -p "$1/tmp" "$1/work"
    mount -t overlay overlay -o "lowerdir=/mnt/tmp,upperdir=$1/tmp,workdir=$1/work" /tmp
    mount -t tmpfs tmpfs /dev/shm
}

be_host() {  # in the namespaces of host $1
    local own=/mnt/hosts/$1
    hostname "host$1"
    private_tmp "$own"
    mount -t tmpfs tmpfs /run
    mkdir /run/sshd
    sed "s#^\(root:.*:.*:.*:.*:\).*\(:.*\)#\1$own/home\2#" /etc/passwd > "$own/passwd"
    mount --bind "$own/passwd" /etc/passwd
    exec /usr/sbin/sshd -D -f /dev/null -h /mnt/keys/host -E "$own/sshd.log" -o "ListenAddress=10.9.0.$1" \
        -o AuthorizedKeysFile=/mnt/keys/user.pub -o PermitRootLogin=prohibit-password -o StrictModes=no \
        -o PidFile=none -o UsePAM=no
}

in_host() { ls -l /proc/[0-9]*/ns/pid 2>/dev/null | awk -v ns="$(readlink "/proc/${init[$1]}/ns/pid")" '$NF == ns {split($(NF-2), p, "/"); print p[3]}'; }
titles() { for pid in $(in_host "$1"); do { tr '\0' ' ' < "/proc/$pid/cmdline" && echo; } 2>/dev/null || true; done; }
trials() { titles "$1" | grep -c '^ray::ResourceTrainable\.train' || true; }

case ${1:-} in
    --host) be_host "$2" ;;
    --inside) shift ;;
    *)
        for tool in /usr/sbin/sshd rsync ip unshare; do
            command -v "$tool" >/dev/null || fail "$tool is missing; install openssh-server, rsync, iproute2 and util-linux."
        done
        [ "$(id -u)" = 0 ] || fail "this needs root, for namespaces."
        exec unshare --net --mount --pid --uts --fork --mount-proc --kill-child bash "$0" --inside "${1:-python}"
        ;;
esac

python=$(command -v "$1")
unset ${!OPENBLAS_@} ${!MKL_@}  # hosts that are reached by ssh do not have them, and bits depend on them
export HOME=/mnt/launcher OMP_NUM_THREADS=1 RAY_USAGE_STATS_ENABLED=0 PATH="$(dirname "$python"):$PATH"
unset RAY_ADDRESS RAY_AUTH_MODE PYTHONPATH WANDB_MODE
mount -t tmpfs tmpfs /mnt
mkdir -p /mnt/tmp /mnt/launcher /mnt/keys /mnt/shared
mount --bind /tmp /mnt/tmp
private_tmp /mnt/launcher
mount -t tmpfs tmpfs /run
ssh-keygen -q -t ed25519 -N '' -f /mnt/keys/host
ssh-keygen -q -t ed25519 -N '' -f /mnt/keys/user
cd "$project"

step "three hosts"
ip link set lo up
ip link add lan type bridge
ip addr add 10.9.0.254/24 dev lan
ip link set lan up
declare -A init
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for i in $hosts; do
    ip netns add "host$i"
    ip link add "port$i" type veth peer name eth0 netns "host$i"
    ip link set "port$i" master lan up
    ip -n "host$i" addr add "10.9.0.$i/24" dev eth0
    ip -n "host$i" link set lo up
    ip -n "host$i" link set eth0 up
    ip -n "host$i" route add default via 10.9.0.254  # by which Ray finds its own address

    # There is no package index in here, so each host finds the pinned packages installed, but no distpaml.
    venv=/mnt/hosts/$i/home/distpaml/.venv
    mkdir -p "$(dirname "$venv")"
    "$python" -m venv --without-pip "$venv"
    printf '%s\n' "/mnt/hosts/$i/home/distpaml" "$packages" > "$venv/lib/$(ls "$venv/lib")/site-packages/here.pth"
    printf '#!%s\nfrom ray.scripts.scripts import main\nmain()\n' "$venv/bin/python" > "$venv/bin/ray"
    chmod +x "$venv/bin/ray"
    cat constraints.txt pyproject.toml | sha256sum | cut -d ' ' -f 1 > "$venv/pinned"

    ip netns exec "host$i" unshare --mount --pid --uts --fork --mount-proc --kill-child bash "$0" --host "$i" &
done
for i in $hosts; do
    for _ in $(seq 100); do
        init[$i]=$(pgrep -f "^sshd: /usr/sbin/sshd .*ListenAddress=10.9.0.$i " || true)
        if [ -n "${init[$i]}" ] && ssh-keyscan "10.9.0.$i" >/dev/null 2>&1; then break; fi
        sleep 0.1
    done
    [ -n "${init[$i]}" ] || fail "host $i has no sshd: $(cat "/mnt/hosts/$i/sshd.log")"
done
on_head() {
    ssh -q -i /mnt/keys/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@10.9.0.1 bash -ic "$(printf %q "$1")" 2> >(grep -v -e 'job control' -e ioctl >&2)
}

step "ray up on-premise.yaml, with these hosts"
sed -e 's/192\.0\.2\./10.9.0./g' -e 's/ssh_user: .*/ssh_user: root/' -e 's#ssh_private_key: .*#ssh_private_key: /mnt/keys/user#' \
    cluster/on-premise.yaml > /mnt/launcher/on-premise.yaml
(umask 077 && ray get-auth-token --generate >/dev/null 2>&1)
ray up -y --no-config-cache /mnt/launcher/on-premise.yaml > /mnt/launcher/up.log 2>&1 || { cat /mnt/launcher/up.log; exit 1; }
step "workers join"
cat > /mnt/launcher/nodes.py <<'PY'
import sys, time, ray
ray.init(address="auto", logging_level="error", log_to_driver=False)
end = time.monotonic() + 120
while len(alive := [n["NodeManagerAddress"] for n in ray.nodes() if n["Alive"]]) < 3 and time.monotonic() < end:
    time.sleep(1)
print("nodes:", *sorted(alive))
sys.exit(len(alive) < 3)
PY
cp /mnt/launcher/nodes.py /mnt/shared/nodes.py
on_head "python /mnt/shared/nodes.py" || fail "the workers did not join."
if on_head "RAY_AUTH_TOKEN=$(printf 'f%.0s' {1..64}) ray status --address 10.9.0.1:6379" >/dev/null 2>&1; then
    fail "a wrong token was let in."
fi
echo "a wrong token is refused"

step "doctor"
on_head "cd ~/distpaml && python -m distpaml.doctor --storage /mnt/shared" > /mnt/launcher/doctor.log || true
cat /mnt/launcher/doctor.log
grep -q '^ok       ray: 3 machines' /mnt/launcher/doctor.log || fail "the doctor does not see three machines."
grep -q '^ok       storage: /mnt/shared .* seen by 3 machines' /mnt/launcher/doctor.log || fail "nor what they share."

step "a folder that is not shared is refused"
small="rounds=3 domain.trajectory_length=20 model.inducing=40 fit.evaluations=20 fit.restarts=1 selection.pool_size=64 evaluation.grid=2 evaluation.inference_steps=10"
on_head "cd ~/distpaml && python -m distpaml.sweep quickstart methods=[uni] $small --out /tmp/own" 2>&1 | tee /mnt/launcher/refused.log || true
grep -q "does not see the sweep's folder at" /mnt/launcher/refused.log || fail "it was not refused."

step "a sweep, started on the head"
key=$(head -c 20 /dev/urandom | od -An -tx1 | tr -d ' \n')
(echo "$key" | on_head "read -r WANDB_API_KEY; export WANDB_API_KEY; cd ~/distpaml && python -m distpaml.sweep quickstart methods=[uni,lhs] seeds=4 $small --out /mnt/shared/sweep"; echo "exit $?") > /mnt/launcher/sweep.log 2>&1 &
sweep=$!
for _ in $(seq 1200); do
    begun=$( (cat /mnt/shared/sweep/trials/*/records.jsonl 2>/dev/null || true) | wc -l)
    running=$(trials 3)
    if [ "$begun" -ge 2 ] && [ "$running" -gt 0 ]; then break; fi
    kill -0 "$sweep" 2>/dev/null || break
    sleep 0.1
done
[ "$running" -gt 0 ] || { cat /mnt/launcher/sweep.log; fail "no trial ran on host 3."; }
step "host 3 is killed, with $running trials, when $begun rounds are finished"
kill -9 "${init[3]}"
wait "$sweep" || true
cat /mnt/launcher/sweep.log
grep -q '^exit 0$' /mnt/launcher/sweep.log || fail "the sweep did not finish."
grep -q '"trial retried"' /mnt/shared/sweep/events.jsonl || fail "no trial was lost with host 3."

step "the same trials in one process"
"$python" - <<'PY'
import sys; sys.path.insert(0, ".")
from pathlib import Path
from tempfile import mkdtemp
from distpaml.config import ExperimentConfig
from distpaml.runtime.run_experiment import run_to_end
from distpaml.records import read_records
runs = sorted(Path("/mnt/shared/sweep/trials").iterdir())
for path in runs:
    here = run_to_end(ExperimentConfig.from_yaml(path / "config.yaml"), Path(mkdtemp()))
    for there, same in zip(read_records(path), here, strict=True):
        one, other = there.result(), same.result()
        differ = {key: (one[key], other[key]) for key in one if one[key] != other[key]}
        assert not differ, f"{path}, round {same.round}: {differ}"
assert len(runs) == 8
print("8 trials, equal to the bit")
PY
if grep -rqs "$key" /mnt/shared /mnt/launcher /mnt/hosts; then
    fail "the W&B key was written to $(grep -rls "$key" /mnt/shared /mnt/launcher /mnt/hosts | head -3)."
fi
echo "the W&B key is in no file of any host"

step "ray down, and ray stop on the workers"
bash cluster/stop.sh /mnt/launcher/on-premise.yaml > /mnt/launcher/down.log 2>&1 || { cat /mnt/launcher/down.log; exit 1; }
for i in 1 2; do
    for _ in $(seq 20); do
        left=$(titles "$i" | grep -v -e '^sshd' -e '^ *$' || true)
        if [ -z "$left" ]; then break; fi
        sleep 1
    done
    [ -z "$left" ] || fail "host $i still runs: $(cut -c 1-100 <<< "$left")"
    ports=$(ip netns exec "host$i" ss -Hltn | awk '{print $4}' | grep -v ':22$' || true)
    [ -z "$ports" ] || fail "host $i still listens to $ports"
done
step "nothing is left; all is well"
