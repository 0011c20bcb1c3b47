"""What a failure's chain tells of the machine: one sentence that names what to mend, for whatever client raised it."""

import errno
import http.server
import os
import sqlite3
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from graphs.process import provider_models
from graphs.process.data_folder import unfit
from graphs.process.failures import cause_of
from palimpsest import Settings, load_chat_model
from tests.stub_model import StubModel, always


def why(fails: Callable[[], object]) -> str:
    try:
        fails()
    except Exception as error:
        try:
            raise RuntimeError("a package's own word") from error
        except RuntimeError as outer:
            return cause_of(outer)
    raise AssertionError("it did not fail")


@pytest.fixture
def port() -> Iterator[int]:
    """A server that answers nothing but its own 500."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def tls_port(tmp_path: Path) -> Iterator[int]:
    """A server whose certificate nobody knows."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    made, now = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number()), datetime.now(UTC)
    signed = made.not_valid_before(now).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (tmp_path / "pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + signed.public_bytes(pem)
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_certificate_that_is_not_trusted_names_what_to_set(tls_port: int) -> None:
    assert "SSL_CERT_FILE" in why(lambda: httpx.get(f"https://127.0.0.1:{tls_port}"))


def test_https_to_a_server_without_it_and_a_url_without_a_scheme_name_the_scheme(port: int) -> None:
    assert why(lambda: httpx.get(f"https://127.0.0.1:{port}")).endswith("its URL must begin with http://")
    assert why(lambda: httpx.get(f"127.0.0.1:{port}")).endswith("must begin with http:// or https://")


@pytest.mark.parametrize("key", ["sk-a\nbc", "sk-abc ", "“sk-abc”", "né"])
def test_a_key_that_no_header_can_hold_is_named_by_its_variable(
    key: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", key)
    monkeypatch.setenv("SOME_OTHER_NAME", key)
    said = why(lambda: httpx.get(f"http://127.0.0.1:{port}", headers={"X-Key": key}))
    assert said.startswith("ACME_API_KEY must be one word")
    assert key not in said


def test_the_proxy_through_which_nobody_answered_is_named_without_its_password(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:hidden@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "localhost")
    said = why(lambda: httpx.get("http://192.0.2.1"))
    assert "HTTP_PROXY=http://127.0.0.1:9" in said
    assert "NO_PROXY" in said
    assert "hidden" not in said
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert why(lambda: httpx.get("http://127.0.0.1:9")) == ""


@pytest.mark.parametrize("scheme", ["ftp", "foo"])
def test_a_proxy_of_an_unknown_scheme_names_the_variables(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://127.0.0.1:9")
    assert "ALL_PROXY" in why(lambda: httpx.get("http://192.0.2.1"))


def test_certificates_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    assert "SSL_CERT_FILE" in why(lambda: httpx.get("https://127.0.0.1:9"))


def test_a_full_disk_and_a_file_that_another_program_holds_say_so(tmp_path: Path) -> None:
    def write_to_a_full_disk() -> None:
        with Path("/dev/full").open("w") as full:
            full.write("x")

    def write_beside_another() -> None:
        first, second = (closing(sqlite3.connect(tmp_path / "some.sqlite", timeout=0)) for _ in range(2))
        with first as one, second as other:
            one.execute("BEGIN EXCLUSIVE")
            other.execute("CREATE TABLE t (x)")

    def fill_a_file() -> None:
        with closing(sqlite3.connect(":memory:")) as one:
            one.executescript("CREATE TABLE t (x); PRAGMA max_page_count = 1; INSERT INTO t VALUES (zeroblob(100000));")

    assert "the disk is full" in why(write_to_a_full_disk)
    assert "the disk is full" in why(fill_a_file)
    assert "locked" in why(write_beside_another)
    assert why(lambda: Path(tmp_path / "none").read_text()) == ""
    assert cause_of(OSError(errno.ENOSPC, "No space left", "/data")).startswith("/data: the disk is full")


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9"])
def test_a_model_on_this_machine_is_asked_through_no_proxy(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with StubModel(always("hello")) as stub:
        settings = Settings(model="openai:any", openai_base_url=stub.url)
        assert load_chat_model("", settings, purpose="chat").invoke("hi").text == "hello"
    # A process keeps them for good.
    provider_models._direct_clients()["http_client"].close()
    provider_models._direct_clients.cache_clear()


def test_files_in_which_memory_cannot_be_kept_are_named_with_the_reason(tmp_path: Path) -> None:
    assert unfit(tmp_path) == unfit(tmp_path / "not" / "yet" / "there") == ""
    file = tmp_path / "store.sqlite"

    def names(what: str) -> bool:
        said = unfit(tmp_path)
        return str(file) in said and what in said

    file.mkdir()
    assert names("a folder or a link to nothing is in its place")
    file.rmdir()
    file.symlink_to("nowhere")
    assert names("a folder or a link to nothing is in its place")
    file.unlink()
    file.write_text("no database" * 1_000)
    assert names("this is no database")
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE bookmarks (x)")
    assert names("another program's")
    other.execute("ALTER TABLE bookmarks RENAME TO store")
    other.execute("BEGIN EXCLUSIVE")
    assert names("another program has locked the file")
    other.close()
    assert unfit(tmp_path) == ""
    assert "cannot be written" in unfit(file)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write what is read-only")
def test_files_and_folders_that_are_read_only_are_named(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").touch(0o400)
    assert "read-only" in unfit(tmp_path)
    tmp_path.chmod(0o500)
    assert "cannot be written" in unfit(tmp_path)
