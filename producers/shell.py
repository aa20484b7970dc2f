"""Scripts of a shell as commands and words, nearly as a shell would split them; nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

MOST_LINES = 5000
MOST_LINE = 32_768
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w{0,100})(?::?-([^}$]{0,200}))?\}|([A-Za-z_]\w{0,100}))")
_HEREDOC = re.compile(r"<<-?[ ]{0,4}[\"']?([A-Za-z_]\w{0,40})[\"']?")
SUBSTITUTED = "$…"
"""What stands for what a command would print."""
_PUNCTUATION = frozenset("();<>|&")


def lines_of(text: str) -> Iterator[str]:
    """The lines of a script, continued ones joined, without comments and documents."""
    until = ""
    joined: list[str] = []
    for count, raw in enumerate(text.splitlines()):
        if count >= MOST_LINES:
            return
        if until:
            until = "" if raw.strip() == until else until
            continue
        if not joined and raw.lstrip().startswith("#"):
            continue
        joined.append(raw.rstrip())
        # Brackets of an array and quotes may span lines.
        whole = "\n".join(joined)
        if raw.rstrip().endswith("\\") and len(whole) < MOST_LINE:
            joined[-1] = joined[-1][:-1] + " "
            continue
        if _is_open(whole) and len(whole) < MOST_LINE and len(joined) < 500:
            continue
        joined = []
        if (found := _HEREDOC.search(whole)) is not None:
            until = found[1]
        yield whole[:MOST_LINE]
    if joined:
        yield "\n".join(joined)[:MOST_LINE]


def _is_open(text: str) -> bool:
    """Whether a quote or the bracket of an array is not closed yet."""
    if re.search(r"^[ \t]*\w{1,100}\+?=\([^)]*\Z", text):
        return True
    bare = re.sub(r"\\.", "", text)
    bare = re.sub(r"'[^']*'", "", re.sub(r'"[^"]*"', "", bare))
    return bare.count('"') % 2 == 1


def commands_in(line: str) -> list[list[str]]:
    """The commands of a line, as a shell would split it, nearly; what substitutions and redirections hold is left."""
    array = re.match(r"[ \t]*(\w{1,100})\+?=\((.*)\)[ \t]*\Z", line, re.DOTALL)
    if array is not None:
        inner = re.sub(r"(?m)(?:^|[ \t])#[^\n]*$", "", array[2])
        return [[f"{array[1]}={' '.join(inner.split())}"]]
    found: list[list[str]] = [[]]
    skipped = False
    for word in _tokens(re.sub(r"\$\([^()]*\)|`[^`]*`", SUBSTITUTED, line).replace("\n", " ")):
        if word and set(word) <= _PUNCTUATION:
            skipped = bool(set(word) & set("<>"))
            if skipped and found[-1][-1:] in (["1"], ["2"]):
                found[-1].pop()
            if not skipped:
                found.append([])
        elif skipped:
            skipped = False
        else:
            found[-1].append(word)
    return [words for words in found if words]


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def split(line: str) -> list[str]:
    """The words of a line that is one command."""
    return [word for words in commands_in(line) for word in words]


def expanded(text: str, known: dict[str, str]) -> str:
    """The text with variables that the script has set; others stay as they stand there."""
    parts: list[str] = []
    at = size = 0
    for found in _VARIABLE.finditer(text := text.replace("[@]}", "}")):
        name = found[1] or found[3]
        value = known.get(name, found[2] if found[2] is not None else found[0])
        parts += (text[at : found.start()], value)
        at = found.end()
        size += len(value)
        if size > MOST_LINE:
            break
    return "".join((*parts, text[at:]))[:MOST_LINE]


def flat(words: list[str], known: dict[str, str]) -> list[str]:
    """The words with variables that stand alone split into the words that they hold, as a shell would."""
    found: list[str] = []
    for word in (one.replace("[@]}", "}").replace("[*]}", "}") for one in words):
        alone = _VARIABLE.fullmatch(word)
        value = known.get(alone[1] or alone[3]) if alone else None
        # Arguments are mostly gathered in a variable or an array.
        found += split(value) if value is not None else [word]
        if len(found) > 2000:
            break
    return found
