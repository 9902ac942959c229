"""Everything in cluster/ is what Ray, Kubernetes and bash take, and names only what exists."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from googleapiclient.discovery_cache import get_static_doc
from jsonschema import ValidationError
from kubernetes.client import V1PodTemplateSpec
from ray.autoscaler._private.util import prepare_config, validate_config

from distpaml.sweep.load import load_sweep
from distpaml.sweep.trials import grid_trials

PROJECT = Path(__file__).parents[2]
CLUSTER = PROJECT / "cluster"
LAUNCHED = ["cluster.yaml", "gcp.yaml", "on-premise.yaml"]
SCRIPTS = sorted(path.name for path in CLUSTER.iterdir() if path.suffix in (".sh", ".sbatch"))
TEXTS = {path.name: path.read_text() for path in CLUSTER.iterdir() if path.is_file()}
MANIFESTS = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(TEXTS["kuberay.yaml"])}
ABOUT = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
EXTRAS, IMAGE = ABOUT["optional-dependencies"], f"distpaml:{ABOUT['version']}"


def read(name):
    return yaml.safe_load(TEXTS[name])


@pytest.mark.parametrize("name", LAUNCHED)
def test_ray_takes_it(name):
    validate_config(prepare_config(read(name)))


def test_ray_would_refuse_a_wrong_key():
    with pytest.raises(ValidationError):
        validate_config(prepare_config(read("cluster.yaml") | {"max_wokers": 3}))


@pytest.mark.parametrize("name", LAUNCHED)
def test_it_installs_the_pinned_package_from_files_that_exist(name):
    config = read(name)
    extra = {"aws": " aws", "gcp": " gcp", "local": ""}[config["provider"]["type"]]
    assert config["setup_commands"] == [f"bash ~/distpaml/cluster/setup.sh{extra}"]
    assert extra.strip() in {"", *EXTRAS} and config["file_mounts"]["~/distpaml"] == "."
    assert (
        not config["head_setup_commands"] if extra else "head_setup_commands" not in config
    )  # Ray's own are not pinned
    assert config["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    commands = " ".join(str(value) for value in config.values())
    for path in re.findall(r"~/distpaml/([\w./-]+)", commands):
        assert path.startswith(".venv/bin/") or (PROJECT / path).exists(), path


@pytest.mark.parametrize("name", ["cluster.yaml", "gcp.yaml"])
def test_workers_start_from_none_and_fall_back_from_spot_to_on_demand(name):
    types = read(name)["available_node_types"]
    workers = {key: value for key, value in types.items() if key not in ("head", "trainer")}
    assert types["head"]["resources"] == {"CPU": 0} and types["trainer"]["resources"]["GPU"] == 1
    assert all(kind["min_workers"] == 0 and kind["resources"] == {"CPU": 8} for kind in workers.values())
    ranked = sorted(workers, key=lambda key: -workers[key]["priority"])
    spot = [bool({"InstanceMarketOptions", "scheduling"} & workers[key]["node_config"].keys()) for key in ranked]
    assert spot == [True, True, False] and len({kind["priority"] for kind in workers.values()}) == 3


@pytest.mark.parametrize("name", LAUNCHED)
def test_no_port_is_opened_and_the_token_is_asked_for(name):
    config = read(name)
    assert not {"security_group", "firewalls"} & config["provider"].keys()
    assert any("--dashboard-host=127.0.0.1" in command for command in config["head_start_ray_commands"])
    assert "RAY_AUTH_MODE=token" in TEXTS["env.sh"] and "0.0.0.0" not in TEXTS[name]


@pytest.mark.parametrize("name", SCRIPTS)
def test_bash_takes_it(name):
    done = subprocess.run(["bash", "-n", CLUSTER / name], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    if name != "env.sh":
        assert "set -euo pipefail" in TEXTS[name]


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_no_secret_is_written(name):
    assert not re.search(r"(API_KEY|SECRET_ACCESS_KEY|AUTH_TOKEN)\s*[:=]\s*['\"]?\w", TEXTS[name])


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_files_that_it_names_exist(name):
    for path in re.findall(r"(?<![\w/~.-])((?:cluster|distpaml|tests|tune_configs)/[\w./-]+\.\w+)", TEXTS[name]):
        assert (PROJECT / path).exists(), path


def mismatches(schemas: dict, value: object, schema: dict, where: str) -> list[str]:
    """Where a value is not what a schema of Google's discovery format says."""
    schema = schemas[schema["$ref"]] if "$ref" in schema else schema
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    if schema.get("format") == "int64":  # JSON has no integers of 64 bits
        kinds["string"] = int
    if not isinstance(value, kinds[schema["type"]]):
        return [f"{where} is {value!r}, no {schema['type']}"]
    if value not in schema.get("enum", [value]):
        return [f"{where} is {value!r}, none of {schema['enum']}"]
    if isinstance(value, list):
        return [text for item in value for text in mismatches(schemas, item, schema["items"], f"{where}[]")]
    if not isinstance(value, dict):
        return []
    unknown = [f"{where}.{key} is unknown" for key in value if key not in schema["properties"]]
    known = [(key, item) for key, item in value.items() if key in schema["properties"]]
    inner = [mismatches(schemas, item, schema["properties"][key], f"{where}.{key}") for key, item in known]
    return unknown + [text for texts in inner for text in texts]


