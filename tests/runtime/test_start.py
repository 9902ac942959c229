"""A Ray that the program starts for itself is nobody else's."""

import json
import os
import subprocess
import sys
from ipaddress import ip_address

PROGRAM = """
import json, psutil
from distpaml.runtime.start import connected
with connected([]) as joined:
    here = psutil.Process()
    sockets = [socket for p in (here, *here.children(recursive=True)) for socket in p.net_connections()]
    found = [socket.laddr.ip for socket in sockets if socket.status == "LISTEN"]
print(json.dumps([joined, found]))
"""


def test_it_listens_to_this_machine_alone():
    alone = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=alone, check=True)
    joined, addresses = json.loads(done.stdout.splitlines()[-1])
    assert not joined and len(addresses) >= 4
    for address in map(ip_address, addresses):
        assert (getattr(address, "ipv4_mapped", None) or address).is_loopback
