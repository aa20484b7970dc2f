"""Chatter: lines that one rank or the control plane prints for all."""

from __future__ import annotations

import pytest

from streams.lines.chatter import chatter_of
from streams.lines.facts import facts_of
from streams.lines.signature import fold

KINDS = [
    ("Epoch 0:   6%|▋    | 32040/500150 [6:28:43<94:39:17,  1.37it/s, loss=2.6]", "progress"),
    ("100%|██████████| 12/12 [00:10<00:00,  1.18it/s]", "progress"),
    ("Loading checkpoint shards:  50%|█████     | 1/2 [00:03<00:03,  3.12s/it]", "progress"),
    ("1024it [00:12, 85.2it/s]", "progress"),
    ("Working... ━━━━━━━━━━━━━━━━╸━━━━━━━  42% 0:00:12", "progress"),
    ('INFO:     127.0.0.1:54321 - "POST /v1/completions HTTP/1.1" 200 OK', "http"),
    ('10.0.3.7 - - [29/Nov/2026 18:00:01] "GET /metrics HTTP/1.1" 200 -', "http"),
    (
        '2026-11-29 18:00:01,123 DEBUG https://huggingface.co:443 "HEAD /api/models/x/config.json HTTP/1.1" 200 0',
        "http",
    ),
    ('[rank0]: HTTP Request: GET http://rollout-3:8000/health "HTTP/1.1 200 OK"', "http"),
    ("[rank 3] saving checkpoint at iteration    1000 to /ckpt in torch_dist format", "checkpoint"),
    ("  successfully saved checkpoint from iteration    1000 to /ckpt [ t 1/1, p 1/1 ]", "checkpoint"),
    ("writing checkpoint metadata to /ckpt/iter_0001000/.metadata", "checkpoint"),
    ("wrote 14 entries of metadata for the checkpoint", "checkpoint"),
    ("2026-11-29 18:00:01,123 [INFO] wrote /ckpt/iter_0001000/__3_0.distcp (1.2 GB)", "checkpoint"),
    ("[Rank 0] zero checkpoint saved /ckpt/global_step10/mp_rank_00_optim_states.pt", "checkpoint"),
    ("net_ratelimit: 112 callbacks suppressed", "limited"),
    ("systemd-journald[412]: Suppressed 1841 messages from system.slice/train.service", "limited"),
    ("last message repeated 12 times", "limited"),
]
PLAIN = [
    "2026-11-29 18:11:58,969 [INFO] [rank 1] trainer: step 1 timers (ms): data 73.6 forward 140.5",
    "iteration 12/ 500 | elapsed time per iteration (ms): 1000.3 | lm loss: 9.1E-02 |",
    "checkpoint interval is 1000",
    " validation loss at iteration 1000 | lm loss value: 2.1E+00 | lm loss PPL: 8.2E+00 | ",
    "WARNING shard 00412: read retry 21 after 30 s: Connection timed out",
    "requests.exceptions.HTTPError: 503 Server Error for url: http://shards/9",
    "GET from queue took 3.2 s",
    "suppressed warnings are shown once",
    "utilisation 97% | temperature 61",
    "",
]


@pytest.mark.parametrize(("line", "kind"), KINDS)
def test_chatter_is_told_by_the_line_and_by_what_is_left_of_it_without_its_numbers(line: str, kind: str) -> None:
    assert (chatter_of(line), chatter_of(fold(line)), facts_of(line).chatter) == (kind, kind, kind)


@pytest.mark.parametrize("line", PLAIN)
def test_what_a_rank_says_of_itself_is_none(line: str) -> None:
    assert (chatter_of(line), chatter_of(fold(line)), facts_of(line).chatter) == ("", "", "")
