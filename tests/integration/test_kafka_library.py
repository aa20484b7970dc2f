"""A library through a deployment's topic: imported as a new version, exported as it was, used by a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_pipeline import Pipeline, pipeline, run_all
from streams_support import JOBS, JUDGED, library_of, said, steady

from rankwatch import diagnose
from schemas.codec import headers
from schemas.library import Library
from streams.library.file import read_library, text_of, write_library
from streams.library.record import LibraryError, merged_library
from streams.log.kafka_library import store_library, stored_library

pytestmark = pytest.mark.xdist_group("kafka")


@pytest.fixture
def live(kafka: str, tmp_path: Path) -> Iterator[Pipeline]:
    with pipeline(kafka, tmp_path, partitions=2) as made:
        yield made


def library(seconds: int, name: str = "healthy") -> Library:
    return library_of(steady("fine", 8, seconds), name=name)


def test_each_other_content_is_a_new_version_and_the_same_is_none(live: Pipeline) -> None:
    first, second = library(20), merged_library([library(20), library(40)], "healthy")
    with pytest.raises(LibraryError, match="holds no library"):
        stored_library(live.log, None)
    numbers = [(there.number, new) for there, new in (store_library(live.log, one) for one in (first, first, second))]
    assert numbers == [(1, True), (1, False), (2, True)]
    assert stored_library(live.log, None).version == second.version
    store_library(live.log, library(20, "other"))
    with pytest.raises(LibraryError, match="holds 'healthy', 'other'; say which by --name"):
        stored_library(live.log, None)
    live.log.append("library", b"other", b"no json", headers("library"), 0)
    live.log.flush()
    assert stored_library(live.log, "healthy").number == 2
    with pytest.raises(LibraryError, match=r"topic .*library: not a library record"):
        stored_library(live.log, "other")
    assert store_library(live.log, library(20, "other"))[1]
    assert stored_library(live.log, "other").version == first.version


def test_what_is_imported_comes_back_by_export_and_a_worker_holds_jobs_against_it(
    live: Pipeline, tmp_path: Path
) -> None:
    ours, back = tmp_path / "ours.json", tmp_path / "back.json"
    write_library(ours, library(40))
    ((code, text),) = run_all({"import": ["library", "import", str(ours)]}, *live.where).values()
    assert (code, text.startswith("imported library healthy 1 (")) == (0, True)
    done = run_all(
        {
            "export": ["library", "export", str(back)],
            "worker": ["worker", "--library", "missing"],
            "again": ["library", "import", str(ours)],
        },
        *live.where,
    )
    assert done["export"][0] == 0 and back.read_text() == ours.read_text() == text_of(read_library(back))
    assert done["worker"][0] == 2 and "holds 'healthy'; but not 'missing'" in done["worker"][1]
    assert done["again"][0] == 0 and "is there already" in done["again"][1]
    recording = JOBS["restart"]()
    found = diagnose.run(recording, library=read_library(ours))
    assert all(incident.library for incident in found.incidents)
    worker = live.start("worker", "--library", "healthy")
    live.publish(recording)
    expected = {topic: sorted(set(values)) for topic, values in said(found.log, JUDGED).items()}
    assert live.until_said(expected) == expected
    assert f"library {read_library(ours).label}" in live.said_by(worker)
