"""Makes docs/configuration.md and the commented gpuhealth.yaml from config_keys.py and config_defaults.py.

    python -m slurm_gpuhealth.config_docs [--check]
"""
from __future__ import annotations

import json
import os
import sys
import textwrap

from slurm_gpuhealth.catalogue import generate
from slurm_gpuhealth.config_defaults import DEFAULTS
from slurm_gpuhealth.config_keys import CODE, LINK, MODES, MOUNT, OVERLAY, PLUGIN, TOP, XID
from slurm_gpuhealth.config_kinds import Keys

HERE = os.path.dirname(os.path.abspath(__file__))

# Examples of what is empty by default. A test reads each.
EXAMPLES = {
    "modes": "modes:\n  - {nodes: 'gpu[001-004]', mode: full}\n  - {partitions: [debug], mode: drain}\n",
    "mounts": "mounts:\n  - {path: /home, type: [nfs, nfs4]}\n  - {path: /scratch, type: [lustre], writable: true}\n",
    "codes": "codes:\n  GH-PCIE-GEN: {severity: fatal}\n  GH-XID48: {job_action: requeue-now}\n",
    "sxid": "sxid:\n  11004: {action: note}\n",
    "xid": "xid:\n  109: {action: drain}\n  119: {action: drain, job_action: requeue-now}\n",
    "links": "links:\n  - {name: 'mlx5_*/1', speed: 400}\n  - {name: bond0}\n",
    "services": "services: [nvidia-persistenced, munge]\n",
    "plugins": "plugins:\n  - name: scratch-quota\n    command: [/usr/local/sbin/check_quota, --warn, '90']\n"
               "    phases: [healthcheck]\n    deadline: 5\n    fatal: false\n",
    "nodes": "nodes:\n  - match: login[1-2]\n    set: {expected_gpus: 0}\n  - match: gpu[101-132]\n"
             "    set: {expected_gpus: 4, deadlines: {nvml: 12}}\n",
}

ENTRIES = {"modes": MODES, "mounts": MOUNT, "links": LINK, "plugins": PLUGIN, "codes": CODE, "xid": XID,
           "sxid": XID, "nodes": OVERLAY}

YAML_HEAD = """\
## slurm-gpuhealth: configuration of this node and, through overlays, of others.
##
## It starts in mode observe: faults are found and recorded, nothing is done to nodes or jobs. How to go on:
##   1. some days with observe: `gpuhealth events`, `gpuhealth report` show what would have been done
##   2. mode drain on a few nodes (modes: below), then on all: nodes with a fault are drained
##   3. mode full: jobs are requeued as well, and resume from their last verified checkpoint
## After each change: `gpuhealth config check` (finds mistakes with their line), `gpuhealth config show`.
## The next health check takes the change over. To stop everything at once: touch /etc/slurm/gpuhealth.off
##
## Lines with one # are the built-in values: take the # away to change one (and that of the section above it).
"""

DOC_HEAD = """\
# Configuration

Made from `slurm_gpuhealth/config_keys.py` and `config_defaults.py` by `python -m slurm_gpuhealth.config_docs`.

The file is /etc/slurm/gpuhealth.yaml. It belongs to root and nobody else may write it. An unknown key, a wrong
type, a key that is there twice, an anchor or an alias is an error with file and line, and nothing of the file is
taken over then; the last good configuration stays in force (`GH-CONFIG`).

- `gpuhealth config check` reads it as the hooks would, for all nodes, and names each mistake.
- `gpuhealth config show [--node NODE]` prints what holds, with everything that the file does not say.
- The hooks read a compiled copy, /var/lib/gpuhealth/config.json. A cold command or the next health check renews
  it; until then the hooks go on with the old one and say so.

Times are seconds unless said otherwise. The file may leave out any key.
"""


def _inline(value):
    """A value as YAML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[%s]" % ", ".join(_inline(item) for item in value)
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (key, _inline(item)) for key, item in value.items())
    return '""' if value == "" else str(value)


def _comment(text, prefix):
    return textwrap.wrap(text, 108 - len(prefix), initial_indent=prefix, subsequent_indent=prefix)


def render_yaml():
    """Text of the commented gpuhealth.yaml. With one "#" taken from each line it says every default."""
    lines = YAML_HEAD.splitlines()
    for key in TOP.keys:
        lines.append("")
        lines += _comment("%s (%s)" % (key.doc, key.kind.say()) if not isinstance(key.kind, Keys) else key.doc, "## ")
        if key.name in EXAMPLES:
            lines.append("## Example:")
            lines += ["##   " + line for line in EXAMPLES[key.name].splitlines()]
        default = DEFAULTS[key.name]
        if isinstance(key.kind, Keys):
            lines.append("#%s:" % key.name)
            for inner in key.kind.keys:
                lines += _comment("%s (%s)" % (inner.doc, inner.kind.say()), "#  # ")
                lines.append("#  %s: %s" % (inner.name, _inline(default[inner.name])))
        else:
            # The one value that an admin will change is there without a "#".
            lines.append("%s%s: %s" % ("" if key.name == "mode" else "#", key.name, _inline(default)))
    return "\n".join(lines) + "\n"


def _rows(keys, defaults):
    rows = ["| key | type | default | what |", "|---|---|---|---|"]
    for key in keys:
        default = "`%s`" % json.dumps(defaults[key.name]) if key.name in defaults else ""
        rows.append("| `%s` | %s | %s | %s |" % (key.name, key.kind.say().replace("|", "\\|"), default, key.doc))
    return rows


def render_docs():
    """Text of docs/configuration.md."""
    plain = [key for key in TOP.keys if not isinstance(key.kind, Keys) and key.name not in ENTRIES]
    lines = DOC_HEAD.splitlines() + ["", "## Single values", ""] + _rows(plain, DEFAULTS)
    for key in TOP.keys:
        if isinstance(key.kind, Keys):
            lines += ["", "## %s" % key.name, "", key.doc, ""] + _rows(key.kind.keys, DEFAULTS[key.name])
        elif key.name in ENTRIES:
            entry = ENTRIES[key.name]
            lines += ["", "## %s" % key.name, "", key.doc, ""]
            if key.name == "nodes":
                lines += ["Each entry: `match`, a host list, and `set`, any of the keys of this page but `nodes`."]
            else:
                lines += _rows(entry.keys, entry.defaults)
            lines += ["", "```yaml"] + EXAMPLES[key.name].splitlines() + ["```"]
    return "\n".join(lines) + "\n"


def outputs():
    """{path: text} of the generated files; the docs page only where the source tree is there."""
    files = {os.path.join(HERE, "install_data", "gpuhealth.yaml"): render_yaml()}
    if os.path.isdir(generate.DOCS):
        files[os.path.join(generate.DOCS, "configuration.md")] = render_docs()
    return files


if __name__ == "__main__":
    sys.exit(generate.main(files=outputs()))
