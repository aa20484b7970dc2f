"""Where the Kafka cluster is and how to log in: one source for every client, a file or the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

DEFAULT_PREFIX = "rankwatch."
ENVIRONMENT = "KAFKA_"
_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,10})", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._-]{0,64}")
_JAAS = re.compile(r"""\b(username|password)\s*=\s*(["'])((?:(?!\2)[^\\]|\\.)*)\2""")
_JAVA_ONLY = re.compile(r".*\.(de)?serializer(\.class)?|key\.converter|value\.converter|interceptor\.classes")
_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.crl.location")
_SECRET = re.compile(r"password|secret|jaas|key\.pem|keystore\.key|oauthbearer\.config|user\.info", re.IGNORECASE)


class KafkaSettingsError(ValueError):
    """Settings that cannot be used; the message names the setting and holds no secret."""


class KafkaSettings(msgspec.Struct, frozen=True):
    """``properties`` under the names of librdkafka; ``prefix`` stands before the name of every topic and group."""

    properties: dict[str, str]
    prefix: str = DEFAULT_PREFIX

    def __post_init__(self) -> None:
        if not self.properties.get("bootstrap.servers"):
            raise KafkaSettingsError(
                "no Kafka address: give --kafka HOST:PORT, or bootstrap.servers in a file for --kafka-config, "
                "or KAFKA_BOOTSTRAP_SERVERS"
            )
        _check_addresses(self.bootstrap)
        if not _NAME.fullmatch(self.prefix):
            raise KafkaSettingsError(f"topic prefix {self.prefix[:80]!r}: only letters, digits, '.', '_' and '-'")

    @property
    def bootstrap(self) -> str:
        """The addresses to begin with, ``host:port,host:port``."""
        return self.properties["bootstrap.servers"]

    def full(self, topic: str) -> str:
        """A topic's name in the cluster."""
        return self.prefix + topic

    def short(self, name: str) -> str:
        """The topic that is called so in the cluster."""
        return name.removeprefix(self.prefix)

    def command(self, words: str) -> str:
        """A command of ours as the user of this deployment has to give it."""
        prefix = "" if self.prefix == DEFAULT_PREFIX else f" --topic-prefix {self.prefix}"
        return f"`rankwatch {words}{prefix}`"

    def get(self, name: str, default: str = "") -> str:
        """One setting."""
        return self.properties.get(name, default)

    def check_files(self) -> None:
        """Raise KafkaSettingsError for a file that is not there: clients say neither which nor why."""
        for name in _FILES:
            place = self.properties.get(name, "probe")
            if place != "probe" and not Path(place).exists():
                raise KafkaSettingsError(f"Kafka settings: {name}: there is no file {place}")

    @property
    def shown(self) -> dict[str, str]:
        """The settings as people may see them, secrets hidden."""
        return {name: "***" if _SECRET.search(name) else value for name, value in sorted(self.properties.items())}


def _check_addresses(text: str) -> None:
    """Raise KafkaSettingsError for what is not HOST:PORT[,HOST:PORT...]; whatever may be a password is not repeated."""
    _, login, place = text.rpartition("@")
    if login:
        raise KafkaSettingsError(
            f"Kafka address with a login at {place[:80]!r}: give HOST:PORT alone, the login in a --kafka-config"
        )
    for one in text.split(","):
        found = _ADDRESS.fullmatch(one.strip(" "))
        if found is None:
            raise KafkaSettingsError(f"{one.strip()[:80]!r} is no Kafka address; give HOST:PORT, several with commas")
        if not 0 < int(found[1]) < 65536:
            raise KafkaSettingsError(f"Kafka address {one.strip()[:80]}: {found[1]} is no port; give 1 to 65535")


def kafka_settings(
    bootstrap: str | None = None,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    prefix: str | None = None,
) -> KafkaSettings:
    """Settings of ``KAFKA_*`` variables, over which goes the file, over which go the arguments.

    The file is a Java or librdkafka ``client.properties``. Raises KafkaSettingsError.
    """
    environment = environment or {}
    # Each source in librdkafka's words before it goes over another: what the two call differently must not lie side
    # by side.
    found = _without_java(_of_environment(environment))
    if file is not None:
        found |= _without_java(_of_file(file))
    if bootstrap is not None:
        found["bootstrap.servers"] = bootstrap
    if prefix is None:
        prefix = environment.get("RANKWATCH_TOPIC_PREFIX", DEFAULT_PREFIX)
    return KafkaSettings(_with_protocol(found), prefix)


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """``KAFKA_SASL_USERNAME`` is ``sasl.username``."""
    return {
        name.removeprefix(ENVIRONMENT).lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith((f"{ENVIRONMENT}BOOTSTRAP_", f"{ENVIRONMENT}SECURITY_", f"{ENVIRONMENT}SASL_"))
        or name.startswith((f"{ENVIRONMENT}SSL_", f"{ENVIRONMENT}CLIENT_"))
    }


def _of_file(file: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    pending = ""
    try:
        lines = file.read_text("utf-8-sig", errors="replace").split("\n")
    except OSError as error:
        raise KafkaSettingsError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from None
    for number, raw in enumerate(lines, 1):
        line = pending + raw.strip()
        if not pending and (not line or line[0] in "#!"):
            continue
        pending = ""
        if (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1]
            if number < len(lines):
                pending = line
                continue
        name, mark, value = line.partition("=")
        if not mark or not name.strip():
            raise KafkaSettingsError(f"{file}, line {number}: no NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def _without_java(found: dict[str, str]) -> dict[str, str]:
    """Java's names in librdkafka's words; what only Java knows and changes nothing is left out."""
    settings = {name: value for name, value in found.items() if not _JAVA_ONLY.fullmatch(name)}
    jaas = settings.pop("sasl.jaas.config", None)
    if jaas is not None:
        said = {name: re.sub(r"\\(.)", r"\1", value) for name, _, value in _JAAS.findall(jaas)}
        if set(said) != {"username", "password"}:
            raise KafkaSettingsError("sasl.jaas.config: only logins with username and password are understood")
        settings = {f"sasl.{name}": value for name, value in said.items()} | settings
    for alias, name in (("metadata.broker.list", "bootstrap.servers"), ("sasl.mechanisms", "sasl.mechanism")):
        if alias in settings:
            settings.setdefault(name, settings.pop(alias))
    for store, plain in (("ssl.truststore", "ssl.ca.location"), ("ssl.keystore", "ssl.certificate.location")):
        location, kind = settings.pop(f"{store}.location", None), settings.pop(f"{store}.type", "JKS")
        if location is not None:
            if kind.upper() != "PEM":
                raise KafkaSettingsError(f"{store}.type {kind}: only PEM is understood; or give {plain}")
            settings.setdefault(plain, location)
            if store == "ssl.keystore":
                settings.setdefault("ssl.key.location", location)
    # To Java an empty algorithm means that host names are not compared.
    if settings.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl.endpoint.identification.algorithm"] = "none"
    return settings


def _with_protocol(settings: dict[str, str]) -> dict[str, str]:
    """The settings with a protocol that is known, in small letters as librdkafka wants it."""
    protocol = settings.get("security.protocol", "plaintext").lower()
    if protocol not in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"):
        raise KafkaSettingsError(f"security.protocol {protocol!r}: plaintext, ssl, sasl_plaintext or sasl_ssl")
    if "security.protocol" in settings:
        settings["security.protocol"] = protocol
    return settings
