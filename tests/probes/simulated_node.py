"""Whole rounds on a node with the test cluster's simulated NVML: gather (the real nvidia-ml-py, in its child), all
checks that need nothing but NVML and the kernel log, and what the node remembers from round to round.

What the simulation answers is set in a state file (containers/slurm-testbed/nvml/README.md).
"""
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, "containers", "slurm-testbed", "nvml")

Round = namedtuple("Round", "findings fatal outcomes gpus")
Round.__doc__ = """findings: {(code, subject): (severity, seen)}. fatal: sorted codes that drain.
outcomes: {check: outcome}. gpus: the GPUs as plain dicts."""

SCRIPT = """
import json, os, sys, time, types
from slurm_gpuhealth import checks, gather, memory, model, render
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.state import State

spec = json.load(sys.stdin)
cfg = overlay(DEFAULTS, spec["cfg"])
cfg["kernel_log"] = os.path.join(spec["folder"], "kmsg")
open(cfg["kernel_log"], "w").close()
# What this machine has of mounts, services and network says nothing about the simulated GPUs.
cfg["checks"]["disabled"] += [name for name, row in checks.CHECKS.items() if row.needs or name == "kernel_log"]
state, remembered = State(spec["folder"]), {}
expected = F.Expected(spec["gpus"], "config")
for number, step in enumerate(spec["rounds"]):
    with open(os.environ["GPUSIM_STATE"] + ".new", "w") as handle:
        handle.write("".join(line + "\\n" for line in step["lines"]))
    os.rename(handle.name, os.environ["GPUSIM_STATE"])
    now = 1796040000.0 + 300 * number
    about = {"boot_id": "%032d" % step.get("boot", 0), "time": now, "uptime": step.get("uptime", 86400.0),
             "kernel": "6.1", "hostname": "n1"}
    gather.node.read_node = lambda root, about=about: about
    phase = step.get("phase", "healthcheck")
    gathered = gather.gather_facts(cfg, phase, None, "", time.monotonic() + 30, state, remembered, "n1", expected)
    facts = gathered.facts
    if "services" in step:
        facts = facts._replace(services=F.from_plain({"services": step["services"]}).services)
    results = checks.run_checks(facts, cfg, phase)
    merged = checks.merge(results)
    ctx = types.SimpleNamespace(woken=False, facts=facts, memory=remembered, state=state, phase=phase,
                                gathered=gathered, findings=merged,
                                seen=[one for result in results for one in result.findings])
    remembered = json.loads(json.dumps(memory.merged(ctx)))
    print(json.dumps({
        "findings": [[one.code, render.subject(one.subject), one.severity, one.seen] for one in merged],
        "outcomes": {result.name: result.outcome for result in results},
        "gpus": F.to_plain(facts.gpus)}), flush=True)
"""


@functools.cache
def built():
    """Folder with the simulated libnvidia-ml.so.1 and, under old/, that of an old driver."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("no C compiler or no make")
    out = tempfile.mkdtemp(prefix="nvml-")
    done = subprocess.run(["make", "-C", SOURCE, "OUT=%s" % out, "CC=cc", "CFLAGS=-O1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    os.mkdir(os.path.join(out, "old"))
    os.symlink(os.path.join(out, "libnvidia-ml-old.so.1"), os.path.join(out, "old", "libnvidia-ml.so.1"))
    return out


@pytest.fixture(scope="session")
def library():
    """The folder of `built`, removed at the end."""
    out = built()
    yield out
    shutil.rmtree(out, ignore_errors=True)
    built.cache_clear()


@pytest.fixture
def rounds(library, tmp_path):
    """Call with one list of state lines (or dict with "lines" and more) for each round: list of Round."""
    def run(*steps, gpus=8, cfg=None, old=False):
        steps = [step if isinstance(step, dict) else {"lines": list(step)} for step in steps]
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(library, "old") if old else library, PYTHONPATH=ROOT,
                   GPUSIM_STATE=str(tmp_path / "state"))
        spec = {"folder": str(tmp_path), "cfg": cfg or {}, "gpus": gpus, "rounds": steps}
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, input=json.dumps(spec), capture_output=True,
                              text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        return [Round({(code, subject): (severity, seen) for code, subject, severity, seen in answer["findings"]},
                      sorted(code for code, _, severity, _ in answer["findings"] if severity == "fatal"),
                      answer["outcomes"], answer["gpus"]) for answer in answers]
    return run
