"""A real Apache Kafka for the tests: one broker in KRaft mode on loopback, started and stopped here.

Its jars come from Maven Central by ``deploy/kafka/pom.xml``; ``RANKWATCH_KAFKA=host:port`` uses a cluster that runs.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[1] / "deploy" / "kafka"
JARS = ROOT / "target" / "jars"
START_S = 60.0
USER, PASSWORD = "rank", "watch-secret"


class NoKafkaError(Exception):
    """Why there is no Kafka here."""


def jars() -> str:
    """The class path of Kafka; fetched once, whoever comes first. Raises NoKafkaError."""
    JARS.parent.mkdir(exist_ok=True)
    with (JARS.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not any(JARS.glob("kafka_*.jar")):
            _fetch()
    return f"{JARS}/*"


def _fetch() -> None:
    if not shutil.which("mvn") or not shutil.which("java"):
        raise NoKafkaError("Kafka's jars cannot be had: there is no java or mvn")
    beside = JARS.with_name("jars.part")
    shutil.rmtree(beside, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", ROOT / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={beside}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoKafkaError(f"Kafka's jars cannot be had: {(done.stdout + done.stderr).strip()[-500:]}")
    shutil.rmtree(JARS, ignore_errors=True)
    beside.rename(JARS)


def _free_ports(count: int) -> list[int]:
    """Ports that are free and differ: all are held until the last is found."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


class Broker:
    """One broker under ``root``; it may be stopped, killed and started again on the same port with the same data.

    ``address`` speaks plaintext, ``secure`` SASL over TLS with ``USER`` and ``PASSWORD``; ``authority`` signs for it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._class_path = jars()
        self._process: subprocess.Popen[bytes] | None = None
        plain, secure, controller = _free_ports(3)
        self.address, self.secure = f"127.0.0.1:{plain}", f"127.0.0.1:{secure}"
        self.authority = root / "authority.pem"
        root.mkdir(parents=True, exist_ok=True)
        _make_certificate(root)
        self._settings = root / "server.properties"
        self._settings.write_text(_SETTINGS.format(plain=plain, secure=secure, controller=controller, root=root))
        self._java("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(self._settings))

    def _command(self, *arguments: str) -> list[str]:
        # It lives for minutes: compiling its code to the utmost takes more of two cores than that ever gives back.
        java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [*java, "-cp", self._class_path, *arguments]

    def _java(self, *arguments: str) -> None:
        done = subprocess.run(self._command(*arguments), capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoKafkaError(f"Kafka cannot be formatted: {(done.stdout + done.stderr)[-500:]}")

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self._root / "out.log").open("ab") as out:
            command = self._command("kafka.Kafka", str(self._settings))
            self._process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        host, _, port = self.address.partition(":")
        until = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    said = (self._root / "out.log").read_text(errors="replace")[-500:]
                    raise NoKafkaError(f"Kafka does not start: {said}") from None
                time.sleep(0.05)

    def stop(self, *, kill: bool = False) -> None:
        """End it, by request or at once; its data stay."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            self._process.wait(60)
            self._process = None


def _make_certificate(root: Path) -> None:
    """A certificate for the loopback address that is its own authority, and a key store of both in PEM."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    key, authority = root / "key.pem", root / "authority.pem"
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    done = subprocess.run([*command, *names, "-keyout", key, "-out", authority], capture_output=True, check=False)
    if done.returncode:
        raise NoKafkaError(f"no certificate for Kafka: {done.stderr.decode(errors='replace')[-300:]}")
    (root / "store.pem").write_text(key.read_text() + authority.read_text())


_SETTINGS = f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{{controller}}
listeners=PLAINTEXT://127.0.0.1:{{plain}},SASL_SSL://127.0.0.1:{{secure}},CONTROLLER://127.0.0.1:{{controller}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{plain}},SASL_SSL://127.0.0.1:{{secure}}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{USER}="{PASSWORD}";
ssl.keystore.type=PEM
ssl.keystore.location={{root}}/store.pem
log.dirs={{root}}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=100
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
"""


def required() -> bool:
    """Whether tests that need Kafka must run here."""
    return os.environ.get("RANKWATCH_REQUIRE_KAFKA") == "1"
