"""Secrets are taken out of what is told of a job: by the name that they go under, and by how they look.

In doubt a value is hidden: that one job hides what another shows costs a comparison, a secret in a log costs more.
"""

from __future__ import annotations

import re

from producers import program_secrets
from producers.word_lists import words_of
from schemas.jobs import HIDDEN

_WORD = re.compile(r"[A-Z]{1,60}(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALWAYS = words_of(
    "secret secrets password passwords passwd passphrase pass pwd credential credentials creds cookie "
    "cookies private auth authorization authentication apikey accesskey secretkey bearer jwt pem netrc "
    "dsn sas pat authtoken accesstoken pw pswd passcode webhook webhooks"
)
_MOSTLY = frozenset(("token", "tokens", "key", "keys", "signature", "session"))
"""Words that settings of models and data have, too: ``pad_token_id``, ``num_key_value_heads``, ``prompt_key``."""
_HARMLESS = re.compile(
    r"(?:[a-z0-9]{1,32}_){0,4}(?:pad|eos|bos|unk|sep|cls|mask|eod|image|video|decoder_start|forced_[be]os|audio)_token"
    r"(?:_ids?|_index)?"
    r"|(?:num_)?key_value_heads|num_key_value_(?:heads|groups)|(?:qk_)?key_(?:dim|size|head_dim|length)|d_key"
    r"|(?:prompt|text|image|video|answer|response|reward_fn|reward|label|input|output|source|target|content|sort|messages"
    r"|question|chosen|rejected|json|data|dataset|tools|index)_keys?"
)
_COUNT = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?(?:e[+-]?\d{1,2})?[kKmMbBtT]?")
_HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64})")
_HASHES = words_of(
    "commit sha sha1 sha256 md5 rev revision hash digest checksum git id uuid tag version head branch fingerprint etag"
)
"""Words of names that hold hashes, which look like keys."""
_LOGIN = "-u"
"""Behind it stands a user with a password, if there is a colon; of Python it is a switch."""
_NOTHING = frozenset(("", "none", "null", "true", "false", "auto", "~"))

