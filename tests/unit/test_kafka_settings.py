"""Where the cluster is and how to log in: from arguments, a file and the environment, with secrets kept to itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from streams.log.kafka_client import Errors, made
from streams.log.kafka_settings import DEFAULT_PREFIX, KafkaSettings, KafkaSettingsError, kafka_settings

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECRET = "hunter2-of-the-cluster"


def of_file(tmp_path: Path, text: str | bytes, **environment: str) -> KafkaSettings:
    """The settings of a file that says this, at an address of the command line."""
    file = tmp_path / "client.properties"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return kafka_settings("b:1", file, environment)


def read(tmp_path: Path, text: str | bytes) -> dict[str, str]:
    """As ``of_file``, without the address."""
    return {name: value for name, value in of_file(tmp_path, text).properties.items() if name != "bootstrap.servers"}


def refused(tmp_path: Path, text: str | bytes) -> str:
    """What is said of a file that cannot be used; one line, and no secret in it."""
    with pytest.raises(KafkaSettingsError) as caught:
        of_file(tmp_path, text)
    said = str(caught.value)
    assert SECRET not in said and "\n" not in said and said.isprintable()
    return said.replace(str(tmp_path), "")


def test_the_environment_gives_addresses_and_logins_and_nothing_else() -> None:
    found = kafka_settings(
        environment={
            "KAFKA_BOOTSTRAP_SERVERS": "a:1,b:2",
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SASL_USERNAME": "rank",
            "KAFKA_SSL_CA_LOCATION": "/ca.pem",
            "KAFKA_CLIENT_ID": "me",
            "KAFKA_HEAP_OPTS": "-Xmx1g",
            "KAFKA_SERVICE_HOST": "10.0.0.1",
            "HOME": "/root",
        }
    )
    assert found.properties == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "sasl_ssl",
        "sasl.username": "rank",
        "ssl.ca.location": "/ca.pem",
        "client.id": "me",
    }
    assert (found.bootstrap, found.get("sasl.username"), found.get("acks", "all")) == ("a:1,b:2", "rank", "all")


def test_a_jaas_line_of_the_environment_is_a_login_too() -> None:
    found = kafka_settings("b:1", None, {"KAFKA_SASL_JAAS_CONFIG": f'{PLAIN} username="u" password="p";'})
    assert (found.get("sasl.username"), found.get("sasl.password")) == ("u", "p")


def test_a_file_may_have_comments_spaces_continuations_and_windows_line_ends(tmp_path: Path) -> None:
    text = (
        "# sasl.username=no\r\n"
        "! sasl.password=no\r\n"
        "\r\n"
        "   sasl.username =  rank  \r\n"
        "client.id=a\\\r\n"
        "   # b\\\r\n"
        "   =c\r\n"
        "ssl.ca.location=/has=sign.pem\r\n"
    )
    expected = {"sasl.username": "rank", "client.id": "a# b=c", "ssl.ca.location": "/has=sign.pem"}
    assert read(tmp_path, text) == expected
    assert read(tmp_path, b"\xef\xbb\xbf" + text.replace("\r", "").encode()) == expected, "as some editors write it"


@pytest.mark.parametrize(
    ("text", "value"),
    [("sasl.password=a\\", "a"), ("sasl.password=a\\\n", "a"), ("sasl.password=a\\\\\nclient.id=c\n", "a\\\\")],
    ids=["at the end of the file", "before an empty line", "a backslash that is escaped"],
)
def test_a_backslash_at_the_end_of_a_line_loses_no_setting(tmp_path: Path, text: str, value: str) -> None:
    assert read(tmp_path, text)["sasl.password"] == value


@pytest.mark.parametrize(
    ("said", "login"),
    [
        ('username="u" password="p";', ("u", "p")),
        ("username='u' password='p\"q';", ("u", 'p"q')),
        ('password = "a\\"b\\\\c" \\\n username = "it\'s" serviceName="x";', ("it's", 'a"b\\c')),
        ('username="u" password="username=\'v\'";', ("u", "username='v'")),
    ],
    ids=["plain", "single quotes", "escapes", "one inside the other"],
)
def test_a_jaas_line_becomes_user_and_password(tmp_path: Path, said: str, login: tuple[str, str]) -> None:
    found = of_file(tmp_path, f"sasl.jaas.config={PLAIN} {said}\n")
    assert (found.get("sasl.username"), found.get("sasl.password")) == login
    assert not found.get("sasl.jaas.config")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'sasl.jaas.config=Krb5LoginModule required keyTab="{SECRET}";', "only logins with username and password"),
        (f'sasl.jaas.config={PLAIN} password="{SECRET}";', "only logins with username and password"),
        ("ssl.truststore.location=/t.jks", "ssl.truststore.type JKS: only PEM is understood; or give ssl.ca.location"),
        ("ssl.keystore.location=/k\nssl.keystore.type=PKCS12", "or give ssl.certificate.location"),
        ("security.protocol=TLS", "security.protocol 'tls': plaintext, ssl, sasl_plaintext or sasl_ssl"),
        (f"client.id=c\nsasl.password {SECRET}", "/client.properties, line 2: no NAME=VALUE"),
        (f"={SECRET}", "/client.properties, line 1: no NAME=VALUE"),
        (bytes(range(1, 61)), "/client.properties, line 1: no NAME=VALUE"),
        (b"\x00\xff\xfe" * 100, "/client.properties, line 1: no NAME=VALUE"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line_without_secrets(
    tmp_path: Path, text: str | bytes, reason: str
) -> None:
    assert reason in refused(tmp_path, text)


def test_java_stores_in_pem_become_files_of_librdkafka(tmp_path: Path) -> None:
    text = (
        "ssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\n"
        "ssl.keystore.type=pem\nssl.keystore.location=/me.pem\nssl.key.password=k\n"
    )
    assert read(tmp_path, text) == {
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.key.password": "k",
    }


def test_what_only_java_knows_is_left_out_and_an_empty_algorithm_compares_no_names(tmp_path: Path) -> None:
    text = (
        "key.deserializer=org.apache.kafka.X\nvalue.serializer=Y\nkey.converter=Z\ninterceptor.classes=I\n"
        "ssl.endpoint.identification.algorithm=\nsecurity.protocol=SSL\n"
    )
    assert read(tmp_path, text) == {"ssl.endpoint.identification.algorithm": "none", "security.protocol": "ssl"}


def test_arguments_go_over_the_file_and_the_file_over_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nsasl.username=file\n")
    environment = {"KAFKA_BOOTSTRAP_SERVERS": "env:1", "KAFKA_SASL_USERNAME": "env", "KAFKA_SASL_PASSWORD": "env"}
    assert kafka_settings(None, None, environment).bootstrap == "env:1"
    assert kafka_settings(None, file, environment).bootstrap == "file:1"
    found = kafka_settings("given:1", file, environment)
    assert [found.get(name) for name in ("bootstrap.servers", "sasl.username", "sasl.password")] == [
        "given:1",
        "file",
        "env",
    ]


@pytest.mark.parametrize(
    ("text", "variable", "name", "value"),
    [
        (f'sasl.jaas.config={PLAIN} username="u" password="file";', "KAFKA_SASL_PASSWORD", "sasl.password", "file"),
        ("ssl.truststore.location=file\nssl.truststore.type=PEM", "KAFKA_SSL_CA_LOCATION", "ssl.ca.location", "file"),
        ("sasl.mechanisms=PLAIN", "KAFKA_SASL_MECHANISM", "sasl.mechanism", "PLAIN"),
        ("sasl.mechanism=PLAIN", "KAFKA_SASL_MECHANISMS", "sasl.mechanism", "PLAIN"),
        ("security.protocol=SSL", "KAFKA_SECURITY_PROTOCOL", "security.protocol", "ssl"),
    ],
)
def test_the_file_goes_over_the_environment_also_where_the_two_use_other_words(
    tmp_path: Path, text: str, variable: str, name: str, value: str
) -> None:
    found = of_file(tmp_path, text, **{variable: "env"})
    assert found.get(name) == value
    assert "env" not in found.properties.values()


def test_the_older_name_of_the_address_is_one_too(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("metadata.broker.list=old:1\n")
    assert kafka_settings(None, file, {"KAFKA_BOOTSTRAP_SERVERS": "env:1"}).bootstrap == "old:1"


@pytest.mark.parametrize("bootstrap", [None, ""])
def test_without_an_address_it_says_the_three_ways_to_give_one(bootstrap: str | None) -> None:
    with pytest.raises(KafkaSettingsError, match=r"--kafka HOST:PORT.*--kafka-config.*KAFKA_BOOTSTRAP_SERVERS"):
        kafka_settings(bootstrap, None, {})


@pytest.mark.parametrize("prefix", ["", "a.b-c_9.", "x" * 64])
def test_a_prefix_comes_from_the_argument_or_else_the_environment(prefix: str) -> None:
    environment = {"RANKWATCH_TOPIC_PREFIX": prefix}
    assert kafka_settings("b:1").prefix == DEFAULT_PREFIX
    assert kafka_settings("b:1", None, environment).prefix == prefix
    assert kafka_settings("b:1", None, {"RANKWATCH_TOPIC_PREFIX": "other."}, prefix).prefix == prefix


@pytest.mark.parametrize("prefix", ["a b", "x" * 65, "a/b", "ü", "a\n"])
def test_a_prefix_that_kafka_would_not_take_is_refused(prefix: str) -> None:
    with pytest.raises(KafkaSettingsError, match=r"^topic prefix '.*': only letters") as caught:
        kafka_settings("b:1", prefix=prefix)
    assert "\n" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    hidden = {
        "sasl.password": SECRET,
        "ssl.key.password": SECRET,
        "ssl.key.pem": SECRET,
        "sasl.oauthbearer.client.secret": SECRET,
        "SASL.Password": SECRET,
    }
    found = KafkaSettings({"bootstrap.servers": "b:1", "sasl.username": "rank", **hidden})
    assert found.shown == {"bootstrap.servers": "b:1", "sasl.username": "rank"} | dict.fromkeys(hidden, "***")


@pytest.mark.parametrize(
    "more",
    [
        {"sasl.passwort": SECRET},
        {"security.protocol": "sasl_ssl", "sasl.mechanism": "NONE"},
        {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"},
        {"security.protocol": "ssl", "ssl.key.location": "/nowhere.pem"},
        {"security.protocol": "ssl", "ssl.key.pem": SECRET},
        {"linger.ms": "soon"},
    ],
    ids=",".join,
)
def test_what_librdkafka_does_not_take_is_one_line_without_secrets(more: dict[str, str]) -> None:
    settings = KafkaSettings({"bootstrap.servers": "127.0.0.1:1", "sasl.password": SECRET, **more})
    with pytest.raises(KafkaSettingsError, match=r"^Kafka settings: ") as caught:
        made(Producer, settings, Errors())
    assert SECRET not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["b:1", "a.b-c_d:9092, [::1]:65535", "127.0.0.1:9092,127.0.0.2:9092"])
def test_addresses_are_hosts_and_ports(address: str) -> None:
    assert kafka_settings(address).bootstrap == address


@pytest.mark.parametrize(
    "address", ["host", "host:", ":9092", "a:1,", "a:1;b:2", "ssl://a:1", "a:1\n", "a:x", "a:\u0661"]
)
def test_what_is_no_address_is_refused_in_one_line(address: str) -> None:
    with pytest.raises(KafkaSettingsError, match=r"^'.*' is no Kafka address; give HOST:PORT, several with commas$"):
        kafka_settings(None, None, {"KAFKA_BOOTSTRAP_SERVERS": address})


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_a_port_that_cannot_be_is_refused(port: str) -> None:
    with pytest.raises(KafkaSettingsError, match=rf"^Kafka address h:{port}: {port} is no port; give 1 to 65535$"):
        kafka_settings(f"a:1,h:{port}")


@pytest.mark.parametrize(
    "login", [f"user:{SECRET}", f"{SECRET},{SECRET}", f"user:{SECRET}@{SECRET}", f"sasl://{SECRET}"]
)
def test_nothing_that_stands_before_an_at_is_repeated(login: str) -> None:
    with pytest.raises(KafkaSettingsError, match=r"with a login at 'host:9092': give HOST:PORT alone") as caught:
        kafka_settings(f"{login}@host:9092")
    assert SECRET not in str(caught.value)
