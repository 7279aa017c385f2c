"""The parts of the demo that need no cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from slurm_gpuhealth.parse import comment

TESTBED = Path(__file__).resolve().parents[2] / "containers" / "slurm-testbed"
sys.path.insert(0, str(TESTBED))
demo = pytest.importorskip("testbed_lib.demo", reason="needs the docker package")


def test_output_is_plain_ascii() -> None:
    """What a command prints can neither move the cursor nor hide behind another alphabet."""
    assert demo.printable("a\tb \x1b[2J\r \u202e") == "a       b \\x1b[2J\\r \\u202e"


def test_job_declares_its_checkpoints() -> None:
    """The batch script that is shown says what the product reads: one token, the folder it saves to."""
    script = demo.JOB.format(name="train", gpus=8, folder=demo.CKPT, options="")
    lines = [line for line in script.splitlines() if "--comment=" in line]
    token = comment.parse(lines[0].split('"')[1])
    assert isinstance(token, comment.Token) and token.ckpt == demo.CKPT
    assert f"--save-to {demo.CKPT} " in script


def test_there_is_no_colour_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A log of the demo has no escape sequences."""
    page = demo.Page()
    page.heading("A")
    page.command("alice", "ctl", "squeue")
    page.seen("B")
    assert capsys.readouterr().out == "\n1. A  (0 s)\n\nalice@ctl $ squeue\n\nok - B\n"
