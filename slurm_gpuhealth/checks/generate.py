"""Make docs/checks.md from the checks' docstrings: `python -m slurm_gpuhealth.checks.generate [--check]`. Cold."""
from __future__ import annotations

import ast
import json
import os
import sys

from slurm_gpuhealth import checks, prometheus

_HEAD = """\
# Checks

Generated from the checks' docstrings by `python -m slurm_gpuhealth.checks.generate`: do not edit.

A check looks at the facts of one round and says what is wrong. Its outcome is `ok`, `bad`, `unknown` (it could not
look, which is never ok) or `skipped` (not asked: switched off under `checks: disabled:`, or not part of the phase).
What a code means and what to do about it is in [codes.md](codes.md).

| check | runs in | on by default |
|---|---|---|
"""

_TAIL = """\
## One fault, one finding

A GPU that falls off the bus is seen by three checks: as Xid 79, as lost or missing in NVML, and in the number of GPUs.
The findings are merged: the strongest code stays, what the others saw is in its text and in `data.merged`.
What could not be read of a GPU is one finding, with the list of fields.

## `gpuhealth check --json`

One JSON document; `v` grows when a key changes its meaning or goes away.

| key | meaning |
|---|---|
| `v` | 1 |
| `node`, `time`, `boot_id`, `phase` | which node, seconds since the epoch, which boot, which phase's checks ran |
| `outcome`, `exit_code` | `ok` 0, `warning` 1, `fatal` 2, `unknown` 3 |
| `gpus` | `expected` (a number, or `{"unknown": reason}`), its `origin` (config, gres.conf, slurm.conf, most seen), \
`found` |
| `findings` | worst first: `code`, `severity` (note, warning, unknown, fatal), `subject`, `seen`, `expected`, \
`since`, `confidence`, `data` |
| `findings[].subject` | `kind` (gpu, gpus, mount, part, node), `index` (Slurm's), `uuid`, `bdf`, \
`name` (of a mount or a part) |
| `checks` | each check's `name`, `outcome` and the `codes` it gave before merging |
| `sources` | how reading went: `name`, `outcome` (ok, late, hung, failed, skipped), `detail`, `rounds` late in a row |
| `driver`, `cuda` | versions, or `{"unknown": reason}` |
| `facts` | with `--facts`: all that was read |

Severities are the site's (`codes:` in the configuration); an acknowledged fault is a note.

## `gpuhealth check --nagios`

One line, `GPUHEALTH OK|WARNING|CRITICAL|UNKNOWN: worst finding (+N more) | gpus=8 fatal=0 unknown=0 warning=0 note=0`,
and the exit code 0 to 3 that belongs to the word.

## Prometheus

`gpuhealth check --prometheus FILE` (`-` prints), and the health check with `prometheus: FILE` in the configuration,
write a file for node_exporter's textfile collector (`--collector.textfile.directory`), in one step and readable by all.
It has no time stamps: the age of what it says is `time() - gpuhealth_last_round_timestamp_seconds`. What could not be
read has no sample. GPUs have the labels `gpu` (Slurm's index), `uuid` and `bdf`. Alert on `gpuhealth_outcome > 0`, on
`gpuhealth_finding{severity="fatal"}`, and on a file that grows old.

| metric | type | |
|---|---|---|
"""


def text():
    """The whole page."""
    rows, sections = [], []
    for name, row in checks.CHECKS.items():
        rows.append("| [%s](#%s) | %s | %s |\n" % (name, name, ", ".join(row.phases), "yes" if row.default else "no"))
        sections.append("## %s\n\n%s\n%s" % (name, docstring(row.module), _limits(row.module, name)))
    return _HEAD + "".join(rows) + "\n" + "\n".join(sections) + "\n" + _TAIL + "".join(
        "| `%s` | %s | %s |\n" % (name, kind, about) for name, (kind, about) in prometheus.METRICS.items())


def _limits(module, name):
    """A check's limits as a table, "" where it has none."""
    limits = getattr(__import__(checks.__name__ + "." + module, fromlist=("check",)), "LIMITS", {})
    if not limits:
        return ""
    return "\n| `limits: %s:` | default | what |\n|---|---|---|\n" % name + "".join(
        "| `%s` | `%s` | %s |\n" % (key, json.dumps(default), text) for key, (default, text) in limits.items())


def docstring(module):
    """The docstring of a check's module, read from its source."""
    path = os.path.join(os.path.dirname(checks.__file__), module + ".py")
    with open(path, encoding="utf-8") as handle:
        return ast.get_docstring(ast.parse(handle.read())) or ""


def page():
    """Path of the page in a source tree."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(root, "docs", "checks.md")


def main(arguments):
    """Write the page, or with --check say whether it is fresh (exit 1 when not)."""
    path, new = page(), text()
    try:
        with open(path, encoding="utf-8") as handle:
            old = handle.read()
    except FileNotFoundError:
        old = ""
    if "--check" in arguments:
        if old != new:
            print("%s is out of date: run python -m slurm_gpuhealth.checks.generate" % path, file=sys.stderr)
        return int(old != new)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
