"""How clients that are not librdkafka log in, from the same settings: TLS, user and password."""

from __future__ import annotations

import ssl

import msgspec

from streams.log.kafka_settings import KafkaSettings, KafkaSettingsError

_KNOWN = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)


_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Login(msgspec.Struct, frozen=True):
    """User and password; ``mechanism`` in SASL's words."""

    username: str
    password: str
    mechanism: str


def login_of(kafka: KafkaSettings) -> Login | None:
    """Who logs in; null where nobody does. Raises KafkaSettingsError for a mechanism that workers cannot do."""
    if not kafka.get("security.protocol").startswith("sasl"):
        return None
    mechanism = kafka.get("sasl.mechanism") or kafka.get("sasl.mechanisms") or "PLAIN"
    if mechanism not in _MECHANISMS:
        raise KafkaSettingsError(f"sasl.mechanism {mechanism!r}: workers log in with PLAIN or SCRAM")
    return Login(kafka.get("sasl.username"), kafka.get("sasl.password"), mechanism)


def tls_of(kafka: KafkaSettings) -> ssl.SSLContext | None:
    """Whom to trust and who we are; null where TLS is not spoken.

    Raises KafkaSettingsError for what cannot be used, settings not known here too.
    """
    if not kafka.get("security.protocol").endswith("ssl"):
        return None
    unknown = sorted(name for name in kafka.properties if name.startswith("ssl.") and name not in _KNOWN)
    if unknown:
        raise KafkaSettingsError(f"{unknown[0]}: workers know of TLS only {', '.join(_KNOWN)}")
    try:
        context = ssl.create_default_context(cafile=kafka.get("ssl.ca.location") or None)
        if certificate := kafka.get("ssl.certificate.location"):
            context.load_cert_chain(
                certificate, kafka.get("ssl.key.location") or None, kafka.get("ssl.key.password") or None
            )
    except (OSError, ssl.SSLError) as error:
        raise KafkaSettingsError(f"TLS settings for Kafka: {error}") from None
    if kafka.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if kafka.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
