"""`ssh` and `rsync` to machines that moto only pretends: called by one of these names, first on the PATH.

Each call is noted as a line of JSON in $MACHINES/asked.jsonl. The first machine that is spoken to is the head, and is
here: files go to the home folder, folders are made but stay empty, and its commands about Ray are run, with the rights
of its role.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

name, words = Path(sys.argv[0]).name, sys.argv[1:]
folder, home = Path(os.environ["MACHINES"]), Path.home()
host = re.search(r"ubuntu@([\d.]+)", " ".join(words if name == "ssh" else words[-1:]))[1]
if not (folder / "head").exists():
    (folder / "head").write_text(host)
is_head = (folder / "head").read_text() == host
command = " ".join(words[words.index(f"ubuntu@{host}") + 1 :]) if name == "ssh" else " ".join(words[-2:])
with open(folder / "asked.jsonl", "a") as asked:
    print(json.dumps({"machine": "head" if is_head else host, "program": name, "command": command}), file=asked)

if is_head and name == "rsync":
    source, target = Path(words[-2]), home / words[-1].partition(":~/")[2]
    if source.is_dir():
        target.mkdir(exist_ok=True)
    elif not target.exists():
        target.write_bytes(source.read_bytes())
if is_head and name == "ssh" and re.search(r"\bray (start|stop)\b", command):
    role = json.loads((folder / "role.json").read_text())
    sys.exit(subprocess.run(["bash", "-c", command], env=os.environ | role).returncode)
