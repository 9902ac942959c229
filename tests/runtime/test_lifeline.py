"""A command ends with its Ray, and a worker with its raylet; other processes stand for both here."""

import subprocess
import sys
import time

import psutil
import pytest
from actors import eventually

from distpaml.errors import UserError
from distpaml.runtime.lifeline import watched

COMMAND = """
import subprocess, sys, time
import psutil
from distpaml.runtime.lifeline import remedy, watched
daemon = subprocess.Popen([sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '600'])"])
process = psutil.Process(daemon.pid)
while not process.children():
    time.sleep(0.02)
with remedy("continue with: it"), watched([process], ours=True):
    print(process.children()[0].pid, daemon.pid, flush=True)
    time.sleep(600)
"""
WORKER = """
import subprocess, sys, time
child = "import time, distpaml.runtime.lifeline as l; l.die_with_raylet(); print(1, flush=True); time.sleep(600)"
worker = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
worker.stdout.readline()
print(worker.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def start():
    started = []

    def run(program):
        started.append(subprocess.Popen([sys.executable, "-c", program], stdout=-1, stderr=-1, text=True))
        return started[-1], [psutil.Process(int(pid)) for pid in started[-1].stdout.readline().split()]

    yield run
    for process in started:
        process.kill()
        process.communicate(timeout=20)


def gone(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_command_without_its_daemon_ends_in_a_sentence_and_takes_the_rest_along(start):
    command, (grandchild, daemon) = start(COMMAND)
    time.sleep(0.6)  # it looks twice a second who is there
    daemon.kill()
    _, said = command.communicate(timeout=20)
    assert command.returncode == 2
    assert said == "error: Ray on this machine has ended, killed or out of memory; continue with: it\n"
    eventually(lambda: gone(grandchild), 10)


def test_a_worker_is_gone_with_its_raylet(start):
    raylet, (worker,) = start(WORKER)
    raylet.kill()
    eventually(lambda: gone(worker), 10)


def test_an_error_after_the_loss_of_a_daemon_is_that_loss_and_another_error_is_itself():
    with subprocess.Popen(["sleep", "600"]) as daemon:
        with pytest.raises(KeyError), watched([psutil.Process(daemon.pid)], ours=False):
            raise KeyError
        with pytest.raises(UserError, match="has ended"), watched([psutil.Process(daemon.pid)], ours=False):
            daemon.kill()
            raise KeyError


def test_it_is_harmless_where_there_is_no_raylet():
    program = "from distpaml.runtime.lifeline import die_with_raylet; die_with_raylet(); print('alive')"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "alive\n"
