"""The five commands of cluster/README.md for AWS, against moto: `rehearse_aws.py FOLDER` in namespaces of its own.

The head is a real one, here (`machine.py`); it has the rights of the role that aws-once.sh makes, and no others, once
that is made. Writes FOLDER/seen.json: what AWS has after `ray up`, when workers are wanted, and after `ray down`.
"""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import boto3
import requests
from moto.server import ThreadedMotoServer

PROJECT = Path(__file__).parents[2]
REGION = "us-west-2"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
DEMAND = """
import ray
from ray.autoscaler.sdk import request_resources
ray.init(address="auto", logging_level="error", log_to_driver=False)
request_resources(bundles=[{"CPU": 1}] * 12 + [{"CPU": 1, "GPU": 1}])
"""
"""Two machines of 8 cores, and one with a GPU."""


def run(*command: str, **more: str) -> None:
    done = subprocess.run(command, cwd=PROJECT, env=os.environ | more, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def client(service: str):
    """With the keys that the environment has by now."""
    return boto3.Session().client(service)


def machines() -> list[dict]:
    reservations = client("ec2").describe_instances()["Reservations"]
    found = [machine for reservation in reservations for machine in reservation["Instances"]]
    for machine in found:
        machine["tags"] = {tag["Key"]: tag["Value"] for tag in machine["Tags"]}
    return found


def volumes() -> list[dict]:
    return client("ec2").describe_volumes()["Volumes"]


def until(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.5)


def keys_of(user: str, policy: dict) -> dict[str, str]:
    """Keys of a new user who may do what the policy says."""
    iam = client("iam")
    iam.create_user(UserName=user)
    iam.put_user_policy(UserName=user, PolicyName="its", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=user)["AccessKey"]
    return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}


def main(folder: Path) -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    (folder / "bin").mkdir()
    for name in ("ssh", "rsync"):
        (folder / "bin" / name).write_text(f"#!{sys.executable}\n" + (Path(__file__).parent / "machine.py").read_text())
        (folder / "bin" / name).chmod(0o755)
    (folder / "home").mkdir()
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}"
    (folder / "home" / ".bashrc").write_text(f". '{PROJECT}/cluster/env.sh'\nexport PATH='{path}':$PATH\n")
    os.environ |= {
        "HOME": str(folder / "home"),
        "MACHINES": str(folder),
        "PATH": f"{path}:{os.environ['PATH']}",
        "AWS_ENDPOINT_URL": address,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    os.environ |= keys_of("administrator", EVERYTHING)
    requests.post(f"{address}/moto-api/reset-auth", data=b"0")  # from here on, rights count

    run("ray", "get-auth-token", "--generate")
    for _ in range(2):  # again does no harm
        run("bash", "cluster/aws-once.sh", "my-bucket")
    policy = client("iam").get_role_policy(RoleName="distpaml", PolicyName="distpaml")["PolicyDocument"]
    (folder / "role.json").write_text(json.dumps(keys_of("machine", policy)))
    run("ray", "up", "-y", "--no-config-cache", "cluster/cluster.yaml")
    seen = {"up": machines()}

    run(sys.executable, "-c", DEMAND)
    until(lambda: sum(machine["tags"]["ray-node-type"] == "worker" for machine in machines()) >= 3)
    until(lambda: (folder / "asked.jsonl").read_text().count("ray start --address") >= 3)
    seen |= {"grown": machines(), "volumes": volumes()}
    seen["monitor"] = Path("/tmp/ray/session_latest/logs/monitor.log").read_text()

    groups = {group["GroupId"] for machine in seen["grown"] for group in machine["SecurityGroups"]}
    seen["groups"] = client("ec2").describe_security_groups(GroupIds=[*groups])["SecurityGroups"]
    seen["bucket"] = client("s3").get_public_access_block(Bucket="my-bucket")["PublicAccessBlockConfiguration"]
    seen["profile"] = client("iam").get_instance_profile(InstanceProfileName="distpaml")["InstanceProfile"]
    run("ray", "down", "-y", "cluster/cluster.yaml")
    seen |= {"down": machines(), "volumes left": volumes()}
    seen["asked"] = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
    (folder / "seen.json").write_text(json.dumps(seen, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
