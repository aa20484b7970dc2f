"""TLS for clients that are not librdkafka, from the same settings."""

from __future__ import annotations

import ssl

from streams.log.kafka_settings import KafkaSettings, KafkaSettingsError

_KNOWN = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)


def tls_context(kafka: KafkaSettings) -> ssl.SSLContext:
    """Whom to trust and who we are. Raises KafkaSettingsError for what cannot be used, settings not known here too."""
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
