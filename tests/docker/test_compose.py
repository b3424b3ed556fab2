"""`compose.yaml` by itself: it is what the Compose specification allows, and every service is as closed as it can be."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from app.engines.dask import SCHEDULER_SETTINGS
from app.settings import Settings
from tests.docker.compose import COMPOSE, RAY, ROOT, Service, load, services
from workers.__main__ import parser

SERVICES = services(COMPOSE, RAY)
"""With what the profiles and docker/ray.yaml add."""
SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|API_KEY")
BIN = Path(sys.executable).parent

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)


def valid(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *files]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_files_follow_the_compose_specification(tmp_path):
    checked = valid(COMPOSE, RAY)
    assert checked.returncode == 0, checked.stdout
    misspelt = tmp_path / "compose.yaml"
    misspelt.write_text(COMPOSE.read_text().replace("read_only:", "readonly:"))
    assert "readonly" in valid(misspelt).stdout


def test_what_the_services_name_is_declared():
    whole = load(COMPOSE, RAY)
    for service in SERVICES.values():
        assert set(service.after) <= set(SERVICES)
        assert {name for name in service.volumes.values() if name} <= set(whole["volumes"])
        assert set(service.asked.get("secrets", [])) <= set(whole["secrets"])
        assert set(service.asked["networks"]) <= set(whole["networks"])
        assert (ROOT / service.asked["build"]["dockerfile"]).is_file()
        told = service.asked["build"].get("args", {})
        assert set(told) <= set(service.dockerfile.arguments)


@each_service
def test_a_service_has_no_more_power_than_it_needs(service: Service):
    user, group = service.asked["user"].split(":")
    assert int(user) > 0
    assert int(group) > 0
    assert service.asked["read_only"] is True
    assert service.asked["cap_drop"] == ["ALL"]
    assert service.asked["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "network_mode", "userns_mode"} & set(service.asked)
    # What it may write to: a temporary folder, and volumes that belong to it. Nothing of the host's.
    assert [each.partition(":")[0] for each in service.asked["tmpfs"]] == ["/tmp"]
    assert set(service.volumes) <= set(service.dockerfile.owned)


@each_service
def test_a_service_is_watched_and_ended_in_order(service: Service):
    assert service.check
    assert service.check_seconds >= 5
    assert service.asked["init"] is True  # orphans are buried, and SIGTERM reaches what runs
    assert service.asked["restart"] == "unless-stopped"
    assert service.grace_seconds > Settings.model_fields["drain_seconds"].default
    assert set(service.after.values()) <= {"service_healthy"}


@each_service
def test_no_secret_is_in_the_environment(service: Service):
    kept = {f"/run/secrets/{name}" for name in service.asked.get("secrets", [])}
    for name, value in service.environment.items():
        if SECRET.search(name) and not name.endswith("_MODE"):
            assert name.endswith(("_FILE", "_PATH"))
            assert value in kept
    assert not SECRET.search(" ".join(service.command))
    whole = load(COMPOSE, RAY)
    assert all(set(told) == {"file"} for told in whole["secrets"].values())
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert all(Path(told["file"]).parts[0] + "/" in ignored for told in whole["secrets"].values())


def test_only_the_api_is_reached_from_outside_and_on_loopback_unless_told():
    whole = load(COMPOSE, RAY)
    assert whole["networks"]["cluster"]["internal"] is True
    for name, service in SERVICES.items():
        assert ("ports" in service.asked) == (name == "api")
        assert service.asked["networks"] == (["cluster", "front"] if name == "api" else ["cluster"])
    assert SERVICES["api"].asked["ports"] == ["127.0.0.1:8000:8000"]
    told = services(variables={"TIDEMILL_PUBLISH": "0.0.0.0:80"})["api"]
    assert told.asked["ports"] == ["0.0.0.0:80:8000"]
    assert told.environment["TIDEMILL_AUTH"] == "keys"


def test_the_scheduler_is_set_as_the_servers_own():
    told = SERVICES["scheduler"].environment
    assert {name: value for name, value in told.items() if name.startswith("DASK_")} == SCHEDULER_SETTINGS


def test_the_server_knows_every_setting_it_is_given():
    known = {f"TIDEMILL_{name.upper()}" for name in Settings.model_fields} | {"TIDEMILL_CACHE_DIR"}
    given = {name for name in SERVICES["api"].environment if name.startswith("TIDEMILL_")}
    assert given <= known


@pytest.mark.parametrize("name", ["worker", "worker-gpu"])
def test_a_worker_is_told_only_what_it_understands(name):
    service = SERVICES[name]
    assert service.command[:3] == ["python", "-m", "workers"]
    options = parser().parse_args(service.command[3:])
    assert (options.scheduler, options.server) == (
        "tcp://scheduler:8786",
        SERVICES["api"].environment["TIDEMILL_PUBLIC_URL"],
    )


def test_profiles_are_what_their_names_say():
    assert {name: service.asked.get("profiles", []) for name, service in SERVICES.items()} == {
        "api": [],
        "scheduler": [],
        "worker": [],
        "worker-gpu": ["gpu"],
        "ray-head": ["ray"],
        "ray-worker": ["ray"],
    }
    (devices,) = SERVICES["worker-gpu"].asked["deploy"]["resources"]["reservations"]["devices"]
    assert devices == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    # Without docker/ray.yaml the API knows nothing of Ray.
    assert "ray" not in services()["api"].extras
    assert "TIDEMILL_RAY_ADDRESS" not in services()["api"].environment


def test_ray_is_told_the_same_wherever_a_node_of_it_runs():
    def told(name: str) -> dict[str, str]:
        return {key: value for key, value in SERVICES[name].environment.items() if key.startswith("RAY_")}

    assert told("ray-head") == told("ray-worker") == told("api") != {}


def test_no_variable_is_without_a_default():
    assert set(re.findall(r"\$\{(\w+)(:-)?", COMPOSE.read_text() + RAY.read_text())) == {
        (name, ":-") for name in ("TIDEMILL_ALLOWED_HOSTS", "TIDEMILL_PUBLISH", "PIP_EXTRA_INDEX_URL", "WORKER_THREADS")
    }
    assert yaml.safe_load(COMPOSE.read_text())["name"] == "tidemill"
