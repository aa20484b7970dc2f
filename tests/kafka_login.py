"""Settings with which the tests' broker lets clients in over TLS."""

from __future__ import annotations

from pathlib import Path

from kafka_support import PASSWORD, USER, Broker


def properties(broker: Broker, password: str = PASSWORD) -> dict[str, str]:
    """As Java's tools take them."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "bootstrap.servers": broker.secure,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(broker.authority),
    }


def written(file: Path, settings: dict[str, str]) -> Path:
    file.write_text("# for tests\n" + "".join(f"{name}={value}\n" for name, value in settings.items()))
    return file
