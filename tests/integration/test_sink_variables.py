"""The variables of log records, as SQL finds them: much the same as the masks take out."""

from __future__ import annotations

import re

import pytest
from iteration_lines import LINES as ITERATIONS
from predefined_samples import LINES as PREDEFINED

from sinks.clickhouse import open_client
from sinks.migrate import migrate
from streams.lines.facts import facts_of
from streams.lines.signature import MASKS

NAME = re.compile("|".join(MASKS.values()))
UUID = "123e4567-e89b-12d3-a456-426614174000"
ERROR = 'Traceback (most recent call last):\n  File "t.py", line 12, in f\n    f()\nValueError: shard 7 of 64'
SAID = [
    ("[2026-11-29 18:10:10,261] [INFO] [rank 6] step 40 | loss 2.1e-05", ["40", "2.1e-05"]),
    ("at 2026-11-29 18:10:10.5 lr: nan, loss= -inf", ["2026-11-29 18:10:10.5", "nan", "-inf"]),
    ("to 10.0.0.7:29500 from s3://b/x1 and /data/x_4.bin", ["10.0.0.7:29500", "s3://b/x1", "/data/x_4.bin"]),
    (f"comm 0x55d0a1 id deadbeef12 run {UUID}", ["0x55d0a1", "deadbeef12", UUID]),
    ("rank7 v1.5 -3 1499288625.645942", ["7", "1", "5", "-3", "1499288625.645942"]),
    ("took 3.2 ms of 850.0 B, then <1 sec", ["3.2 ms", "850.0 B", "<1 sec"]),
    ("GPU 0000:0f:00.0 of n-7.gpu.example.com at ./a//b", ["0000:0f:00.0", "n-7.gpu.example.com", "./a//b"]),
    ("at Sun Jul 10 03:55:15 2005", ["Sun Jul 10 03:55:15 2005"]),
    ("first 1\nsecond 2", ["1"]),
    (ERROR, ["7", "64"]),
    ("nothing", []),
    (" ".join(map(str, range(100))), list(map(str, range(32)))),
    ("/" + "a" * 100, ["/" + "a" * 63]),
]  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Variables by text, as SQL finds them."""
    texts = sorted(
        {text for text, _ in SAID} | {one.text for one in ITERATIONS} | {text for _, _, text, _ in PREDEFINED}
    )
    with open_client(f"chdb://{tmp_path_factory.mktemp('variables')}/clickhouse") as client:
        migrate(client)
        columns = [["job"] * len(texts), list(range(len(texts))), texts, [[]] * len(texts)]
        types = ["LowCardinality(String)", "UInt32", "String", "Array(String)"]
        names = ["job", "event_index", "text", "parameters"]
        client.insert("logs", columns, names, column_type_names=types, column_oriented=True)
        client.command(
            "INSERT INTO logs (job, event_index, text, parameters) VALUES ('job', 99999, 'x 1', ['stamped'])"
        )
        rows = client.query("SELECT text, variables FROM logs").result_rows
    return {str(text): list(variables) for text, variables in rows}


@pytest.mark.parametrize(("text", "variables"), SAID, ids=range(len(SAID)))
def test_a_line_has_its_variables_in_order(found: dict[str, list[str]], text: str, variables: list[str]) -> None:
    assert found[text] == variables


def test_those_that_were_stamped_count(found: dict[str, list[str]]) -> None:
    assert found["x 1"] == ["stamped"]


def test_nearly_all_lines_of_the_field_have_as_many_as_their_templates_have_names(found: dict[str, list[str]]) -> None:
    # The code of an Xid is no variable of its template.
    texts = [text for text in found if "Xid" not in text and "NVSwitch" not in text and text != "x 1"]
    unlike = [text for text in texts if len(found[text]) != min(32, len(NAME.findall(facts_of(text).masked)))]
    assert len(texts) > 100
    assert len(unlike) <= 3, unlike
