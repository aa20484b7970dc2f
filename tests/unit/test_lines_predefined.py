"""Predefined templates: each is found in its line, folded or not, under its id, in its role, with what it tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from detection_support import fatal, known_fatal
from predefined_samples import ERRORS, HEAD, LINES

from schemas.events import Log
from streams.lines.facts import facts_of
from streams.lines.fatal import fatal_of, follow, predefined_id, speaks_of_trouble, spoken_of
from streams.lines.predefined import ANY_LINE, VOCABULARY, spoken_line
from streams.lines.signature import fold, shape, signature_of
from streams.lines.vocabulary.xid import CODES, FOLLOWERS, pci_id

SHARED = Path(__file__).resolve().parents[3] / "shared"
HEALTHY = ("healthy-1", "healthy-2", "pp-healthy", "rl-healthy")
ORDINARY = (
    # The kernel's lines are from gpud's test data, as in predefined_samples.
    "6,3964,206764307,-;nvidia-nvswitch2: open (major=510)",
    "6,3973,227986636,-;IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
    "<6>[    2.608284] mlx5_core 0000:41:00.1: 63.008 Gb/s available PCIe bandwidth (8.0 GT/s PCIe x8 link)",
    "<6>[    2.875476] ata3: SATA link down (SStatus 0 SControl 300)",
    "<6>[   13.868252] EDAC MC0: Giving out device to module amd64_edac controller F19h_M10h: DEV 0000:00:18.3",
    "[Sun Feb 23 16:24:18 2025] NVRM: GPU at PCI:0000:9b:00: GPU-00000000-0000-0000-0000-000000000001",
    "[Sun Feb 23 16:24:36 2025] NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of 30).",
    "host:8514:8514 [0] NCCL INFO Bootstrap : Using [0]eno1:128.2.176.158<0>",
    "calieca09323333: Lost carrier",
    "retry on Xid errors: enabled (79, 94)",
)


def shared(*parts: str) -> Path:
    place = SHARED.joinpath(*parts)
    if not place.exists():
        pytest.skip(f"{'/'.join(parts)} of ../shared is not here")
    return place


def lines_of(path: Path) -> Iterator[str]:
    yield from path.read_text(encoding="utf-8", errors="replace").splitlines()


def role_of(text: str) -> str:
    spoken = spoken_of(text)
    return "" if spoken is None else spoken.template.role


@pytest.mark.parametrize(("id_", "role", "text", "values"), LINES)
def test_a_line_has_its_template_its_role_and_its_values(
    id_: str, role: str, text: str, values: dict[str, str]
) -> None:
    spoken = spoken_of(text)
    assert spoken is not None
    assert (spoken.template.id, spoken.template.role) == (id_, role)
    assert spoken.values.items() >= values.items()


@pytest.mark.parametrize(("id_", "role", "error", "values"), ERRORS)
def test_a_traceback_has_its_template_too(id_: str, role: str, error: str, values: dict[str, str]) -> None:
    spoken = spoken_of(HEAD + error)
    assert spoken is not None
    assert (spoken.template.id, spoken.template.role) == (id_, role)
    assert spoken.values.items() >= values.items()


def test_every_entry_has_a_sample_and_an_id_of_its_own() -> None:
    ids = [entry.id for entry in VOCABULARY]
    assert len(set(ids)) == len(ids)
    coded = {entry.id for entry in VOCABULARY if entry.coded}
    for kind, samples in (("lines", LINES), ("error", ERRORS)):
        shown = {id_.split(".")[0] if id_.split(".")[0] in coded else id_ for id_, *_ in samples}
        assert {entry.id for entry in VOCABULARY if getattr(entry, kind)} <= shown


@pytest.mark.parametrize(("id_", "text"), [(id_, text) for id_, _, text, _ in LINES])
def test_folded_it_speaks_as_well_and_has_the_same_id(id_: str, text: str) -> None:
    assert speaks_of_trouble(text) and speaks_of_trouble(fold(text))
    facts = facts_of(text)
    assert facts.trouble
    assert facts.predefined == predefined_id(text, signature_of(shape(text)))
    assert facts.predefined.startswith(id_)


def test_the_search_for_all_of_them_at_once_finds_what_each_finds() -> None:
    for pattern in (pattern for entry in VOCABULARY for pattern in entry.lines):
        assert pattern.pattern[0].isalpha(), "what does not begin with a letter slows the one search down"
        assert any(pattern.search(text) and ANY_LINE.search(text) for _, _, text, _ in LINES), pattern


@pytest.mark.parametrize(("role", "text"), [(role, text) for _, role, text, _ in LINES])
def test_only_candidates_and_cascades_are_fatal(role: str, text: str) -> None:
    found = fatal(text)
    assert (found is not None) == (role in ("candidate", "cascade"))
    assert found is None or found.role == role


def test_what_differs_in_variables_only_is_one_template_and_two_codes_are_two() -> None:
    line = "NVRM: Xid (PCI:0000:{}:00): {}, pid=2503421, name=python3, Ch 00000008"
    one, two = facts_of(line.format("0f", 94)), facts_of(line.format("1f", 94).replace("2503421", "7"))
    assert (one.signature, one.predefined) == (two.signature, two.predefined)
    other = facts_of(line.format("0f", 43))
    assert (one.predefined, other.predefined) == ("xid.94", "xid.43")
    assert one.signature != other.signature
    assert facts_of(line.format("9b", 94)).predefined == "xid.94"


def test_what_stands_for_many_texts_has_an_id_for_each_the_same_in_every_job() -> None:
    one, two = (facts_of(f"{HEAD}{error}").predefined for error in ("KeyError: 'a'", "ValueError: b"))
    assert one != two
    assert one.startswith("python.exception.") and two.startswith("python.exception.")
    assert facts_of(f"{HEAD}KeyError: 'a'").predefined == one


def test_a_file_handle_gone_stale_is_the_storages_and_a_checkpoints_where_it_says_so() -> None:
    assert known_fatal(HEAD + "OSError: [Errno 116] Stale file handle: '/data/a.bin'").area == "data"
    assert known_fatal(HEAD + "OSError: [Errno 116] Stale file handle: '/out/checkpoint/3'").area == "checkpoint"


def test_the_vendors_action_stands_in_the_record() -> None:
    found = known_fatal("NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
    assert (found.template, found.rule, found.values["action"]) == ("xid.79", "gpu_hardware", "RESTART_BM")
    assert known_fatal("NVRM: Xid (PCI:0000:44:00): 31, pid=1").area == "code"


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_to_be_ignored_or_a_follower_is_never_a_cause(code: int) -> None:
    known = CODES[code]
    line = f"NVRM: Xid (PCI:0000:05:00): {code}, pid=7"
    assert role_of(line) == ("confirmation" if known.action == "IGNORE" or code in FOLLOWERS else "candidate")


def test_a_follower_is_attached_to_the_xid_before_it_on_the_same_gpu() -> None:
    line = "NVRM: Xid (PCI:0000:{}:00): {}, pid=7"
    fatals = [known_fatal(line.format("04", 149)), known_fatal(line.format("05", 79)), known_fatal(HEAD + "ValueError")]
    for code in (45, 154, 154):
        follow(fatals, line.format("04", code))
    assert [one.values.get("followed_by", "") for one in fatals] == ["45 154", "", ""]
    for line_ in (line.format("06", 45), line.format("05", 43), "nothing", "NVRM: Xid (PCI:0000:05:00): 999, x"):
        follow(fatals, line_)
    assert [one.values.get("followed_by", "") for one in fatals] == ["45 154", "", ""]
    none: list[object] = []
    follow(none, line.format("04", 45))
    assert none == []


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("PCI:0000:0f:00", "0000:0f:00.0"),
        ("0000:85:00.0", "0000:85:00.0"),
        ("00000000:0F:00.0", "0000:0f:00.0"),
        ("00010000:0F:1f.3", "10000:0f:1f.3"),
        ("0f:00.1", "0000:0f:00.1"),
        ("0000:0f", "0000:0f"),
        ("::::", "::::"),
        ("", ""),
    ],
)
def test_a_pci_id_has_one_form(printed: str, expected: str) -> None:
    assert pci_id(printed) == expected


def test_whatever_is_raised_inside_a_collective_is_a_cascade() -> None:
    frame = (
        '  File "/opt/torch/distributed/distributed_c10d.py", line 3174, in all_reduce\n    work = group.allreduce()\n'
    )
    spoken = spoken_of(f"Traceback (most recent call last):\n{frame}RuntimeError: something new")
    assert spoken is not None
    assert (spoken.template.id, spoken.template.role) == ("collective.error", "cascade")


def test_a_rank_that_only_passes_on_its_launchers_word_has_no_error_of_its_own() -> None:
    error = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED"
    assert fatal(HEAD + error) is None


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_line_is_silent(line: str) -> None:
    assert spoken_of(line) is None
    assert not facts_of(line).trouble


@pytest.mark.parametrize(
    "text", ["", "\n", "\x00", "Xid", "NVRM: Xid (PCI:): 1", "NVRM: Xid (PCI:zz): 99999999,", "\n".join("ab")]
)
def test_broken_lines_say_nothing_and_harm_nobody(text: str) -> None:
    assert spoken_of(text) is None
    assert facts_of(text).predefined == ""


def test_the_codes_of_recorded_kernel_lines() -> None:
    folder = shared("data", "kernel-logs")
    seen: dict[str, set[tuple[str, str]]] = {}
    for name in ("dmesg-with-xid-119.log", "dmesg-xid13.log", "kmsg-nvswitch.log", "fabricmanager.log"):
        for line in lines_of(folder / name):
            spoken = spoken_line(line)
            if spoken is not None and "code" in spoken.values:
                seen.setdefault(name, set()).add((spoken.template.id, spoken.values["pci"]))
    assert seen == {
        "dmesg-with-xid-119.log": {("xid.119", "0000:9b:00.0")},
        "dmesg-xid13.log": {("xid.13", "0000:38:00.0"), ("xid.43", "0000:38:00.0")},
        "fabricmanager.log": {("sxid.12028", "0000:86:00.0")},
    }


def test_recorded_boot_lines_and_ordinary_ones_are_silent() -> None:
    folder = shared("data", "kernel-logs")
    boot = list(lines_of(folder / "pstore-panic-dmesg.txt"))
    panic = next(at for at, line in enumerate(boot) if "Kernel panic" in line)
    ordinary = [*boot[:panic], *lines_of(folder / "kmsg-nvswitch.log"), *lines_of(folder / "fabricmanager.log")]
    assert len(ordinary) > 400
    assert {role_of(line) for line in ordinary} <= {"", "confirmation"}
    assert not any(fatal(line) for line in ordinary)
    assert {role_of(line) for line in boot[panic:]} == {"candidate", ""}


@pytest.mark.parametrize("name", HEALTHY)
def test_no_line_of_a_healthy_job_is_a_candidate(name: str) -> None:
    folder = shared("data", "recorded", name)
    lines = [line for path in sorted(folder.rglob("*.log")) for line in lines_of(path)]
    assert len(lines) > 100
    assert "candidate" not in {role_of(line) for line in lines}
    assert not any(found and found.role == "candidate" for found in map(fatal, lines))


def test_a_record_of_hostile_length_is_read_in_part() -> None:
    log = Log(time=1, stream="stdout", text="x" * 5_000_000 + " NVRM: Xid (PCI:0000:05:00): 79, x")
    assert fatal_of(log, trained=True) is None
