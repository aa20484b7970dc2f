"""Planted secrets never stand in what is told of a job, whatever form they were written in."""

from __future__ import annotations

import json
import string
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from producers import job_files
from producers.job_lines import told_by
from producers.scan import Source
from schemas import codec
from schemas.events import Batch
from schemas.identity import Identity
from streams.job_description import described_by

TEXT = st.text(string.ascii_letters + string.digits + "+", min_size=12, max_size=40).map(lambda text: f"zQ{text}")
NAMES = st.sampled_from(
    [
        *(
            "HF_TOKEN",
            "WANDB_API_KEY",
            "api_key",
            "DB_PASSWORD",
            "client_secret",
            "AUTH_COOKIE",
            "aws_secret_access_key",
        ),
        *("SSH_PRIVATE_KEY", "registry_credentials", "GITHUB_PAT", "PGPASSWD", "wandb_key", "accessToken"),
    ]
)
LOOKS = st.sampled_from(["hf_{}", "ghp_{}", "sk-{}aaaaaaaa", "AKIA{}", "glpat-{}", "eyJ{}.{}.x", "https://u:{}@host/x"])
FORMS = [
    *(
        "A_A=1\nB_B=2\nC_C=3\nD_D=4\nE_E=5\n{name}={secret}\n",
        "export A_A=1\nexport B_B=2\nexport C_C=1\nexport {name}='{secret}'\nexport D_D=3\n",
        "#!/bin/bash\nexport {name}={secret}\n{name}={secret} torchrun t.py --{name} {secret} --x={secret_look}\n",
        "#!/bin/bash\nX={secret}\ntorchrun t.py --{name}=$X a.{name}=$X --url {secret_look} --lr 1 \\\n"
        ' --k \'{{"{name}": "{secret}"}}\'\n',
        "lr: 1\nbf16: true\nnum_layers: 2\n{name}: {secret}\ndeep: {{{name}: {{a: {secret}}}}}\nurl: '{secret_look}'\n",
        "lr: 1\nbf16: true\nnum_layers: 2\n{name}: [{secret}, {secret}]\nargs: --{name}={secret}\n",
        '[a]\nlr = 1\nbf16 = true\nnum_layers = 2\n{name} = "{secret}"\n',
        "------------ arguments ------------\n  lr .... 1\n  {name} .... {secret}\n  u .... {secret_look}\n",
        "TrainingArguments(\n{name}={secret},\nurl={secret_look},\n)\n",
        "Running with args: {{'lr': 1, 'bf16': 1, 'num_layers': 2, '{name}': '{secret}', 'u': '{secret_look}'}}\n",
        "+ torchrun t.py --{name} {secret} {secret_look}\n+ export {name}={secret}\n",
        "Environment: {name}={secret}\n+ export A_B={secret_look}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {{labels: {{{name}: {secret}}}}}\n"
        "spec: {{containers: [{{command: [torchrun, t.py,"
        " --{name}, {secret}], env: [{{name: {name}, value: {secret}}}]}}]}}\n",
        "a==1\nb==2\nc==3\nd @ git+https://u:{secret}@host/x\n",
    )
]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FORMS), NAMES, TEXT, LOOKS)
def test_no_secret_is_told(form: str, name: str, secret: str, look: str) -> None:
    plain = secret.replace("+", "a")
    plain = plain.upper() if look.startswith("AKIA") else plain
    text = form.format(name=name, secret=secret, secret_look=look.format(plain, "b"))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_text(text)
        found = job_files.read(Source(path=path, file="x", size=path.stat().st_size))
    lines = told_by(text.split("\n"), "x")
    for facts in (found, lines.facts if lines is not None else None):
        if facts is None:
            continue
        event = facts.event(1)
        batch = Batch(producer="p", boot="b", seq=0, identity=Identity(job="j"), events=[event])
        described = described_by(event)
        for record in (codec.encode(batch).decode(), json.dumps([described.facets, described.command])):
            assert secret not in record
            assert plain not in record


def test_every_form_tells_something() -> None:
    """Else nothing would be shown by a secret that is not there."""
    for form in FORMS:
        text = form.format(name="api_key", secret="zQsecretsecret", secret_look="hf_secretsecret")
        with TemporaryDirectory() as folder:
            path = Path(folder) / "x"
            path.write_text(text)
            found = job_files.read(Source(path=path, file="x", size=path.stat().st_size))
        assert found is not None or told_by(text.split("\n"), "x") is not None, form
