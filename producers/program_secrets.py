"""Secrets that commands take by their place: ``sshpass -p X``, ``mysql -pX``, ``docker login -p X``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_LOGIN = "login"
_ATTACHED = frozenset(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"))
"""Programs whose ``-p`` has its value in the same word, and asks for it where there is none."""
_OPTIONS: dict[str, str] = {
    "sshpass": "-p",
    "redis-cli": "-a",
    **dict.fromkeys(_ATTACHED, "-p"),
}
"""The option behind which a program takes a secret."""
_AT_LOGIN: dict[str, str] = dict.fromkeys(
    ("docker", "podman", "nerdctl", "helm", "skopeo", "buildah", "oras", "crane", "az", "oc"), "-p"
)
"""The same of programs that take one only to log in."""
_KEY_AT_LOGIN = frozenset(("wandb", "vault", "comet", "swanlab"))
"""Programs that take a key as it is to log in."""
SIGNS = ("sshpass", "redis-cli", "mysql", "mariadb", _LOGIN)
"""What stands in a text that has to be looked at: all of these programs, in short."""
_KEY = re.compile(r"[A-Za-z0-9_.-]{16,400}")
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"\S{1,4000}")
_ENDS = "|;&"
_AROUND = "\"'`()[]{}," + _ENDS


def places(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Which words are secrets by their place in a command, and how many characters before the secret each has."""
    program = option = ""
    takes_key = expected = False
    for at, raw in enumerate(words):
        word = raw.strip(_AROUND)
        name = word.rpartition("/")[2]
        if expected:
            yield at, 0
            # What it runs may have such an option for something else.
            program, option, takes_key, expected = "", "", False, False
        elif name in _OPTIONS or name in _AT_LOGIN or name in _KEY_AT_LOGIN:
            program, option, takes_key = name, _OPTIONS.get(name, ""), False
        elif word == _LOGIN and program:
            option, takes_key = _AT_LOGIN.get(program, option), program in _KEY_AT_LOGIN
        elif option and word == option:
            expected = program not in _ATTACHED
        elif option and word.startswith(option):
            yield at, raw.index(option) + len(option)
            option = ""
        elif takes_key and _KEY.fullmatch(word) and _DIGIT.search(word):
            takes_key = False
            yield at, raw.index(word)
        if raw[-1:] and raw[-1] in _ENDS:
            program, option, takes_key, expected = "", "", False, False


def without(text: str, instead: str) -> tuple[str, int]:
    """The text with another word for each such secret in it, and how many there were."""
    if not any(map(text.__contains__, SIGNS)):
        return text, 0
    found = list(_WORD.finditer(text))
    told: list[str] = []
    done = count = 0
    for at, before in places([one[0] for one in found]):
        begin = found[at].start() + before
        if begin < done:
            continue
        quote = text[begin]
        closed = text.find(quote, begin + 1) if quote in "\"'" else -1
        end = closed + 1 if closed >= 0 else begin + len(found[at][0].rstrip(_AROUND)) - before
        if end <= begin or text[begin:end] == instead:
            continue
        told += [text[done:begin], instead]
        done = end
        count += 1
    return "".join([*told, text[done:]]), count
