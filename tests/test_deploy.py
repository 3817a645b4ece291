"""What deploy/ promises: who a container runs as, what is published where, which versions, which limits; and
the proxy, with a real nginx.

No image is built and no cluster runs here: docs/deployment.md says so, too.
"""

import http.client
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from home.settings import SHARD_TAG, VARIABLES, load_settings
from marketing_sync import __version__
from pipelines.schedules import shard_tags
from tests.ports import free_port, is_served
from tests.waiting import HANGS_S, wait_until

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
#: Not what a person has put beside them: keys, accounts.toml, .env.
FILES = sorted(
    path for path in DEPLOY.iterdir() if path.is_file() and path.name not in (".env", "accounts.toml")
)
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/deployment.md").read_text(encoding="utf-8")
#: What `load_settings` reads beside the declared settings; names that docs use as examples of a key's
#: variable are not ours.
ALSO_READ = {"MARKETING_HOME", "MARKETING_API_URL", "MARKETING_API_KEY"}


def read(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


COMPOSE, VALUES, DAGSTER = read("compose.yaml"), read("values.yaml"), read("dagster.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
CODE = VALUES["dagster-user-deployments"]["deployments"][0]
LAUNCHER = VALUES["runLauncher"]["config"]["k8sRunLauncher"]


def images(content: Any) -> Iterator[str]:
    """Every image that a file names, as NAME:TAG."""
    for key, value in content.items() if isinstance(content, dict) else ():
        if key == "image":
            yield value if isinstance(value, str) else f"{value['repository']}:{value['tag']}"
        else:
            yield from images(value)
    for value in content if isinstance(content, list) else ():
        yield from images(value)


# -------------------------------------------------------------------------------------------------------------------------
# versions


def test_every_image_has_a_version_and_names_no_registry() -> None:
    stages = set(re.findall(r"^FROM \S+ AS (\S+)", DOCKERFILE, re.MULTILINE))
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) - stages == {"$BASE"}
    named = {*images(COMPOSE), *images(VALUES), *re.findall(r"^ARG BASE=(\S+)", DOCKERFILE, re.MULTILINE)}
    assert [image for image in named if not re.fullmatch(r"[a-z-]+:\d+\.\d+(\.\d+)?(-[a-z]+)*", image)] == []


def test_one_image_of_ours_is_used_everywhere() -> None:
    ours = {image for image in (*images(COMPOSE), *images(VALUES)) if image.startswith("marketing-sync")}
    assert ours == {f"marketing-sync:{__version__}"}


def locked(name: str) -> dict[str, str]:
    """Package → version in a lock."""
    found = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / name).read_text(), re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("name", ["deploy/requirements.lock", "deploy/requirements-kubernetes.lock"])
def test_what_the_image_installs_was_tested(name: str) -> None:
    image, tested = locked(name), locked("requirements-dev.lock")
    assert [package for package in image.keys() & tested if image[package] != tested[package]] == []
    builds = {"hatchling", "pathspec", "pluggy", "trove-classifiers"}  # the wheel, which is built before
    assert locked("requirements.lock").keys() - image.keys() <= builds


def test_parts_of_dagster_are_of_one_release() -> None:
    """1.13.27 and 0.29.27 are released together; the chart is of the same."""
    image = locked("deploy/requirements-kubernetes.lock")
    parts = {image[f"dagster{part}"].split(".")[-1] for part in ("", "-k8s", "-postgres", "-webserver")}
    assert len(parts) == 1
    assert image["dagster"] in (DEPLOY / "values.yaml").read_text()


def test_the_image_is_not_roots_and_can_be_asked_for_its_health() -> None:
    instructions = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if re.match(r"[A-Z]+ ", line)]
    begin = max(number for number, (word, _) in enumerate(instructions) if word == "FROM")
    last_stage = instructions[begin:]
    assert {word for word, _ in last_stage} >= {"USER", "HEALTHCHECK", "STOPSIGNAL", "CMD", "WORKDIR"}
    assert [rest for word, rest in last_stage if word == "USER"] == ["10001:10001"]
    assert not [rest for word, rest in instructions if word == "ADD"]
    assert "latest" not in DOCKERFILE


