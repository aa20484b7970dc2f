"""TLS for clients that are not librdkafka, from the same settings."""

from __future__ import annotations

import ssl

from streams.log.kafka_settings import KafkaSettings, KafkaSettingsError


def tls_context(kafka: KafkaSettings) -> ssl.SSLContext:
    """Whom to trust and who we are. Raises KafkaSettingsError for files that cannot be used."""
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
