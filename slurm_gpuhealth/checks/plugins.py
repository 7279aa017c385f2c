"""What the site's own checks say (`plugins:` in the configuration, docs/plugins.md).

- Critical: `GH-PLUGIN` with the plug-in's name, a fault; with `fatal: false` a warning. Warning: a warning.
- Did not answer by its deadline: `GH-PLUGIN-LATE`, a warning, however often.
- Could not be run, is not root's own, ended with a code above 3, gave an answer that is not understood, or says itself
  that it could not look: `GH-PLUGIN-FAIL`.

A finding is about what the plug-in names (a GPU, a mount's path, a part of the node), else about the plug-in itself,
which is the node.
Unknown: a plug-in said nothing that can be used, or was not run.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, subject_of
from slurm_gpuhealth.model import FATAL, MANUAL, WARNING, Subject

POLICY = {"plugins": "plugins"}

_OK, _WARNING, _CRITICAL, _UNKNOWN = 0, 1, 2, 3


def check(facts, limits):
    """Findings of the plug-ins that belong to the phase. limits: plugins (the configuration's list)."""
    wanted = {one["name"]: one for one in limits["plugins"] or ()
              if facts.phase in one["phases"] or facts.phase in (MANUAL, "")}
    results = facts.plugins if F.is_known(facts.plugins) else ()
    found = []
    for result in results:
        if result.name in wanted:
            found += _judge(facts, result, wanted[result.name])
    asked = {result.name for result in results}
    return _each_once(found) + [finding("GH-PLUGIN-FAIL", Subject("part", name=name), "was not run")
                                for name in wanted if name not in asked]


def _each_once(findings):
    """What is said of one subject under one code as one finding, the worst first."""
    kept: dict = {}
    for one in sorted(findings, key=lambda one: one.severity != FATAL):
        first = kept.setdefault((one.code, one.subject), one)
        if first is not one:
            more = {"severity": one.severity, "seen": one.seen, **(one.data or {})}
            also = (first.data or {}).get("also", []) + [more]
            kept[one.code, one.subject] = first._replace(seen="%s; %s" % (first.seen, one.seen),
                                                         data=dict(first.data or {}, also=also))
    return list(kept.values())


def _judge(facts, result, about):
    own = Subject("part", name=result.name)
    if result.outcome == "late":
        return [finding("GH-PLUGIN-LATE", own, result.seen or "late")]
    if result.outcome != "ok" or result.status not in (_OK, _WARNING, _CRITICAL):
        return [finding("GH-PLUGIN-FAIL", own, result.seen or "no answer", status=result.status)]
    if result.status == _OK:
        return []
    severity = WARNING if result.status == _WARNING or not about["fatal"] else None
    data = {"plugin": result.name, "own_code": result.code, "answer": result.data}
    subject = _subject(facts, result.subject) or own
    seen = result.seen or ("critical" if result.status == _CRITICAL else "warning")
    if subject != own:
        seen = "%s: %s" % (result.name, seen)
    return [finding("GH-PLUGIN", subject, seen, severity=severity,
                    **{key: value for key, value in data.items() if value})]


def _subject(facts, text):
    """The subject that a plug-in names, None for none: "gpu3", "/data", "mlx5_0/1"; "node" is the plug-in itself."""
    if not text or text == "node":
        return None
    digits = text[3:] if text.startswith("gpu") else ""
    if digits.isascii() and digits.isdigit() and len(digits) < 4:
        for gpu in facts.gpus + facts.known_gpus:
            if gpu.index == int(digits):
                return subject_of(gpu)
        return Subject("gpu", int(digits))
    return Subject("mount" if text.startswith("/") else "part", name=text)