def test_the_image_gets_what_the_build_copies_and_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    copied = {name for line in lines for name in line.split()}
    assert "*" in ignored
    assert copied == let_in
    assert [name for name in copied if name != "dist/*.whl" and not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("tag", "said"),
    [("v1.2.4", "the tag is v1.2.4, the version v1.2.3"), ("v1.2.3", "CHANGELOG.md has no section 1.2.3")],
)
def test_a_tag_is_released_only_as_its_version_and_with_notes(tmp_path: Path, tag: str, said: str) -> None:
    (tmp_path / "marketing_api").mkdir()
    (tmp_path / "marketing_api" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\nMuch.\n\n## 1.2.30 (2026-11-27)\n\nLittle.\n")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "All"], ["tag", tag]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    ran = subprocess.run([DEPLOY / "release", tag], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, said in ran.stderr) == (1, True), ran.stderr


# ---------------------------------------------------------------------------------------------------------------------
# one server


def test_containers_have_no_rights_that_they_do_not_need() -> None:
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"]), name
        assert {"mem_limit", "healthcheck", "logging", "restart"} <= service.keys(), name


def test_ports_are_published_on_the_loopback_alone() -> None:
    published = {name: port for name, service in SERVICES.items() for port in service.get("ports", [])}
    assert set(published) == {"web", "viewer"}
    assert [port for port in published.values() if not port.startswith("127.0.0.1:")] == []


def test_keys_and_homes_are_where_the_runs_are() -> None:
    assert [name for name, service in SERVICES.items() if "secrets" in service] == ["code"]
    homes = [name for name, service in SERVICES.items() if "homes:/data" in service.get("volumes", [])]
    assert homes == ["code"]


def test_only_what_calls_out_has_a_way_out() -> None:
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert [name for name, service in SERVICES.items() if "outside" in service["networks"]] == ["code"]


# ------------------------------------------------------------------------------------------------------------------------
# a cluster


def test_a_shard_has_one_run_at_a_time_everywhere() -> None:
    coordinator = VALUES["dagsterDaemon"]["runCoordinator"]["config"]["queuedRunCoordinator"]
    assert coordinator["tagConcurrencyLimits"] == DAGSTER["concurrency"]["runs"]["tag_concurrency_limits"]
    assert [limit["key"] for limit in coordinator["tagConcurrencyLimits"]] == [SHARD_TAG]


def test_runs_are_monitored_and_retried_as_on_one_server() -> None:
    monitoring = VALUES["dagsterDaemon"]["runMonitoring"]
    assert monitoring["startTimeoutSeconds"] == DAGSTER["run_monitoring"]["start_timeout_seconds"]
    assert VALUES["additionalInstanceConfig"]["run_retries"] == DAGSTER["run_retries"]
    assert VALUES["additionalInstanceConfig"]["local_artifact_storage"] == DAGSTER["local_artifact_storage"]
    # else the chart writes the same key a second time
    assert VALUES["dagsterDaemon"]["runRetries"] == {"enabled": False}


def test_a_database_that_is_gone_is_noticed_as_on_one_server_and_reached_by_tls() -> None:
    server = DAGSTER["storage"]["postgres"]["postgres_db"]
    assert VALUES["postgresql"]["postgresqlParams"] == server["params"] | {"sslmode": "require"}
    longest = VALUES["dagsterDaemon"]["runMonitoring"]["maxRuntimeSeconds"]
    assert longest == DAGSTER["run_monitoring"]["max_runtime_seconds"]


def test_no_pod_runs_as_root_or_writes_into_its_image() -> None:
    parts = [VALUES["dagsterWebserver"], VALUES["dagsterDaemon"], CODE]
    pods = [part["podSecurityContext"] for part in parts]
    pods.append(LAUNCHER["runK8sConfig"]["podSpecConfig"]["securityContext"])
    assert all(pod["runAsNonRoot"] and pod["runAsUser"] == 10001 for pod in pods)
    for container in [*(part["securityContext"] for part in parts), LAUNCHER["securityContext"]]:
        assert container["readOnlyRootFilesystem"]
        assert not container["allowPrivilegeEscalation"]


def test_ports_are_those_that_anybody_may_open_and_probes_ask_there() -> None:
    web = VALUES["dagsterWebserver"]
    assert min(web["service"]["port"], CODE["port"]) >= 1024
    assert web["readinessProbe"]["httpGet"]["port"] == web["service"]["port"]


@pytest.fixture
def tags(tmp_path: Path) -> dict[str, str]:
    """Of a run of shard `north`, with the settings of deploy/values.yaml."""
    given = {variable["name"]: variable["value"] for variable in CODE["env"]}
    account = '[accounts.harbor]\nurl = "https://HOST/1"\nkey_file = "x"\nshard = "north"\n'
    (tmp_path / "accounts.toml").write_text(account)
    return dict(shard_tags(load_settings(tmp_path, given), "north"))


def test_the_tags_of_a_run_mount_what_the_shards_file_makes(tags: dict[str, str]) -> None:
    claim, secret = yaml.safe_load_all((DEPLOY / "shard.yaml").read_text())
    pod = json.loads(tags["dagster-k8s/config"])
    volumes = {volume["name"]: volume for volume in pod["pod_spec_config"]["volumes"]}
    assert volumes["home"]["persistent_volume_claim"]["claim_name"] == claim["metadata"]["name"]
    assert volumes["keys"]["secret"]["secret_name"] == secret["metadata"]["name"]
    assert {mount["name"] for mount in pod["container_config"]["volume_mounts"]} == set(volumes)
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]


