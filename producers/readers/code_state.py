"""Which code a job runs, as git tells it: log, status, describe, remotes, rev-parse."""

from __future__ import annotations

import re

from producers.job_facts import JobFacts

_LOG = re.compile(
    r"commit ([0-9a-f]{40})(?: \([^\n)]{0,300}\))?\n(?:Merge: [^\n]{1,100}\n)?Author: [^\n]{1,300}\nDate: "
)
_BRANCH = re.compile(r"(?:^|\n)(?:On branch (\S{1,200})|HEAD detached at (\S{1,200}))(?:\n|$)")
_CLEAN = re.compile(r"\bnothing to commit\b")
_DIRTY = re.compile(r"(?:^|\n)(?:Changes not staged for commit:|Changes to be committed:|diff --git a/)")
_REMOTE = re.compile(r"(?:^|\n)origin\t(\S{1,1000}) \((?:fetch|push)\)")
_DESCRIBE = re.compile(r"([\w./+-]{1,100}-\d{1,6}-g([0-9a-f]{7,40}))(-dirty)?")
_BARE = re.compile(r"([0-9a-f]{40})(-dirty|\+)?")
_OF_GIT = re.compile(r"(?:^|[^a-z])(?:git|commit|revision|rev|head|sha)(?:[^a-z]|$)")
_MOST = 65_536


def read(text: str, file: str) -> JobFacts | None:
    """What the output of git tells, null where it is none. A hash alone is a commit only where the name says so."""
    text = text[:_MOST]
    facts = JobFacts(file)
    if (log := _LOG.search(text)) is not None:
        facts.tell("code", "commit", log[1])
    if (branch := _BRANCH.search(text)) is not None:
        if branch[1]:
            facts.tell("code", "branch", branch[1])
        if _CLEAN.search(text) or _DIRTY.search(text):
            facts.tell("code", "dirty", _DIRTY.search(text) is not None)
    elif _DIRTY.search(text):
        facts.tell("code", "dirty", value=True)
    if (remote := _REMOTE.search(text)) is not None:
        facts.tell("code", "repository", repository(remote[1]))
    _single(text.strip(), file, facts)
    return facts if facts else None


def _single(line: str, file: str, facts: JobFacts) -> None:
    """A file of one word: what ``git describe`` or ``git rev-parse`` prints."""
    if (described := _DESCRIBE.fullmatch(line)) is not None:
        facts.tell("code", "describe", described[1])
        facts.tell("code", "dirty", described[3] is not None)
    elif (bare := _BARE.fullmatch(line)) is not None and _OF_GIT.search(file.rpartition("/")[2].lower()):
        facts.tell("code", "commit", bare[1])
        if bare[2]:
            facts.tell("code", "dirty", value=True)


def repository(address: str) -> str:
    """An address of a repository in one form, whether it is reached over HTTP or SSH."""
    bare = re.sub(r"^(?:[a-z+]{2,10}://)?(?:[^@/\s]{1,200}@)?", "", address)
    return bare.replace(":", "/", 1).removesuffix("/").removesuffix(".git")
