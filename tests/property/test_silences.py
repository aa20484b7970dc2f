"""Whatever is silenced: no hang, nothing that does not fit, and never more for knowing or naming more."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from silence_support import HOUR, INCIDENT, NOW, suspects

from schemas.results import Incident
from schemas.silences import Matcher, Silence
from streams.silencing import LABELS, SilenceReason, fits_pattern, labels_of, silenced_by

NAMES = st.sampled_from(["n1", "n2", "run-7", "speech", "crash", "critical", "c1", ""])
MATCHERS = st.builds(
    Matcher,
    label=st.sampled_from([*LABELS, "team", "tier"]),
    value=st.sampled_from(["n1", "n2", "n?", "run-7", "run*", "speech", "*", "crash", "hang", "c1", "critical"]),
    negated=st.booleans(),
    pattern=st.booleans(),
)
SILENCES = st.lists(
    st.builds(
        Silence,
        id=st.sampled_from(["a", "b", "c"]),
        number=st.integers(1, 3),
        matchers=st.lists(MATCHERS, max_size=4),
        starts=st.integers(NOW - HOUR, NOW + HOUR),
        ends=st.integers(NOW - HOUR, NOW + 2 * HOUR),
        created_by=st.just("maria"),
    ),
    max_size=4,
)
INCIDENTS = st.builds(
    lambda nodes, scope, cluster, labels, symptom: msgspec.structs.replace(
        INCIDENT,
        suspects=suspects(*nodes),
        scope=msgspec.structs.replace(INCIDENT.scope, nodes=scope),
        cluster=cluster,
        labels=labels,
        symptom=symptom,
    ),
    st.lists(NAMES, max_size=3),
    st.lists(st.sampled_from(["n1", "n2"]), max_size=2),
    NAMES,
    st.dictionaries(st.sampled_from(["team", "node", "job"]), NAMES, max_size=2),
    st.sampled_from(["hang", "crash", "slowdown", "numerics", "memory"]),
)


@given(INCIDENTS, SILENCES)
def test_a_hang_is_never_silenced(incident: Incident, silences: list[Silence]) -> None:
    hang = msgspec.structs.replace(incident, symptom="hang")
    assert silenced_by(hang, silences, NOW).silence is None


@given(INCIDENTS, SILENCES, st.randoms(use_true_random=False))
def test_the_order_of_silences_and_of_suspects_decides_nothing(
    incident: Incident, silences: list[Silence], chance: object
) -> None:
    mixed, people = [*silences], [*incident.suspects]
    for some in (mixed, people):
        getattr(chance, "shuffle")(some)  # noqa: B009
    one = silenced_by(incident, silences, NOW)
    other = silenced_by(msgspec.structs.replace(incident, suspects=people), mixed, NOW)
    assert (one.silence is None, one.why) == (other.silence is None, other.why)


@given(INCIDENTS, SILENCES)
def test_what_silences_holds_now_and_fits_in_all_that_it_asks_for(incident: Incident, silences: list[Silence]) -> None:
    found = silenced_by(incident, silences, NOW)
    assert (found.silence is not None) is (found.why is SilenceReason.SILENCED)
    if found.silence is not None:
        assert found.silence.starts <= NOW < found.silence.ends
        told = labels_of(incident)
        for matcher in found.silence.matchers:
            for value in told[matcher.label]:
                same = fits_pattern(matcher.value, value) if matcher.pattern else matcher.value == value
                assert same is not matcher.negated


@given(INCIDENTS, SILENCES, st.sampled_from(["n3", ""]))
def test_one_more_suspect_elsewhere_silences_nothing_by_node(
    incident: Incident, silences: list[Silence], node: str
) -> None:
    more = msgspec.structs.replace(incident, suspects=[*incident.suspects, *suspects(node)])
    by_node = [
        msgspec.structs.replace(one, matchers=[Matcher(label="node", value=value) for value in ("n1",)])
        for one in silences
    ]
    assert silenced_by(more, by_node, NOW).silence is None


@given(INCIDENTS, SILENCES)
def test_fewer_silences_silence_no_more(incident: Incident, silences: list[Silence]) -> None:
    if silenced_by(incident, silences[1:], NOW).silence is not None:
        assert silenced_by(incident, silences, NOW).silence is not None


@given(st.text("ab*?", max_size=8), st.text("abc", max_size=8))
def test_a_pattern_fits_as_the_slow_way_says(pattern: str, text: str) -> None:
    assert fits_pattern(pattern, text) is slowly(pattern, text)


def slowly(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(slowly(pattern[1:], text[cut:]) for cut in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and slowly(pattern[1:], text[1:])
