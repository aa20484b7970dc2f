"""What healthy jobs print: learned, merged, written down, read back, and refused where it cannot be used."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st
from streams_support import BASE, Script, agent, hanging, library_of, put, run, steady, worker, written_log

from schemas.codec import encode
from schemas.events import Batch, Job
from schemas.library import HealthyJob, LearnedTemplate, Library
from streams.library.file import MOST_BYTES, library_in, read_library, text_of, write_library
from streams.library.learning import learned
from streams.library.record import MOST_JOBS, MOST_TEMPLATES, MOST_TEXT, LibraryError, checked, made, merged_library
from streams.lines.signature import MASKS_ID


def wordy(job: str, ranks: int = 4) -> Script:
    """A steady job of which rank 0 says more, and rank 1 something long."""
    script = steady(job, ranks, 15)
    script.log(worker(job, 0), 0.6, "building model with 7 layers")
    script.log(worker(job, 1), 12.2, "x" * 3000)
    script.log(agent(job, "node00"), 13.0, "the node says something of its own")
    return script


@pytest.fixture(scope="module")
def three() -> list[Library]:
    return [library_of(script) for script in (wordy("a"), steady("b", 2, 25), hanging("c", 4))]


def by_text(library: Library) -> dict[str, LearnedTemplate]:
    return {template.text: template for template in library.templates}


def test_a_job_is_learned_with_its_ranks_by_phase_and_its_iterations() -> None:
    library = library_of(wordy("a"))
    (job,) = library.jobs
    assert (job.job, job.world_size, job.framework) == ("a", 4, "")
    assert job.id.startswith("a.") and 5 <= job.iterations <= 15
    assert set(job.ranks.values()) == {4}
    templates = by_text(library)
    (phase,) = templates["building model with <*> layers"].printed[job.id]
    assert library.shares(templates["building model with <*> layers"]) == {phase: 0.25}
    (timers,) = [one for text, one in templates.items() if text.startswith("step <*> timers")]
    assert library.shares(timers)["train"] == 1.0
    assert not any("of its own" in text for text in templates), "a node is no rank"
    assert (library.number, library.masks, library.left_out) == (1, MASKS_ID, 0)
    assert max(map(len, templates)) == MOST_TEXT


def test_the_framework_is_what_the_job_says() -> None:
    log = written_log(steady("a").recording)
    event = Job(time=BASE + 1, framework="megatron")
    put(log, Batch(producer="p", boot="b", seq=1, identity=worker("a", 0), events=[event]))
    run(log)
    assert [job.framework for job in learned(log, "healthy").jobs] == ["megatron"]


@pytest.mark.parametrize("partitions", [1, 3])
def test_learning_does_not_depend_on_partitions(partitions: int) -> None:
    assert library_of(wordy("a"), partitions=partitions) == library_of(wordy("a"))


def test_the_same_jobs_in_any_order_give_the_same_bytes(three: list[Library]) -> None:
    written = {text_of(merged_library(order, "healthy")) for order in itertools.permutations(three)}
    assert len(written) == 1
    nested = merged_library([merged_library(three[:2], "x"), merged_library([three[1], three[2]], "y")], "healthy")
    assert {text_of(nested)} == written


SOME = {f"t{number}": f"word{number} <*>" for number in range(5)}


@st.composite
def small_libraries(draw: st.DrawFn) -> Library:
    """Libraries of a few jobs out of four, whose templates are a function of the job."""
    names = draw(st.sets(st.sampled_from("abcd"), min_size=1))
    jobs = [HealthyJob(id=name, job=name, ranks={"train": 8}) for name in names]
    printed = {
        id_: {name: {"train": 1 + (ord(name) + number) % 8} for name in names if (ord(name) + number) % 3}
        for number, id_ in enumerate(SOME)
    }
    templates = [LearnedTemplate(id=id_, text=SOME[id_], printed=by) for id_, by in printed.items() if by]
    return made("healthy", draw(st.permutations(jobs)), draw(st.permutations(templates)))


@FIXED
@given(st.lists(small_libraries(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_merging_is_a_union(libraries: list[Library], random: Any) -> None:
    whole = merged_library(libraries, "healthy")
    shuffled = list(libraries)
    random.shuffle(shuffled)
    assert encode(merged_library([*shuffled, shuffled[0]], "healthy")) == encode(whole)
    assert encode(merged_library([shuffled[0], merged_library(shuffled, "x")], "healthy")) == encode(whole)
    assert {job.id for job in whole.jobs} == {job.id for library in libraries for job in library.jobs}


def test_a_version_is_what_was_learned_and_not_what_it_is_called(three: list[Library]) -> None:
    one = three[0]
    assert merged_library([one], "another").version == one.version != merged_library(three, "healthy").version
    assert one.label == f"healthy 1 ({one.version})"


def test_a_file_is_json_with_a_template_a_line_and_comes_back_equal(three: list[Library], tmp_path: Path) -> None:
    library = merged_library(three, "healthy")
    file = tmp_path / "library.json"
    write_library(file, library)
    assert checked(read_library(file)) == library
    assert text_of(read_library(file)) == file.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"library.json"}
    lines = file.read_text().splitlines()
    for template in json.loads(file.read_text())["templates"]:
        (line,) = [line for line in lines if f'"{template["id"]}"' in line]
        assert json.loads(line.rstrip(",")) == template
    assert text_of(made("none", [], [])) and checked(library_in(text_of(made("none", [], [])).encode(), "f"))


def test_a_file_changed_by_hand_is_another_version_in_the_one_order(three: list[Library]) -> None:
    raw = json.loads(text_of(three[0]))
    raw["templates"] = raw["templates"][:0:-1]
    again = checked(library_in(json.dumps(raw).encode(), "f"))
    assert [one.text for one in again.templates] == sorted(one.text for one in again.templates)
    assert again.version != three[0].version


def changed(library: Library, change: Callable[[dict[str, Any]], Any]) -> bytes:
    raw = json.loads(text_of(library))
    change(raw)
    return json.dumps(raw).encode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda raw: raw.update(masks="another"), "was learned under other masks"),
        (lambda raw: raw.update(name="../\x1b[2J"), "is no name of a library"),
        (lambda raw: raw.update(name="n" * 5000), "is no name of a library"),
        (lambda raw: raw.update(number=0), "its number must lie between 1 and"),
        (lambda raw: raw.update(left_out=-1), "what was left out of it is no count"),
        (lambda raw: raw["jobs"].append(raw["jobs"][0]), "two of its jobs have one id"),
        (lambda raw: raw["templates"].append(raw["templates"][0]), "two of its templates have one id"),
        (lambda raw: raw["jobs"].clear(), "which is not one of its jobs"),
        (lambda raw: raw["jobs"][0].update(ranks={}), "is printed by no rank or by more"),
        (lambda raw: raw["jobs"][0].update(ranks={"train": -8}), "has a number that is no count"),
        (lambda raw: raw["jobs"][0].update(iterations=10**18), "has a number that is no count"),
        (lambda raw: raw["jobs"][0].update(framework="f" * 300), "has too many or too long names"),
        (lambda raw: raw["jobs"][0].update(ranks=dict.fromkeys(map(str, range(99)), 1)), "has too many or too long"),
        (lambda raw: raw["jobs"][0]["pace"].update(step_s=-1), "has a pace or symptoms that no job has"),
        (lambda raw: raw["jobs"][0].update(began=2, ended=1), "has a number that no profile has"),
        (lambda raw: raw["jobs"][0]["pace"].update(phases={"p" * 500: 1}), "has a pace or symptoms that no job has"),
        (lambda raw: raw["jobs"][0].update(symptoms=["hang"] * 9), "has a pace or symptoms that no job has"),
        (lambda raw: raw["jobs"][0].update(description={"framework": "f" * 500}), "is described by more or longer"),
        (lambda raw: raw["jobs"][0].update(description={"flags": {str(n): "" for n in range(999)}}), "is described by"),
        (lambda raw: raw["jobs"][0].update(description={"scattered": ["s" * 999]}), "is described by more or longer"),
        (lambda raw: raw["templates"][0].update(rates={"nobody": 1}), "has a rate that cannot be"),
        (lambda raw: raw["templates"][0].update(rates={raw["jobs"][0]["id"]: -1}), "has a rate that cannot be"),
        (lambda raw: raw["templates"][0].update(id=""), "has an id or a text that is too long, or none"),
        (lambda raw: raw["templates"][0].update(text="t" * 1001), "has an id or a text that is too long, or none"),
        (lambda raw: raw.update(jobs=[dict(raw["jobs"][0], id=str(n)) for n in range(33)]), "are the most that it"),
        (lambda raw: raw.update(templates=[dict(raw["templates"][0], id=str(n)) for n in range(4001)]), "are the most"),
    ],
)
def test_what_contradicts_itself_or_its_bounds_is_refused_in_words(
    three: list[Library], change: Callable[[dict[str, Any]], Any], reason: str
) -> None:
    with pytest.raises(LibraryError, match=reason) as found:
        checked(library_in(changed(three[0], change), "f"))
    assert str(found.value).isprintable() and len(str(found.value)) < 400


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"\x00" * 100,
        b"[" * 100_000,
        b'{"name": "healthy"}',
        b'{"name": 5, "number": "x"}',
        b'{"name": "\\ud800", "number": 1}',
        b'{"name": "a", "number": 1e400}',
        b"PK\x03\x04 an archive",
    ],
)
def test_a_file_that_is_no_library_is_one_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "library.json"
    file.write_bytes(content)
    with pytest.raises(LibraryError) as found:
        read_library(file)
    assert str(found.value).startswith(f"{file}: not a library record: ")
    assert "\n" not in str(found.value)


def test_files_that_cannot_be_read_or_written_say_so(three: list[Library], tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match=r"cannot read .*: no such file or directory"):
        read_library(tmp_path / "absent")
    with pytest.raises(LibraryError, match=r"cannot read .*: is a directory"):
        read_library(tmp_path)
    with pytest.raises(LibraryError, match=r"cannot write .*: no such file or directory"):
        write_library(tmp_path / "absent" / "library.json", three[0])
    (tmp_path / "file").touch()
    with pytest.raises(LibraryError, match=r"cannot write .*: not a directory"):
        write_library(tmp_path / "file" / "library.json", three[0])
    with pytest.raises(LibraryError, match=r"cannot write .*: file name too long"):
        write_library(tmp_path / ("x" * 300), three[0])
    with pytest.raises(LibraryError, match=r"cannot write \.: is a directory"):
        write_library(Path(), three[0])
    (tmp_path / "folder").mkdir()
    with pytest.raises(LibraryError, match=r"cannot write .*: is a directory"):
        write_library(tmp_path / "folder", three[0])
    assert not (tmp_path / "folder.part").exists()
    with (tmp_path / "large").open("wb") as large:
        large.truncate(MOST_BYTES + 1)
    with pytest.raises(LibraryError, match="larger than"):
        read_library(tmp_path / "large")


def test_a_library_is_bounded_and_keeps_what_most_jobs_print() -> None:
    jobs = [HealthyJob(id=name, job=name, ranks={"train": 8}) for name in "ab"]
    common = [LearnedTemplate(id="z", text="z", printed={"a": {"train": 1}, "b": {"train": 1}})]
    rare = [LearnedTemplate(id=f"r{n}", text=f"{n}", printed={"a": {"train": 8}}) for n in range(MOST_TEMPLATES + 4)]
    library = made("healthy", jobs, [*rare, *common])
    assert (len(library.templates), library.left_out) == (MOST_TEMPLATES, 5)
    assert "z" in {template.id for template in library.templates}
    one_each = [made("l", [HealthyJob(id=str(n), job="j", ranks={})], []) for n in range(MOST_JOBS + 1)]
    with pytest.raises(LibraryError, match=f"holds {MOST_JOBS} jobs at most, these are {MOST_JOBS + 1}"):
        merged_library(one_each, "healthy")


def test_nothing_printed_is_nothing_learned() -> None:
    script = Script("quiet")
    script.alive(2, 0, 20)
    log = written_log(script.recording)
    run(log)
    with pytest.raises(LibraryError, match="no rank printed anything"):
        learned(log, "healthy")


def test_merging_under_other_masks_is_refused(three: list[Library]) -> None:
    other = msgspec.structs.replace(three[1], masks="another")
    with pytest.raises(LibraryError, match="other masks of lines"):
        merged_library([three[0], other], "healthy")


def test_jobs_in_one_log_are_learned_as_one_by_one_and_merged() -> None:
    lines = {
        "a": "mlx5_core 0000:1a:00.0 enp26s0f0: Link down",
        "b": "mlx5_core 0000:1a:00.0 mlx5_0: Port: 1 Link DOWN",
    }
    alone = {job: steady(job, 2, 8) for job in lines}
    both = Script("a")
    for job, line in lines.items():
        alone[job].log(worker(job, 0), 3.1, line)
        both.observations += alone[job].observations
    assert library_of(both) == library_of(*alone.values()) == library_of(*reversed(alone.values()))