_VALUE = r"(\"[^\"]{1,4000}\"?|'[^']{1,4000}'?|"
_SAID = (
    r"(?i)((?:token|key|secret|passw(?:or)?d|passphrase|credential|creds|auth|cookie|private|pwd|pw|webhook|pat|sas|jwt|pass)"
    r"[A-Za-z0-9_.-]{0,40})"
)
_ASSIGNED = re.compile(_SAID + r"([\"']?\s{0,4}(?:=>|[=:])\s{0,4})" + _VALUE + r"[^\s\"',;}&)]{1,4000})")
_OPTION = re.compile(_SAID + r"(\s{1,4})" + _VALUE + r"[^\s-][^\s]{0,4000})")
_BEFORE = re.compile(r"[A-Za-z0-9_.+-]{0,80}\Z")
"""How a name begins before the word by which it is found."""
_MOST_BEFORE = 80
_CAPITALS = re.compile(
    r"(?<![A-Za-z0-9])((?:[A-Z0-9]{1,40}_){0,4}"
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|[A-Z0-9]{1,40}_PW|API_?KEY|(?:ACCESS|SECRET)_KEY|CREDENTIALS?))"
    + r"(=)"
    + _VALUE
    + r"[^\s\"',;}&)]{1,4000})"
)
_SURELY = re.compile(
    r"(?i)(?<![a-z0-9])((?:[a-z0-9]{1,40}[_.-]){0,4}(?:password|passwd|passphrase|api_?key|(?:access|secret)_?key"
    r"|(?:access|auth|hub|hf)_?token|client_?secret))(=|[\"']: ?)"
    r"(?![A-Za-z_]\w{0,60}(?:[\[(]|\.[A-Za-z_]))" + _VALUE + r"[^\s\"',;}&)]{1,4000})"
)
"""Names that stand for nothing else, with a value behind them, which is no code that would get one."""
_HEXADECIMAL_KEY = re.compile(
    r"(?<![A-Za-z0-9])((?:[A-Z0-9]{1,40}_){0,4}(?:KEY|WANDB))(=)([\"']?[0-9a-fA-F]{32,128}[\"']?)(?![A-Za-z0-9])"
)
_LISTED = re.compile(
    r"(?<![A-Za-z0-9])((?:[a-z0-9]{1,40}_){0,4}(?:token|secret|password|api_key|access_key))( \.{2,100} )"
    + _VALUE
    + r"\S{1,4000})"
)
_SIGNS = (
    *("hf_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "sk-", "k_live_", "xox", "AIza", "nvapi-", "eyJ"),
    *("AKIA", "ASIA", "npm_", "pypi-", "dckr_", "SG.", "ya29.", "-----BEGIN ", "://", "earer ", "TOKEN=", "SECRET="),
    *("PASSW", "PASSP", "_PW=", "KEY=", "WANDB=", "CREDENTIAL", "ecret", "assw", "assphrase", "_key", "ignature="),
    *("_token", "token ..", "apikey", "apiKey", "api-key", "-Key", "Token", "uthorization", "hvs."),
    *program_secrets.SIGNS,
)
"""What stands in a record of a log that has to be looked at closer."""
_LOOKS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{12,}"
    r"|hf_[A-Za-z0-9]{8,}|api_org_[A-Za-z0-9]{8,}"
    r"|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}|glpat-[A-Za-z0-9_-]{8,}"
    r"|sk-[A-Za-z0-9_-]{16,}|[srp]k_(?:live|test)_[A-Za-z0-9]{8,}|rk_live_[A-Za-z0-9]{8,}"
    r"|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}"
    r"|AIza[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{8,}"
    r"|nvapi-[A-Za-z0-9_-]{8,}|npm_[A-Za-z0-9]{8,}|pypi-[A-Za-z0-9_-]{8,}|dop_v1_[a-f0-9]{8,}"
    r"|local-[a-f0-9]{40}|dckr_pat_[A-Za-z0-9_-]{8,}|SG\.[A-Za-z0-9_.-]{16,}"
    r"|eyJ[A-Za-z0-9_.-]{10,}|hvs\.[A-Za-z0-9_-]{16,}"
    r")"
)
_WEBHOOK = re.compile(
    r"((?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks|webhook\.office\.com"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook|chat\.googleapis\.com/v1/spaces)/"
    r"|api\.telegram\.org/bot)(?!\*)[^\s\"'<>]{1,1000}"
)
"""Addresses to which anybody who knows them may write."""
_BEARER = re.compile(r"(?i)\b(bearer|basic|apikey|token)[ \t]{1,4}[A-Za-z0-9+/_.=~-]{8,4096}")
_BEARER_IN_LOG = re.compile(
    r"(?i)\b(bearer|authorization[\"']?[:=][ \t]{0,4}[\"']?(?:basic|token|apikey)|x-api-key[\"']?[:=])[ \t]{1,4}"
    r"[A-Za-z0-9+/_.=~-]{8,4096}"
)
_PASSWORD = re.compile(r"(?<=://)[^/\s@:\"']{0,200}:[^\s\"']{1,4000}@")
_USER = re.compile(r"(?<=://)(?!\*\*\*@)[^/\s@\"']{1,4000}@")
_USER_IN_LOG = re.compile(r"(?<=://)(?=[^\s@]{0,400}\d)[A-Za-z0-9_.~-]{20,400}@")
"""A name of so many letters and digits is a token."""
_SIGNED = re.compile(
    r"(?i)([?&](?:sig|signature|sv|x-amz-[a-z-]{1,40}|x-goog-[a-z-]{1,40}|awsaccesskeyid|code|(?:access_|auth_)?token"
    r"|api_?key|password|secret)=)(?!\*)[^&\s\"']{1,4096}"
)


def names_secret(name: str) -> bool:
    """Whether what goes under a name is a secret, whatever it looks like. Each part of a dotted name counts."""
    return any(_names_secret(part) for part in re.split(r"[./\[\]]", name))


def _names_secret(part: str) -> bool:
    plain = part.lower().replace("-", "_").strip("_")
    if _HARMLESS.fullmatch(plain):
        return False
    words = {word.lower() for word in _WORD.findall(part)}
    return bool(words & (_ALWAYS | _MOSTLY)) or any(word in plain for word in ("passw", "secret", "apikey", "api_key"))


def _is_harmless(name: str, value: str) -> bool:
    """Whether a name only speaks of tokens or keys, since what it holds is a number, a switch or nothing."""
    words = {word.lower() for word in _WORD.findall(name)}
    return value.strip().lower() in _NOTHING or (not words & _ALWAYS and _COUNT.fullmatch(value.strip()) is not None)


def hidden_value(name: str, value: str, *, hashes: bool = False) -> tuple[str, int]:
    """The value of a name without secrets, and how many there were; ``hashes``: it may be a commit."""
    if names_secret(name) and not _is_harmless(name, value):
        return HIDDEN, 1
    if not hashes and _HEXADECIMAL.fullmatch(value.strip()) and not _names_hash(name):
        return HIDDEN, 1
    return hidden(value)