@pytest.fixture
def run_job(tags: dict[str, str]) -> dict[str, Any]:
    """The Job of a scheduled run, as dagster-k8s makes it of launcher, code location and tags, in this order."""
    pytest.importorskip("dagster_k8s", reason="needs the packages of deploy/requirements-kubernetes.lock")
    from dagster_k8s import job as dagster_job
    from dagster_k8s.container_context import K8sContainerContext
    from kubernetes.client import ApiClient

    # as the chart hands them to Dagster: the names of the first level changed
    of_launcher = {
        re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key): value
        for key, value in LAUNCHER["runK8sConfig"].items()
    }
    launcher = {"security_context": LAUNCHER["securityContext"], "run_k8s_config": of_launcher}
    location = {
        "run_k8s_config": {"pod_spec_config": {"automount_service_account_token": True}},  # the chart's
        "volumes": CODE["volumes"],
        "volume_mounts": CODE["volumeMounts"],
        "resources": CODE["resources"],
    }
    context = K8sContainerContext()
    for config in (launcher, location):
        context = context.merge(K8sContainerContext.create_from_config({"k8s": config}))
    of_run = dagster_job.get_user_defined_k8s_config(tags)
    context = context.merge(K8sContainerContext(run_k8s_config=of_run))
    config = dagster_job.DagsterK8sJobConfig(job_image="image", dagster_home="/home")
    how = {"user_defined_k8s_config": context.run_k8s_config, "component": "run_worker"}
    job = dagster_job.construct_dagster_k8s_job(config, ["dagster"], "run", **how)
    return dict(ApiClient().sanitize_for_serialization(job))


