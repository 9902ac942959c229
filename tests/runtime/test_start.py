"""A Ray that the program starts for itself serves this machine only, and ends with the program."""

import json
import os
import subprocess
import sys
from ipaddress import ip_address
from tempfile import TemporaryDirectory

import pytest

ALONE = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
LISTEN = """
import json, psutil
from distpaml.runtime.start import connected
with connected([]) as joined:
    here = psutil.Process()
    sockets = [socket for p in (here, *here.children(recursive=True)) for socket in p.net_connections()]
    found = [socket.laddr.ip for socket in sockets if socket.status == "LISTEN"]
print(json.dumps([joined, found]))
"""
STUBBORN = """
import json, os, psutil, ray, signal, time
from distpaml.runtime import start
start.PATIENCE = 2.0

@ray.remote
class Stubborn:
    def sleep(self):
        os.kill(os.getpid(), signal.SIGSTOP)

with start.connected([]):
    actor = Stubborn.remote()
    actor.sleep.remote()
    while not any(p.status() == psutil.STATUS_STOPPED for p in psutil.Process().children(recursive=True)):
        time.sleep(0.05)
    pids = [process.pid for process in psutil.Process().children(recursive=True)]
alive = [process.pid for process in psutil.process_iter() if process.status() != psutil.STATUS_ZOMBIE]
print(json.dumps([pids, sorted(set(pids) & set(alive))]))
"""

LATE = """
import ray, subprocess
from distpaml.runtime import start
from distpaml.runtime.lifeline import remedy
start.START_LIMIT = 2.0
ray.init = lambda **_: subprocess.run(["sleep", "1000"])  # a start that never ends, with a process
with remedy("try again"), start.connected([]):
    pass
"""
ASKED_TO_END = """
import os, signal, time
import ray
from distpaml.runtime import start
ray._private.worker._post_init_hooks.append(lambda: os.kill(os.getpid(), signal.SIGTERM))
shutdown = ray.shutdown
ray.shutdown = lambda: (time.sleep(4), shutdown())
try:
    with start.connected([]):
        pass
except KeyboardInterrupt:
    print('"stopped"')
"""
BROKEN = """
import ray
from distpaml.errors import UserError
from distpaml.runtime import start
def init(**_):
    raise Exception("The current node timed out during startup.")
ray.init = init
try:
    with start.connected([]):
        pass
except UserError as error:
    print(f'"{error}"')
"""
HIDDEN = """
import json, os, ray, sys
from distpaml.runtime.start import connected

@ray.remote(num_cpus=0)
class Actor:
    def seen(self):
        return os.environ.get("CUDA_VISIBLE_DEVICES")

with connected([]) as joined:
    actors = [Actor.options(num_gpus=gpus).remote() for gpus in ((0, 0.5) if joined else (0,))]
    print(json.dumps([joined, ray.get([actor.seen.remote() for actor in actors])]))
"""
CLUSTER = """
import os
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 2, "include_dashboard": False})
os.environ["RAY_ADDRESS"] = cluster.address
try:
    exec(HIDDEN)
finally:
    cluster.shutdown()
"""


def answer(program: str, **environment: str):
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=ALONE | environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_it_listens_to_this_machine_alone():
    joined, addresses = answer(LISTEN)
    assert not joined and len(addresses) >= 4
    for address in map(ip_address, addresses):
        assert (getattr(address, "ipv4_mapped", None) or address).is_loopback


def test_no_process_is_left_not_even_one_that_does_not_answer():
    started, left = answer(STUBBORN)
    assert len(started) >= 4 and left == []


def test_an_actor_that_reserved_no_gpu_sees_none():
    assert answer(HIDDEN, CUDA_VISIBLE_DEVICES="0,1") == [False, [""]]


@pytest.mark.slow
def test_an_actor_that_reserved_no_gpu_sees_none_on_a_cluster_either():
    """One that was running before, on a machine with two GPUs."""
    with TemporaryDirectory(dir="/tmp") as own:  # a short path, for sockets
        joined, (none, half) = answer(f"HIDDEN = {HIDDEN!r}{CLUSTER}", CUDA_VISIBLE_DEVICES="0,1", RAY_TMPDIR=own)
    assert joined and none == "" and half in ("0", "1")


def test_a_ray_that_hangs_while_it_starts_ends_the_command_in_a_sentence():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, env=ALONE, timeout=200)
    said = "error: Ray has not started within 2 seconds; try again\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_whatever_ray_raises_when_it_starts_is_a_sentence():
    said = "Ray did not start on this machine: The current node timed out during startup."
    assert answer(BROKEN) == said


@pytest.mark.slow
def test_sigterm_while_ray_starts_lets_a_slow_shutdown_end():
    assert answer(ASKED_TO_END) == "stopped"