def test_compute_engine_takes_every_machine_of_gcp_yaml():
    """By the description of its API that Google's client ships."""
    schemas = json.loads(get_static_doc("compute", "v1"))["schemas"]
    instance = {"$ref": "Instance"}
    machines = {name: kind["node_config"] for name, kind in read("gcp.yaml")["available_node_types"].items()}
    assert [mismatches(schemas, machine, instance, name) for name, machine in machines.items()] == [[]] * 5
    wrong = machines["trainer"] | {"scheduling": [{"preemptible": True}], "diskz": 1}
    assert mismatches(schemas, wrong, instance, "trainer") == [
        "trainer.diskz is unknown",
        "trainer.scheduling is [{'preemptible': True}], no object",
    ]


def test_both_manifests_are_of_one_cluster_of_the_image_that_is_built():
    cluster, job = MANIFESTS["RayCluster"]["spec"], MANIFESTS["RayJob"]["spec"]
    assert {manifest["apiVersion"] for manifest in MANIFESTS.values()} == {"ray.io/v1"}
    assert cluster == job["rayClusterSpec"]
    assert f"ray=={cluster['rayVersion']}" in (PROJECT / "constraints.txt").read_text().splitlines()
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    containers = [container for group in groups for container in group["template"]["spec"]["containers"]]
    assert {container["image"] for container in containers} == {IMAGE}
    assert f"docker build -t {IMAGE} -f cluster/Dockerfile ." in TEXTS["Dockerfile"]
    assert all(group["minReplicas"] == group["replicas"] == 0 for group in cluster["workerGroupSpecs"])
    assert cluster["authOptions"] == {"mode": "token"} and cluster["headGroupSpec"]["serviceType"] == "ClusterIP"


def test_kubernetes_takes_every_pod():
    """By the description of its API that Kubernetes' own client ships."""
    cluster = MANIFESTS["RayCluster"]["spec"]
    pods = [group["template"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    for pod in pods:
        V1PodTemplateSpec.model_validate(pod)
    wrong = {"spec": pods[0]["spec"] | {"restartPolice": "Never"}}
    with pytest.raises(ValueError, match="restartPolice"):
        V1PodTemplateSpec.model_validate(wrong)


def test_the_job_runs_a_sweep_that_exists():
    python, dash, module, name, *_ = MANIFESTS["RayJob"]["spec"]["entrypoint"].split()
    assert (python, dash, module) == ("python", "-m", "distpaml.sweep") and load_sweep(name)


def test_the_estimate_counts_the_trials_that_there_are():
    rows = re.findall(r"^\| ([\w, -]+) \| (\d+) \| (\d+) \| ([\d.]+) \|$", TEXTS["README.md"], re.MULTILINE)
    assert len(grid_trials(load_sweep("paper"))) == sum(int(trials) for _, trials, _, _ in rows)
    assert all(float(hours) == round(int(trials) * int(each) / 3600, 1) for _, trials, each, hours in rows)


def test_the_image_has_all_that_the_package_is_built_of():
    copied = re.findall(r"^COPY (.*) \S+$", TEXTS["Dockerfile"], re.MULTILINE)
    allowed = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for path in " ".join(copied).split():
        assert (PROJECT / path).exists() and path.partition("/")[0] in allowed, path
    exported = set(re.findall(r"(\w+)=\S+", re.sub(r"#.*|\$\{.*?\}", "x", TEXTS["env.sh"])))
    assert exported == set(re.findall(r"(\w+)=", re.search(r"^ENV (.*)$", TEXTS["Dockerfile"], re.MULTILINE)[1]))
