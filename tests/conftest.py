"""Settings of all tests: no deadlines, since machines are shared, and the same examples each time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import kafka_support
import pytest
from hypothesis import HealthCheck, settings

from schemas.results import Anomaly
from streams.detectors.registry import JobDetector

settings.register_profile(
    "rankwatch", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rankwatch")


@pytest.fixture(scope="session", autouse=True)
def declared_grounds() -> Iterator[None]:
    """Whatever any test makes a detector find: it gives no grounds but those that it says it gives."""
    made = JobDetector.anomaly

    def checked(self: JobDetector[Any, Any], window: Any, subject: str, **fields: Any) -> Anomaly:
        told = self.supporting or fields["grounds"] in self.grounds
        assert told, f"{self.name} gives {fields['grounds']}, of which its grounds say nothing"
        return made(self, window, subject, **fields)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JobDetector, "anomaly", checked)
        yield


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_support.Broker]:
    """A broker that a test may stop and start again."""
    try:
        broker = kafka_support.Broker(tmp_path_factory.mktemp("kafka"))
        broker.start()
    except kafka_support.NoKafkaError as error:
        if kafka_support.required():
            raise
        pytest.skip(str(error))
    yield broker
    broker.stop(kill=True)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> str:
    """The address of a Kafka cluster: the one that the environment names, or one of our own."""
    address = os.environ.get("RANKWATCH_KAFKA")
    if address:
        return address
    own: kafka_support.Broker = request.getfixturevalue("broker")
    return own.address
