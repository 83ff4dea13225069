"""Connections to a cluster: a message names each fault in a sentence, and no process listens elsewhere."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from rig import wait_until
from typer.testing import CliRunner

import longwall
from longwall.pipeline import run as running
from longwall.pipeline.cli import app
from longwall.pipeline.cluster import address_check as address_module
from longwall.pipeline.cluster import connect, handshake, worker_process
from longwall.pipeline.cluster.address_check import check_scheduler, security_of
from longwall.pipeline.cluster.handshake import WorkerDescription
from longwall.pipeline.config import SchedulerSection, load_config
from longwall.storage.errors import InputError, RunError
from longwall.storage.observer import NullObserver

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("default")]
SHARED: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": None}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_CONNECT_SECONDS", 2)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with certificates: `me` is of the authority `ca`, `stranger` of another one."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl command to make certificates with")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(words: str) -> None:
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True, timeout=60)

    for authority, who in (("ca", "me"), ("other", "stranger")):
        openssl(f"req -x509 -newkey rsa:2048 -nodes -days 2 -keyout {authority}.key -out {authority}.pem -subj /CN=ca")
        openssl(f"req -newkey rsa:2048 -nodes -keyout {who}.key -out {who}.csr -subj /CN={who}")
        files = f"-CA {authority}.pem -CAkey {authority}.key -CAcreateserial -out {who}.pem"
        openssl(f"x509 -req -in {who}.csr -days 2 {files}")
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **SHARED) as made:
        yield made


@pytest.fixture(scope="module")
def secure_cluster(certificates: Path) -> Iterator[Any]:
    files = {
        f"tls_{role}_{kind}": str(certificates / f"me.{ending}")
        for role in ("scheduler", "worker", "client")
        for kind, ending in (("cert", "pem"), ("key", "key"))
    }
    security = distributed.Security(tls_ca_file=str(certificates / "ca.pem"), require_encryption=True, **files)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, security=security, protocol="tls://", **SHARED
    ) as made:
        yield made


def section(address: str, folder: Path | None = None, who: str = "me", authority: str = "ca") -> SchedulerSection:
    security = None
    if folder is not None:
        security = {"ca": folder / f"{authority}.pem", "cert": folder / f"{who}.pem", "key": folder / f"{who}.key"}
    return SchedulerSection.model_validate({"kind": "dask", "address": address, "security": security})


def refused(wanted: SchedulerSection) -> str:
    """What is said of an address that cannot be."""
    with pytest.raises(InputError) as caught, connect.connected(wanted, 1, ""):
        pass
    (line,) = str(caught.value).splitlines()
    return line


def write_config(folder: Path, scheduler: str) -> Path:
    (folder / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    sections = ['[graph]\npath = "graph.txt"', '[workload]\nkind = "triangles"']
    sections += [f'[memory]\nspill = "{folder}/spill"', f'[run]\ndirectory = "{folder}/runs"']
    path = folder / "mine.toml"
    path.write_text("\n".join([*sections, f'[scheduler]\nkind = "dask"\n{scheduler}\n']))
    return path


def test_a_run_goes_over_a_cluster_with_certificates(
    secure_cluster: Any, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ca.pem", "me.pem", "me.key"):
        shutil.copy(certificates / name, tmp_path)
    files = 'security = { ca = "ca.pem", cert = "me.pem", key = "me.key" }'
    config = write_config(tmp_path, f'address = "{secure_cluster.scheduler_address}"\n{files}')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # the files of a config are beside it
    result = longwall.run(config)
    assert result.count == 1
    kept = load_config(result.path / "config.toml").scheduler.security
    assert kept is not None
    assert kept.key == tmp_path / "me.key"


def test_strangers_are_refused(secure_cluster: Any, certificates: Path) -> None:
    address = secure_cluster.scheduler_address
    assert "do not trust each other" in refused(section(address, certificates, "stranger", "other"))
    # Who is refused by the other side may hear why, or only that the connection is closed.
    assert re.search(
        "do not trust each other|wants other certificates", refused(section(address, certificates, "stranger"))
    )
    assert "certificates are needed" in refused(section(address))
    assert "tls:// is with certificates" in refused(section(address.replace("tls://", "tcp://")))


def test_certificates_are_of_no_use_without_tls(cluster: Any, certificates: Path) -> None:
    address = cluster.scheduler_address.replace("tcp://", "tls://")
    assert "tls:// is with certificates" in refused(section(address, certificates))


def test_certificates_that_are_none_are_named(certificates: Path) -> None:
    address = "tls://127.0.0.1:1"
    assert "scheduler.security.cert" in refused(section(address, certificates, "nobody"))
    os.mkfifo(certificates / "pipe.pem")  # to open one would be to wait for its writer
    shutil.copy(certificates / "me.key", certificates / "pipe.key")
    assert "scheduler.security.cert" in refused(section(address, certificates, "pipe"))
    (certificates / "empty.pem").touch()
    (certificates / "empty.key").touch()
    assert "must be PEM files" in refused(section(address, certificates, "empty"))
    wrong = section(address, certificates).security
    assert wrong is not None
    mixed = wrong.model_copy(update={"key": certificates / "stranger.key"})
    with pytest.raises(InputError, match="key the one of cert"):
        security_of(section(address, certificates).model_copy(update={"security": mixed}))


def test_an_address_without_a_scheduler_is_refused(tmp_path: Path) -> None:
    for port in (1, 9):
        said = refused(section(f"tcp://127.0.0.1:{port}"))
        assert "nothing answers" in said
        assert "Error" not in said, "names of classes are not for users"
    assert "nothing answers" in refused(section("tcp://no-such-host.invalid:8786"))
    config = write_config(tmp_path, 'address = "tcp://127.0.0.1:1"')
    done = CliRunner().invoke(app, ["run", str(config), "--quiet"])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith('error: scheduler.address = "tcp://127.0.0.1:1": nothing answers')
    assert not (tmp_path / "runs" / "mine").exists()


class _Silent(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(1 << 16)
        self.server.over.wait(60)  # type: ignore[attr-defined]


class _Web(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n" + b"x" * 4096)


class _Deaf(socketserver.BaseRequestHandler):
    pass


@pytest.mark.parametrize("handler", [_Silent, _Web, _Deaf])
def test_an_answer_of_another_program_is_refused(handler: type[socketserver.BaseRequestHandler]) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.over = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert "no Dask scheduler" in refused(section(f"tcp://127.0.0.1:{server.server_address[1]}"))
        finally:
            server.over.set()  # type: ignore[attr-defined]
            server.shutdown()
            thread.join()


def test_a_worker_is_no_scheduler(cluster: Any) -> None:
    address = next(iter(cluster.scheduler_info["workers"]))
    assert "this is a worker" in refused(section(address))


def test_another_version_of_dask_is_named(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def old(comm: Any) -> str:
        return "2020.1.0"

    monkeypatch.setattr(address_module, "_version", old)
    assert "the scheduler has distributed 2020.1.0" in refused(section(cluster.scheduler_address))


def test_a_scheduler_is_found_from_within_an_event_loop(cluster: Any) -> None:
    async def inside() -> None:
        check_scheduler(cluster.scheduler_address, distributed.Security(), 10)

    asyncio.run(inside())


def test_a_cluster_without_workers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_WORKER_SECONDS", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, **SHARED) as made,
        pytest.raises(RunError, match="no worker has come"),
        connect.connected(section(made.scheduler_address), 1, ""),
    ):
        pass


@pytest.mark.parametrize("who", ["scheduler", "worker"])
@pytest.mark.parametrize(
    "answer", [WorkerDescription(version="0.0.1", device=None), ModuleNotFoundError("No longwall")]
)
def test_another_version_of_longwall_is_named(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, who: str, answer: Any
) -> None:
    own = WorkerDescription(version=longwall.__version__, device=None)

    async def of_workers(*arguments: Any) -> dict[str, Any]:
        return {"tcp://a:1": own, "tcp://b:2": answer if who == "worker" else own}

    monkeypatch.setattr(handshake, "_of_scheduler", lambda client: answer if who == "scheduler" else own)
    monkeypatch.setattr(handshake, "_of_workers", of_workers)
    with (
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(InputError) as caught,
    ):
        handshake.describe_workers(client, "auto")
    assert ("tcp://b:2" in str(caught.value)) == (who == "worker")
    assert ("0.0.1" in str(caught.value)) == (not isinstance(answer, Exception))


def test_a_worker_that_comes_late_is_compared_too() -> None:
    worker_process._compare_versions(longwall.__version__)
    with pytest.raises(RunError, match=r"the coordinator has 9\.9"):
        worker_process._compare_versions("9.9")


class _Notes(NullObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.phases: list[str] = []

    def phase(self, name: str, total: int | None, unit: str) -> None:
        self.phases.append(name)

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_the_user_is_told_where_the_work_is(cluster: Any, tmp_path: Path) -> None:
    observer = _Notes()
    longwall.run(write_config(tmp_path, f'address = "{cluster.scheduler_address}"'), observer=observer)
    assert "connecting to the cluster" in observer.phases
    assert re.search(r"dashboard: http://127\.0\.0\.1:\d+/status", observer.notes[0])
    assert re.fullmatch(r"\d+ ranges done by 1 worker, busy for [\d.]+ s", observer.notes[-1])


WEB_PAGES = ("", "status", "health", "metrics", "json/identity.json", "info/main/workers.html", "api/v1/retire_workers")


class _Embedded:
    """A cluster that is made for a run: its client, and the addresses where its processes listen."""

    def __init__(self, client: Any, listening: set[tuple[str, int]]):
        self.client, self.listening = client, listening


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Embedded]:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    own = _listening(psutil.Process())
    wanted = SchedulerSection(kind="dask", workers=2, threads_per_worker=1)
    with connect.connected(wanted, 2, str(tmp_path_factory.mktemp("embedded"))) as client:
        client.wait_for_workers(2, timeout=60)
        started = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
        yield _Embedded(client, set().union(*map(_listening, [psutil.Process(), *started])) - own)


def _listening(process: psutil.Process) -> set[tuple[str, int]]:
    return {(c.laddr.ip, c.laddr.port) for c in process.net_connections("inet") if c.status == "LISTEN"}


def test_nothing_listens_beyond_this_machine(embedded: _Embedded) -> None:
    assert len(embedded.listening) >= 3  # the scheduler and two workers
    assert {ip for ip, _ in embedded.listening} == {"127.0.0.1"}


def test_other_users_of_this_machine_can_run_and_read_nothing(embedded: _Embedded) -> None:
    """What listens refuses other certificates than that of the run; web browsers find nothing."""
    strangers = {"tcp": distributed.Security(), "tls": distributed.Security.temporary()}
    secured = 0
    for ip, port in embedded.listening:
        statuses = {_status(ip, port, path) for path in WEB_PAGES}
        if statuses == {404}:
            continue
        assert statuses == {None}, port
        assert asyncio.run(_answers(f"tls://{ip}:{port}", embedded.client.security)), port
        for protocol, security in strangers.items():
            assert not asyncio.run(_answers(f"{protocol}://{ip}:{port}", security)), port
        secured += 1
    assert secured == 3


def _status(ip: str, port: int, path: str) -> int | None:
    """How a web server answers; None where there is none."""
    connection = http.client.HTTPConnection(ip, port, timeout=10)
    try:
        connection.request("GET", f"/{path}")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


async def _answers(address: str, security: Any) -> bool:
    """Whether the server at an address says who it is."""
    arguments = security.get_connection_args("client")
    if address.startswith("tls") and arguments["ssl_context"] is None:
        return False
    try:
        comm = await distributed.comm.connect(address, timeout=3, **arguments)
        await comm.write({"op": "identity", "reply": True})
        return bool(await asyncio.wait_for(comm.read(), 10))
    except OSError:
        return False


@pytest.mark.parametrize(
    ("workers", "key"),
    [
        ("workers = 100000", "scheduler.workers: 100000 processes are too many"),
        ("workers = 2\nthreads_per_worker = 100000", "scheduler.threads_per_worker: 100000 threads"),
        ("threads_per_worker = 100000", "scheduler.threads_per_worker: 100000 threads"),
    ],
)
def test_more_workers_than_make_sense_are_refused(tmp_path: Path, workers: str, key: str) -> None:
    with pytest.raises(InputError, match=key):
        longwall.run(write_config(tmp_path, workers))
    assert not (tmp_path / "runs").exists()


def test_a_cluster_of_this_machine_needs_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=r"cryptography is missing: pip install 'longwall\[cluster\]'"):
        longwall.run(write_config(tmp_path, "workers = 1"))


@pytest.mark.parametrize("package", ["distributed", "cryptography"])
def test_a_missing_package_is_named_before_the_graph_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    config = write_config(tmp_path, "workers = 1")
    (tmp_path / "graph.txt").write_text("no graph\n")
    with pytest.raises(InputError, match=r"pip install 'longwall\[cluster\]'"):
        longwall.run(config)
    assert not (tmp_path / "runs").exists()


def test_a_missing_package_for_urls_is_named_before_the_graph_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    (tmp_path / "graph.txt").write_text("no graph\n")
    graph = {"path": str(tmp_path / "graph.txt"), "labels": "s3://bucket/labels.txt"}
    run = {"directory": str(tmp_path / "runs")}
    with pytest.raises(InputError, match=r"labels\.txt: URLs are read and written with fsspec: pip install fsspec"):
        longwall.run({"graph": graph, "workload": {"kind": "triangles"}, "run": run})
    assert not (tmp_path / "runs").exists()


def test_a_script_that_its_workers_cannot_import_is_told_why(tmp_path: Path) -> None:
    config = write_config(tmp_path, "workers = 1")
    (tmp_path / "script.py").write_text(f"import longwall\nprint(longwall.run({str(config)!r}).count)\n")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 1
    assert 'below `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "setting",
    [
        "run.name=../x",
        "run.name=..",
        "run.name=a/../../x",
        'export.columns=["../x"]',
        "workload.pattern=../x",
        "scheduler.address=tcp://../x:1",
        "scheduler.address=../x",
        'graph.generator={kind="../x"}',
    ],
)
def test_names_in_a_config_lead_nowhere(tmp_path: Path, setting: str) -> None:
    (tmp_path / "here").mkdir()
    config = write_config(tmp_path / "here", "workers = 1")
    before = sorted(tmp_path.rglob("*"))
    overrides = ["workload.kind=match", "workload.pattern=wedge", "workload.output=embeddings", setting]
    with pytest.raises(InputError):
        longwall.run(config, overrides=overrides)
    left = {path for path in tmp_path.rglob("*") if path.name not in ("runs", "spill")}
    assert sorted(left) == before


def test_no_pickle_is_read_from_disk() -> None:
    packages = Path(longwall.__file__).parents[2]
    for folder in ("pipeline", "stages", "storage", "kernels"):
        for path in (packages / folder).rglob("*.py"):
            text = path.read_text()
            if path.name == "shared_graph.py":  # memory that processes of one user and machine share, no file
                continue
            assert not re.search(r"^\s*(import|from) (pickle|cloudpickle|shelve|marshal|joblib)\b", text, re.M), path
            assert not re.search(r"allow_pickle=(?!False)|read_pickle|torch\.load", text), path


def test_workers_start_while_the_coordinator_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[Any] = []
    connected, read = connect.connected, running.read_graph
    is_open = "__import__('longwall.pipeline.cluster.worker_process', fromlist=['_current'])._current is not None"

    @contextmanager
    def noting(*arguments: Any) -> Iterator[Any]:
        with connected(*arguments) as client:
            clients.append(client)
            yield client

    def reading(*arguments: Any) -> Any:
        wait_until(lambda: bool(clients) and all(clients[0].run(eval, is_open).values()))
        return read(*arguments)

    monkeypatch.setattr(connect, "connected", noting)
    monkeypatch.setattr(running, "read_graph", reading)
    path = tmp_path / "graph.txt"
    path.write_text("0 1\n1 2\n0 2\n2 3\n")
    result = longwall.run(
        {
            "graph": {"path": str(path)},
            "workload": {"kind": "triangles"},
            "engine": {"kind": "cpu"},
            "scheduler": {"kind": "dask", "workers": 2, "threads_per_worker": 1},
            "run": {"directory": str(tmp_path / "runs")},
        }
    )
    assert result.count == 1
