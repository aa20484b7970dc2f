"""Long lists of ranks in sentences, shortened for people; tools have all of them in the JSON report."""

from __future__ import annotations

import re

MOST_RUNS = 12
_RUN = r"\d{1,9}(?:-\d{1,9})?"
_MANY = re.compile(rf"(?<=\branks )({_RUN}(?:,{_RUN}){{{MOST_RUNS - 1}}}),{_RUN}(?:,{_RUN})*(?![\w-])")


def with_few_ranks(text: str) -> str:
    """The text in which each list of more runs than ``MOST_RUNS`` ends behind so many, and tells how many ranks it has.

    >>> with_few_ranks("ranks " + ",".join(map(str, range(0, 40, 2))) + " wait")
    'ranks 0,2,4,6,8,10,12,14,16,18,20,22,… (20 ranks) wait'
    """
    return _MANY.sub(lambda found: f"{found[1]},… ({_count(found[0])} ranks)", text)


def _count(ranges: str) -> int:
    """How many ranks ``0-4,6-7`` are."""
    ends = [run.partition("-") for run in ranges.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)
