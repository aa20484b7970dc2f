"""Secrets are found by their names and by their looks; what only sounds like one stays."""

from __future__ import annotations

import pytest

from producers.hiding import HIDDEN, hidden, hidden_in_log, hidden_value, hidden_words, names_secret


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "WANDB_API_KEY", "wandb-key", "apiKey", "AWS_SECRET_ACCESS_KEY", "DB_PASSWD", "my.password"),
        *(
            "PGPASSWORD",
            "session_cookie",
            "SSH_PRIVATE",
            "credentials",
            "auth.user",
            "MY_PAT",
            "API_TOKENS",
            "secretName",
        ),
    ],
)
def test_a_name_of_a_secret_is_known(name: str) -> None:
    assert names_secret(name)
    assert hidden_value(name, "hunter2x") == (HIDDEN, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("tokenizer", "bpe"), ("pad_token_id", "0"), ("eos_token", "</s>"), ("num_key_value_heads", "8")),
        *(("max_tokens", "4096"), ("train_tokens", "1.5T"), ("data.prompt_key", "prompt"), ("monkey", "x")),
        *(("author", "x"), ("NCCL_ALGO", "Tree"), ("lr", "3e-4"), ("use_auth_token", "false"), ("hub_token", "None")),
    ],
)
def test_what_only_sounds_like_a_secret_stays(name: str, value: str) -> None:
    assert hidden_value(name, value) == (value, 0)


SECRETS = [
    "AKIAABCDEFGHIJKLMNOP",
    "hf_abcdefghijklmnopqrst",
    "ghp_abcdefghijklmnopqrst0123",
    "github_pat_11AAAA_bbbbbbbbbb",
    "glpat-abcdefghij_klmnop",
    "sk-abcdefghijklmnopqrstuvwx",
    "xoxb-123456789-abcdefghij",
    "nvapi-abcdefghijklmnop",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "AIzaSyAbcdefghijklmnopqrstuvw",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "x {} y", "--flag={}", "'{}'", "https://host/{}", "a={},b"])
def test_what_looks_like_a_secret_is_hidden_wherever_it_stands(secret: str, around: str) -> None:
    told, count = hidden(around.format(secret))
    assert secret not in told
    assert count >= 1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgres://bob:pw@host/db", "postgres://***@host/db"),
        ("s3://u:p/w@ss@host/b", "s3://***@host/b"),
        ("a s3://u:p@host/b https://secret@host/x", "a s3://***@host/b https://***@host/x"),
        ("git+https://github.com/x/y@4f0c2d9e", "git+https://github.com/x/y@4f0c2d9e"),
        ("https://b/x?sig=abc%2F&part=2", "https://b/x?sig=***&part=2"),
        ("Authorization: Bearer abcdefghijk", "Authorization: *** ***"),
        ('{"api_key": "a b", "lr": 3}', '{"api_key": ***, "lr": 3}'),
        ("run --wandb-key abc --lr 3", "run --wandb-key *** --lr 3"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- b", "a *** b"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc", "***"),
        ("max_tokens=4096 tokenizer=bpe", "max_tokens=4096 tokenizer=bpe"),
    ],
)
def test_of_a_text_only_the_secret_goes(text: str, left: str) -> None:
    assert hidden(text)[0] == left


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["train.py", "--wandb-key", "abc", "--lr=3"], ["train.py", "--wandb-key", "***", "--lr=3"]),
        (["--api_key=x", "HF_TOKEN=foo"], ["--api_key=***", "HF_TOKEN=***"]),
        (["python", "-u", "train.py"], ["python", "-u", "train.py"]),
        (["curl", "-u", "bob:pw"], ["curl", "-u", "***"]),
        (["--token", "--next", "x"], ["--token", "--next", "x"]),
        (["+a.b.password=z", "a.lr=1"], ["+a.b.password=***", "a.lr=1"]),
    ],
)
def test_of_a_command_only_the_secret_goes(words: list[str], left: list[str]) -> None:
    assert hidden_words(words)[0] == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("connecting to s3://key:sekret@host/b", "connecting to s3://***@host/b"),
        ("export HF_TOKEN=abcdefgh", "export HF_TOKEN=***"),
        ("  wandb_api_key ........ abcdefgh", "  wandb_api_key ........ ***"),
        ("  wandb_api_key ........ None", "  wandb_api_key ........ None"),
        ("login with hf_abcdefghijklmn failed", "login with *** failed"),
    ],
)
def test_of_a_line_of_a_log_only_what_certainly_is_a_secret_goes(text: str, left: str) -> None:
    assert hidden_in_log(text) == (left, int(text != left))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "KeyError: 'token: x'",
            "MAX_TOKEN=4096",
            "tokens per second: 1234",
            "tcp://node0:29500",
            "task-abcdefghijklmnopq",
        ),
        *("step 1 token accuracy: 0.5", "secret: x", "password was wrong", "init_method tcp://10.0.0.1:29500 rank 3"),
    ],
)
def test_evidence_stays_as_it_is(text: str) -> None:
    assert hidden_in_log(text) == (text, 0)
