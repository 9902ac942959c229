"""A Ray that the program starts for itself serves this machine only, and ends with the program."""

import json
import os
import subprocess
import sys
from ipaddress import ip_address

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
from distpaml.runtime import start
from distpaml.runtime.lifeline import remedy
start.START_LIMIT = 8.0
with remedy("try again"), start.connected([]):
    pass
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


def answer(program: str):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ALONE)
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


def test_a_ray_that_hangs_while_it_starts_ends_the_command_in_a_sentence():
    hanging = ALONE | {"RAY_raylet_start_wait_time_s": "0"}  # the driver then waits for its raylet for ever
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, env=hanging)
    said = "error: Ray has not started within 8 seconds; try again\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_whatever_ray_raises_when_it_starts_is_a_sentence():
    said = "Ray did not start on this machine: The current node timed out during startup."
    assert answer(BROKEN) == said