def test_a_runs_pod_has_limits_a_deadline_and_no_token(run_job: dict[str, Any]) -> None:
    monitoring = VALUES["dagsterDaemon"]["runMonitoring"]
    pod = run_job["spec"]["template"]
    [container] = pod["spec"]["containers"]
    longest = monitoring["maxRuntimeSeconds"] + monitoring["startTimeoutSeconds"]
    assert run_job["spec"]["activeDeadlineSeconds"] == longest
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["metadata"]["annotations"] == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    assert container["resources"]["limits"] == {"memory": "4Gi", "ephemeral-storage": "2Gi"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["spec"]["securityContext"]["runAsUser"] == 10001
    assert {volume["name"] for volume in pod["spec"]["volumes"]} == {"tmp", "accounts", "home", "keys"}


def test_nothing_talks_to_a_run_and_a_proxy_alone_to_the_web_server() -> None:
    runs, code, servers = (
        each["spec"] for each in yaml.safe_load_all((DEPLOY / "network.yaml").read_text(encoding="utf-8"))
    )
    assert all(set(policy["policyTypes"]) == {"Ingress", "Egress"} for policy in (runs, code, servers))
    assert runs["podSelector"] == {"matchLabels": {"app.kubernetes.io/component": "run_worker"}}
    assert "ingress" not in runs
    assert [port["port"] for rule in code["ingress"] for port in rule["ports"]] == [CODE["port"]]
    assert code["ingress"][0]["from"][0]["podSelector"] == servers["podSelector"]
    web = VALUES["dagsterWebserver"]["service"]["port"]
    proxy = [{"podSelector": {"matchLabels": {"marketing-sync/proxy": "true"}}}]
    assert servers["ingress"] == [{"from": proxy, "ports": [{"port": web}]}]
    database = VALUES["postgresql"]["service"]["port"]
    for policy in (runs, code, servers):
        assert database in [port["port"] for rule in policy["egress"] for port in rule["ports"]]


def test_every_container_on_a_cluster_has_limits() -> None:
    for part in (VALUES["dagsterWebserver"], VALUES["dagsterDaemon"], CODE):
        assert part["resources"]["limits"].keys() == {"memory", "ephemeral-storage"}
        empty = [volume["emptyDir"] for volume in part["volumes"] if "emptyDir" in volume]
        assert empty == [{"sizeLimit": "1Gi"}]


def test_no_secret_is_given_to_the_web_server_the_daemon_or_the_code_server() -> None:
    for part in (VALUES["dagsterWebserver"], VALUES["dagsterDaemon"], CODE):
        assert "envSecrets" not in part
        assert not any("secret" in volume for volume in part["volumes"])


# -------------------------------------------------------------------------------------------------------------------
# all, the page


@pytest.mark.parametrize("path", [*FILES, ROOT / "docs/deployment.md"], ids=lambda path: path.name)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    known = VARIABLES.keys() | ALSO_READ
    named = set(re.findall(r"\bMARKETING_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8")))
    named.discard("MARKETING_CODE_HOST")  # workspace.yaml's
    assert {name for name in named if name.removesuffix("_FILE") not in known} == set()


