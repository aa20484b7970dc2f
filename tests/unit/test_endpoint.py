"""/metrics and /healthz over HTTP, and addresses that cannot be listened at."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable
from http.client import HTTPConnection

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rankwatch.endpoint import parse_address, serving
from rankwatch.errors import UsageError


class One(Collector):
    """A metric that counts how often it was asked for."""

    def __init__(self, name: str = "rankwatch_asked") -> None:
        self.name = name
        self.asked = 0

    def collect(self) -> Iterable[Metric]:
        self.asked += 1
        yield GaugeMetricFamily(self.name, "How often", value=self.asked)


def get(address: str, path: str) -> tuple[int, str, str]:
    """Status, content type and body."""
    connection = HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:9100", ("127.0.0.1", 9100)),
        (":9100", ("", 9100)),
        ("[::1]:0", ("::1", 0)),
        ("host.example:65535", ("host.example", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, place: tuple[str, int]) -> None:
    assert parse_address(text) == place


@pytest.mark.parametrize("text", ["", "9100", "host", "host:", "host:x", "host:-1", "host:65536", "host:9100/metrics"])
def test_what_is_no_address_is_said_to_be_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--listen .* is no address; give HOST:PORT, or :PORT for all$"):
        parse_address(text)


def test_without_an_address_nothing_listens_and_nothing_is_asked() -> None:
    one = One()
    with serving(None, [one], lambda: "") as address:
        assert address == ""
    assert one.asked == 0


def test_metrics_are_those_of_all_collectors_at_the_time_of_asking() -> None:
    one, other = One(), One("rankwatch_other")
    with serving("127.0.0.1:0", [one, other], lambda: "") as address:
        for count in (1, 2, 3):
            status, kind, body = get(address, "/metrics" if count < 3 else "/metrics?x=1")
            assert (status, kind.split(";")[0]) == (200, "text/plain")
            assert f"rankwatch_asked {count}.0\n" in body and f"rankwatch_other {count}.0\n" in body


class Closed(Collector):
    """What is measured was closed meanwhile."""

    closed = False

    def collect(self) -> Iterable[Metric]:
        if self.closed:
            raise ValueError("the client is closed")
        return ()


def test_metrics_of_what_is_just_being_closed_are_503_without_a_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    one = Closed()
    with serving("127.0.0.1:0", [one], lambda: "") as address:
        one.closed = True
        assert get(address, "/metrics") == (503, "text/plain; charset=utf-8", "no metrics now: the client is closed\n")
        one.closed = False
        assert get(address, "/metrics")[0] == 200
    assert capfd.readouterr().err == ""


def test_one_who_goes_away_before_the_answer_is_no_news(capfd: pytest.CaptureFixture[str]) -> None:
    with serving("127.0.0.1:0", [One()], lambda: "") as address:
        host, _, port = address.partition(":")
        for _ in range(3):
            with socket.create_connection((host, int(port))) as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                gone.sendall(b"GET /metrics HTTP/1.1\r\n\r\nGET")
        assert get(address, "/metrics")[0] == 200
    assert capfd.readouterr().err == ""


def test_health_is_200_while_all_is_well_and_503_with_the_reason_otherwise() -> None:
    trouble = ""
    with serving("127.0.0.1:0", [], lambda: trouble) as address:
        assert get(address, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
        trouble = "ClickHouse is away — waiting"
        assert get(address, "/healthz") == (503, "text/plain; charset=utf-8", f"{trouble}\n")
        assert get(address, "/healthz?verbose")[0] == 503
        trouble = ""
        assert get(address, "/healthz")[0] == 200


@pytest.mark.parametrize("path", ["/", "/metrics/", "/healthz/live", "/%2e%2e/etc/passwd"])
def test_nothing_else_is_there(path: str) -> None:
    with serving("127.0.0.1:0", [], lambda: "") as address:
        assert get(address, path) == (404, "text/plain; charset=utf-8", "/metrics or /healthz\n")


def test_one_who_asks_and_never_reads_keeps_nobody_waiting() -> None:
    with serving("127.0.0.1:0", [One()], lambda: "") as address:
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port))), socket.create_connection((host, int(port))) as half:
            half.sendall(b"GET /metr")
            assert get(address, "/metrics")[0] == 200
    assert not [thread for thread in threading.enumerate() if thread.name == "endpoint" and thread.is_alive()]


def test_a_port_in_use_is_one_clear_line_and_free_again_afterwards() -> None:
    with serving("127.0.0.1:0", [], lambda: "") as address:
        with pytest.raises(UsageError, match=rf"^cannot listen at {address}: address already in use$"):
            serving(address, [], lambda: "").__enter__()
        assert get(address, "/healthz")[0] == 200
    with serving(address, [], lambda: "") as again:
        assert again == address


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "a..b", "x" * 80])
def test_a_host_that_is_not_here_is_one_clear_line(host: str) -> None:
    with pytest.raises(UsageError, match=rf"^cannot listen at {host}:0: \w[^\n]+$"):
        serving(f"{host}:0", [], lambda: "").__enter__()


def test_it_listens_at_an_address_of_version_6_too() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving("[::1]:0", [], lambda: "") as address:
        assert address.startswith("[::1]:")
        assert get(address, "/healthz")[0] == 200
