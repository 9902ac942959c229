"""The road of cluster/README.md on AWS, rehearsed: `aws-once.sh`, `ray up cluster.yaml`, workers on demand, `ray down`.

moto is the AWS of it, and there is no machine but this one (`rehearse_aws.py`).
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from once import once

PROJECT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((PROJECT / "cluster" / "cluster.yaml").read_text())
TYPES = CONFIG["available_node_types"]
pytestmark = [pytest.mark.root, pytest.mark.slow]


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    """What AWS had at each step."""
    with once(tmp_path_factory, "aws") as (folder, new):
        if new:
            rehearse(folder)
        return json.loads((folder / "seen.json").read_text())


def rehearse(folder: Path) -> None:
    """In namespaces, since `ray stop`, ports and /tmp/ray belong to the whole machine."""
    apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c"]
    prepared = 'ip link set lo up && mkdir -p /tmp/ray && mount -t tmpfs tmpfs /tmp/ray && "$@"'
    program = [sys.executable, str(Path(__file__).parent / "rehearse_aws.py"), str(folder)]
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "AWS_"))}
    done = subprocess.run(
        [*apart, prepared, "bash", *program], env=surroundings, capture_output=True, text=True, timeout=560
    )
    assert done.returncode == 0, done.stdout + done.stderr


def kind(machine: dict) -> str:
    return machine["tags"]["ray-user-node-type"]


def asked(seen: dict, of_head: bool) -> list[str]:
    return [line["command"] for line in seen["asked"] if (line["machine"] == "head") == of_head]


def test_up_launches_the_head_alone(seen):
    (head,) = seen["up"]
    assert (kind(head), head["InstanceType"], head["State"]["Name"]) == ("head", "m7i.large", "running")
    assert "InstanceLifecycle" not in head  # on demand


def test_workers_come_on_demand_and_are_spot_machines(seen):
    workers = [machine for machine in seen["grown"] if kind(machine) != "head"]
    assert Counter(map(kind, workers)) == {"cores-spot": 2, "trainer": 1}, seen["monitor"]
    assert {machine["InstanceLifecycle"] for machine in workers} == {"spot"}
    starts = [command for command in asked(seen, of_head=False) if "ray start --address=$RAY_HEAD_IP:6379" in command]
    assert len(starts) == 3 and sum('"CPU":8' in start for start in starts) == 2
    assert sum('"GPU":1' in start and '"CPU":4' in start for start in starts) == 1


def test_every_machine_is_as_the_file_says(seen):
    assert len(seen["grown"]) == 4
    volumes = {volume["Attachments"][0]["InstanceId"]: volume for volume in seen["volumes"]}
    for machine in seen["grown"]:
        said = TYPES[kind(machine)]["node_config"]
        volume, disk = volumes[machine["InstanceId"]], said["BlockDeviceMappings"][0]["Ebs"]
        assert machine["InstanceType"] == said["InstanceType"] and machine["ImageId"] == said["ImageId"]
        assert machine["IamInstanceProfile"]["Arn"] == seen["profile"]["Arn"]
        assert machine["MetadataOptions"]["HttpTokens"] == "required"  # IMDSv2
        assert machine["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
        assert (volume["Size"], volume["VolumeType"]) == (disk["VolumeSize"], disk["VolumeType"])
        assert machine["tags"]["ray-cluster-name"] == "distpaml"


def test_the_image_is_one_of_ubuntu_whose_user_is_ubuntu(seen):
    assert CONFIG["auth"]["ssh_user"] == "ubuntu"
    for machine in seen["grown"]:
        road, name = machine["ImageId"].split(":/")
        assert road == "resolve:ssm" and name.startswith("aws/service/") and name.endswith("/ami-id")
        assert "ubuntu" in name and "24.04" in name


def test_only_ssh_is_let_in(seen):
    (group,) = seen["groups"]
    inside = [rule for rule in group["IpPermissions"] if rule["UserIdGroupPairs"]]
    outside = [rule for rule in group["IpPermissions"] if rule["IpRanges"] or rule["Ipv6Ranges"]]
    assert len(inside) + len(outside) == len(group["IpPermissions"])
    assert [(rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) for rule in outside] == [("tcp", 22, 22)]
    assert [pair["GroupId"] for rule in inside for pair in rule["UserIdGroupPairs"]] == [group["GroupId"]]


def test_the_role_is_of_the_machines_and_the_bucket_is_private(seen):
    (role,) = seen["profile"]["Roles"]
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "distpaml" and statement["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert seen["bucket"] and all(seen["bucket"].values())
    assert "UnauthorizedOperation" not in seen["monitor"] and "AccessDenied" not in seen["monitor"]


def test_head_and_workers_get_the_clone_the_token_and_the_pinned_package(seen):
    head, workers = asked(seen, of_head=True), asked(seen, of_head=False)
    assert any(command.startswith("./ ubuntu@") and command.endswith(":~/distpaml/") for command in head)
    for commands, machines in ((head, 1), (workers, 3)):
        assert sum("auth_token ubuntu@" in command for command in commands) == machines
        assert sum("(bash ~/distpaml/cluster/setup.sh aws)" in command or "; bash ~/distpaml" in command
                   for command in commands) >= machines  # fmt: skip
    assert not any("pip install" in command for command in head + workers)  # nothing that is not pinned


def test_down_ends_everything(seen):
    assert len(seen["down"]) == 4 and {machine["State"]["Name"] for machine in seen["down"]} == {"terminated"}
    assert seen["volumes"] and not seen["volumes left"]