def _names_hash(name: str) -> bool:
    return not _HASHES.isdisjoint(word.lower() for word in _WORD.findall(name))


def hidden(text: str) -> tuple[str, int]:
    """The text without what looks like a secret or is said to be one in it, and how many there were."""
    text, count = _hidden_looks(text, _BEARER)
    # A user alone may be a token.
    text, users = _USER.subn(f"{HIDDEN}@", text)
    count += users
    assigned, behind = _Hider(option=False), _Hider(option=True)
    text = _OPTION.sub(behind, _ASSIGNED.sub(assigned, text))
    return text, count + assigned.count + behind.count


def hidden_in_log(text: str) -> tuple[str, int]:
    """The record of a log without what certainly is a secret, and how many there were; nearly all are left as they are.

    Lines are evidence, so what only may be one stays: of values by name only those of variables in capitals, and of
    arguments as Megatron and DeepSpeed list them, or as they are quoted.
    """
    if not any(map(text.__contains__, _SIGNS)):
        return text, 0
    told, count = _hidden_looks(text, _BEARER_IN_LOG)
    told, users = _USER_IN_LOG.subn(f"{HIDDEN}@", told)
    hider = _Hider(option=False)
    for pattern in (_CAPITALS, _SURELY, _LISTED):
        told = pattern.sub(hider, told)
    told, keys = _HEXADECIMAL_KEY.subn(rf"\g<1>\g<2>{HIDDEN}", told)
    return told, count + users + keys + hider.count


def _hidden_looks(text: str, bearer: re.Pattern[str]) -> tuple[str, int]:
    text, count = _without_pem(text)
    text, places = program_secrets.without(text, HIDDEN)
    count += places
    for pattern, instead in (
        (_PASSWORD, f"{HIDDEN}@"),
        (_SIGNED, rf"\g<1>{HIDDEN}"),
        (_WEBHOOK, rf"\g<1>{HIDDEN}"),
        (bearer, rf"\g<1> {HIDDEN}"),
        (_LOOKS, HIDDEN),
    ):
        text, more = pattern.subn(instead, text)
        count += more
    return text, count


def _without_pem(text: str) -> tuple[str, int]:
    """The text without keys and certificates in PEM's form, and how many there were."""
    count = 0
    while (begin := text.find("-----BEGIN ")) >= 0:
        end = text.find("-----END ", begin)
        closed = text.find("-----", end + 9) if end >= 0 else -1
        text = text[:begin] + HIDDEN + (text[closed + 5 :] if closed >= 0 else "")
        count += 1
    return text, count


class _Hider:
    """Puts the word in the place of values whose names say that they are secrets."""

    def __init__(self, *, option: bool) -> None:
        self._option = option
        self.count = 0

    def __call__(self, found: re.Match[str]) -> str:
        end, between, value = found.groups()
        name = self._begins(found) + end
        bare = value.strip("\"'")
        if self._option and not name.startswith("-"):
            return found.group()
        if bare == HIDDEN or not names_secret(name.lstrip("-+")) or _is_harmless(name, bare):
            return found.group()
        self.count += 1
        return f"{end}{between}{HIDDEN}"

    def _begins(self, found: re.Match[str]) -> str:
        before = _BEFORE.search(found.string[max(found.start() - _MOST_BEFORE, 0) : found.start()])
        return before[0] if before else ""


def hidden_words(words: list[str]) -> tuple[list[str], int]:
    """The words of a command without secrets, and how many there were: a name may stand in one, its value behind."""
    found: list[str] = []
    count = 0
    expected = ""
    by_place = dict(program_secrets.places(words))
    for at, word in enumerate(words):
        if at in by_place:
            told, more = word[: by_place[at]] + HIDDEN, 1
        elif expected == _LOGIN:
            told, more = (HIDDEN, 1) if ":" in word else _hidden_word(word)
        elif expected and not word.startswith("--"):
            told, more = hidden_value(expected, word)
        else:
            told, more = _hidden_word(word)
        expected = "" if "=" in word or not word.startswith("-") else _expects(word)
        found.append(told)
        count += more
    return found, count


def _hidden_word(word: str) -> tuple[str, int]:
    name, equals, value = word.partition("=")
    if equals and re.fullmatch(r"[-+~A-Za-z0-9_./]{1,200}", name):
        told, more = hidden_value(name.lstrip("-+~"), value)
        return f"{name}={told}", more
    return hidden(word)


def _expects(word: str) -> str:
    """The name under which the word behind an option goes, if that may be a secret."""
    name = word.lstrip("-")
    if word in ("-u", "--user"):
        return _LOGIN
    return name if names_secret(name) else ""