def test_every_file_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:deploy|tests|docs)/[\w./-]+)`", PAGE))
    assert {name for name in named if not (ROOT / name).is_file()} == set()
    assert {f"deploy/{path.name}" for path in FILES} <= named


def test_the_tables_of_the_page_are_what_the_model_says() -> None:
    from tests.benchmarks.bench_fleet import table

    assert table() in PAGE


def test_units_and_terminals_share_the_rate_limit() -> None:
    for unit in (path for path in FILES if path.suffix == ".service"):
        lines = unit.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if line.startswith("PrivateTmp=")], unit
        assert [line for line in lines if re.match(r"ReadWritePaths=(.* )?/tmp\b", line)], unit


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    units = sorted(path for path in FILES if path.suffix in (".service", ".timer"))
    for unit in units:  # the program and its settings are not installed here
        text = re.sub(r"(?m)^(ExecStart=)\S+", r"\1/bin/true", unit.read_text(encoding="utf-8"))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    words = ["systemd-analyze", "verify", *(tmp_path / unit.name for unit in units)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert len(units) == 3
    assert (ran.returncode, [line for line in ran.stderr.splitlines() if str(tmp_path) in line]) == (0, [])


# ------------------------------------------------------------------------------------------------------------------------
# the proxy


class Upstream(BaseHTTPRequestHandler):
    """Dagster's web server, which does whatever arrives, and oauth2-proxy, which admits its cookie."""

    protocol_version = "HTTP/1.1"
    arrived: list[tuple[str, str, str]]

    def do_GET(self) -> None:
        if self.path.startswith("/oauth2/"):
            return self._answer(202 if "_oauth2_proxy=valid" in self.headers.get("Cookie", "") else 401)
        self.arrived.append((self.command, self.path, self.headers.get("Cookie", "")))
        return self._answer(101 if self.headers.get("Upgrade") else 200)

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815 (as the standard library calls them)

    def _answer(self, status: int) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(status)
        if status == 101:
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
        else:
            self.send_header("Content-Length", "0")
        self.end_headers()
        self.close_connection = status == 101

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a real nginx with deploy/nginx.conf, without TLS, before a stand-in upstream."""
    if not (program := shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")):
        pytest.skip("needs nginx: apt-get install nginx-light")
    Upstream.arrived = []
    folder = tmp_path_factory.mktemp("nginx")
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        port = free_port()
        _write_configuration(folder, port, upstream.server_port)
        process = subprocess.Popen(
            [program, "-p", str(folder), "-c", str(folder / "main.conf"), "-e", "stderr"],
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: is_served(port), "nginx does not listen")
            yield port
        finally:
            process.terminate()
            process.wait()
            upstream.shutdown()


def _write_configuration(folder: Path, port: int, upstream: int) -> None:
    for name in ("nginx.conf", "nginx-server.conf"):
        text = (DEPLOY / name).read_text(encoding="utf-8")
        text = re.sub(r"^ *ssl_.*\n", "", text, flags=re.MULTILINE).replace(
            "listen 443 ssl http2", f"listen 127.0.0.1:{port}"
        )
        text = re.sub(r"127\.0\.0\.1:(3000|3001|4180)", f"127.0.0.1:{upstream}", text)
        (folder / name).write_text(
            text.replace("/etc/nginx/marketing-sync-server.conf", str(folder / "nginx-server.conf")),
            encoding="utf-8",
        )
    places = "".join(
        f"{kind}_temp_path {folder};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = (
        f"daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{places}include "
        f"{folder}/nginx.conf;\n}}\n"
    )
    (folder / "main.conf").write_text(main, encoding="utf-8")


def ask(
    port: int, method: str, path: str, headers: dict[str, str], host: str = "dagster.example.com"
) -> tuple[int, bool]:
    """The status, and whether the request arrived behind the proxy."""
    before = len(Upstream.arrived)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS_S)
    try:
        connection.request(
            method, path, body=b"{}" if method in ("POST", "PUT") else None, headers={"Host": host} | headers
        )
        status = connection.getresponse().status
    except (ConnectionResetError, BrokenPipeError):  # 444: closed, whether the body had been read or not
        status = 0
    finally:
        connection.close()
    return status, len(Upstream.arrived) > before


IN = {"Cookie": "_oauth2_proxy=valid"}
OWN, FOREIGN = {"Origin": "https://dagster.example.com"}, {"Origin": "https://evil.example"}
WEBSOCKET = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x" * 24,
}
MUTATION = "/graphql?query=mutation%7BlaunchRun%7D"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 200),
        (
            "GET",
            "/",
            {"Origin": "https://evil.example"},
            200,
        ),  # a page that is looked at; the browser does not hand it on
        ("GET", "/runs?q=x", {}, 200),
        ("POST", "/graphql", OWN, 200),
        ("POST", "/graphql?op=Runs", OWN, 200),
        ("GET", "/graphql", OWN | WEBSOCKET, 101),
    ],
)
def test_the_proxy_passes_what_the_own_pages_send(
    proxy: int, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    assert ask(proxy, method, path, IN | headers) == (status, True)


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/graphql", FOREIGN),
        ("POST", "/graphql", {}),
        ("POST", "/graphql", {"Origin": "null"}),
        ("POST", "/graphql", {"Origin": "https://dagster.example.com.evil.example"}),
        ("POST", "/graphql", {"Origin": "https://viewer.dagster.example.com"}),
        ("PUT", "/graphql", FOREIGN),
        ("GET", "/graphql", FOREIGN | WEBSOCKET),
        ("GET", "/graphql", WEBSOCKET),
        ("GET", MUTATION, {}),  # a link, with which a browser sends the cookie
        ("GET", MUTATION, OWN),
        ("HEAD", MUTATION, {}),
        ("GET", MUTATION.replace("/graphql", "//graphql"), {}),
        ("GET", MUTATION.replace("/graphql", "/%67raphql"), {}),
        ("GET", MUTATION.replace("/graphql", "/x/../graphql"), {}),
        ("GET", MUTATION.replace("/graphql", "/graphql/"), {}),
    ],
)
def test_the_proxy_refuses_what_other_pages_and_links_send(
    proxy: int, method: str, path: str, headers: dict[str, str]
) -> None:
    assert ask(proxy, method, path, IN | headers) == (403, False)


def test_the_proxy_lets_nobody_in_without_log_in(proxy: int) -> None:
    assert [ask(proxy, method, "/graphql", OWN)[1] for method in ("GET", "POST")] == [False, False]


def test_the_proxy_answers_to_its_own_names_only(proxy: int) -> None:
    assert ask(proxy, "POST", "/graphql", IN | {"Origin": "https://evil.example"}, host="evil.example") == (
        0,
        False,
    )


def test_the_log_in_does_not_go_further_than_the_proxy(proxy: int) -> None:
    ask(proxy, "GET", "/", IN)
    assert Upstream.arrived[-1] == ("GET", "/", "")
