"""Secrets are found by their names and by their looks; what only sounds like one stays."""

from __future__ import annotations

import pytest

from producers.hiding import hidden, hidden_in_log, hidden_value, hidden_words, names_secret
from schemas.jobs import HIDDEN


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
            "DB_PW",
            "SLACK_WEBHOOK_URL",
            "alertWebhook",
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


KEY = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("WANDB", KEY, HIDDEN),
        ("tracker", KEY[:32], HIDDEN),
        ("commit", KEY, KEY),
        ("dataset_sha1", KEY, KEY),
        ("seed", "12345678", "12345678"),
    ],
)
def test_a_hexadecimal_word_is_a_key_unless_its_name_says_that_it_is_a_hash(name: str, value: str, told: str) -> None:
    assert hidden_value(name, value)[0] == told
    assert hidden_value(name, value, hashes=True)[0] == value


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
        ("https://hooks.slack.com/services/T0/B0/abc", "https://hooks.slack.com/services/***"),
        ("sshpass -p 'a b' ssh x", "sshpass -p *** ssh x"),
        ("redis://:pw@host", "redis://***@host"),
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
        (["sshpass", "-p", "x", "ssh", "-p", "22", "h"], ["sshpass", "-p", "***", "ssh", "-p", "22", "h"]),
        (["sshpass", "-px", "ssh"], ["sshpass", "-p***", "ssh"]),
        (["mysql", "-u", "me", "-px", "db"], ["mysql", "-u", "me", "-p***", "db"]),
        (["mysql", "-p", "db"], ["mysql", "-p", "db"]),
        (
            ["/usr/bin/docker", "login", "-u", "me", "-p", "x", "r.io"],
            ["/usr/bin/docker", "login", "-u", "me", "-p", "***", "r.io"],
        ),
        (["docker", "run", "-p", "80:80", "x"], ["docker", "run", "-p", "80:80", "x"]),
        (["wandb", "login", "--relogin", KEY], ["wandb", "login", "--relogin", "***"]),
        (["bash", "-c", f"wandb login {KEY}; train.py -p 3"], ["bash", "-c", "wandb login ***; train.py -p 3"]),
        (["redis-cli", "-a", "x", "|", "grep", "-a", "y"], ["redis-cli", "-a", "***", "|", "grep", "-a", "y"]),
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
        ("+ sshpass -p hunter2 ssh node1", "+ sshpass -p *** ssh node1"),
        ("+ mysql -u me -phunter2 db", "+ mysql -u me -p*** db"),
        ("+ docker login -u me -p hunter2 r.io && x", "+ docker login -u me -p *** r.io && x"),
        (f"+ wandb login {KEY}", "+ wandb login ***"),
        (f"WANDB={KEY}", "WANDB=***"),
        (f"cloning https://{KEY[:24]}@github.com/x/y", "cloning https://***@github.com/x/y"),
        ("GET redis://:pw@host/0", "GET redis://***@host/0"),
        ("POST https://hooks.slack.com/services/T0/B0/abc: 500", "POST https://hooks.slack.com/services/*** 500"),
        ("headers: {'Authorization': 'Bearer abcdefghijk'}", "headers: {'Authorization': 'Bearer ***'}"),
        ("authorization: Basic dXNlcjpwdw==", "authorization: Basic ***"),
        ("{'wandb_api_key': 'abc', 'lr': 3}", "{'wandb_api_key': ***, 'lr': 3}"),
        ("connect(host=db, password=hunter2)", "connect(host=db, password=***)"),
        ("DB_PW=hunter2", "DB_PW=***"),
        ("GET https://h/x?access_token=abc&n=1", "GET https://h/x?access_token=***&n=1"),
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
        *(
            "run wandb login to authenticate, see https://wandb.ai/authorize",
            "api_key=os.environ['X'], password=self.password",
            "see https://pytorch.org/docs for basic training and token embeddings",
            "clone ssh://git@github.com/x at 0123456789abcdef0123456789abcdef01234567",
            "docker run -p 8080:80 x",
            "the key_size=128 and pad_token_id=0",
        ),
        *("step 1 token accuracy: 0.5", "secret: x", "password was wrong", "init_method tcp://10.0.0.1:29500 rank 3"),
    ],
)
def test_evidence_stays_as_it_is(text: str) -> None:
    assert hidden_in_log(text) == (text, 0)
