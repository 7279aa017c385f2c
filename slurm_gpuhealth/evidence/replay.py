"""The decision again, from what was kept.

`findings_of` does what a live hook does (run.py keeps the findings of the single checks too): checks, then merge.
"""
from __future__ import annotations

import json
import os
from collections import namedtuple

from slurm_gpuhealth import checks

Replayed = namedtuple("Replayed", "same plan stored findings stored_findings notes differs")
Replayed.__doc__ = """same: True, False, or None where no decision is stored. plan: model.Plan made now. stored: the
plan that was taken, as plain values, or None. findings, stored_findings: likewise. notes: what to know before
believing it (changed files). differs: names of the plan's fields that are not the same."""


def findings_of(facts, policy, phase):
    """What the checks say about `facts` under `policy` (the configuration) in `phase`: a list of Finding."""
    return checks.merge(checks.run_checks(facts, policy, phase))



def replay(folder, changes=()):
    """Run checks and decision again on the evidence in `folder`: a Replayed.

    changes: texts "klog.events.0.code=31" that are applied to the facts (or, with "situation." or "policy."
    before, to those) beforehand. Raises DataError where the evidence is not whole enough, UsageError for a
    change that names nothing.
    """
    from slurm_gpuhealth import decide, model
    from slurm_gpuhealth import facts as facts_module
    documents = {name: _load(folder, name) for name in ("facts", "situation", "policy")}
    for change in changes:
        _change(documents, change)
    facts = facts_module.from_plain(documents["facts"])
    situation = model.from_plain(model.Situation, documents["situation"])
    policy = _complete(documents["policy"])
    findings = findings_of(facts, policy, situation.phase)
    plan = decide.decide(findings, situation, policy)
    stored = _load(folder, "decision", optional=True)
    stored_plan = stored.get("plan") if stored else None
    new_plan = json.loads(json.dumps(model.to_plain(plan)))
    differs = [] if stored_plan is None else sorted(
        name for name in set(new_plan) | set(stored_plan) if new_plan.get(name) != stored_plan.get(name))
    return Replayed(None if stored_plan is None else not differs, plan, stored_plan, findings,
                    (stored or {}).get("findings"), _warnings(folder), differs)


def _complete(policy):
    """The policy with the built-in value of every key that came after it was kept."""
    from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
    return overlay(DEFAULTS, policy)


def _load(folder, name, optional=False):
    from slurm_gpuhealth.errors import DataError
    path = os.path.join(folder, name + ".json")
    try:
        with open(path, encoding="utf-8") as handle:
            plain = json.load(handle)
    except FileNotFoundError as exc:
        if optional:
            return None
        raise DataError("%s is not there: nothing to replay" % path) from exc
    except (OSError, ValueError, RecursionError) as exc:
        raise DataError("%s: %s" % (path, exc)) from exc
    if not isinstance(plain, dict):
        raise DataError("%s: not an object" % path)
    return plain


def _warnings(folder):
    """Notes about files that are not as they were recorded."""
    from slurm_gpuhealth.errors import DataError
    from slurm_gpuhealth.evidence import manifest
    try:
        result = manifest.verify(folder)
    except DataError as exc:
        return ["no manifest to compare with: %s" % exc]
    notes = ["%s was changed since it was collected" % name for name in result["changed"]]
    notes += ["%s is gone" % name for name in result["missing"] if name != "decision.json"]
    if not result["complete"]:
        notes.append("the folder is incomplete: its collection did not end")
    return notes


def _change(documents, text):
    """Apply one "path.to.value=JSON" (or plain text) to the documents."""
    from slurm_gpuhealth.errors import UsageError
    path, equals, value = text.partition("=")
    steps = path.split(".")
    if not equals or not all(steps):
        raise UsageError("not PATH=VALUE: %s" % text)
    try:
        value = json.loads(value)
    except ValueError:
        pass        # a plain text
    document = steps.pop(0) if steps[0] in documents and len(steps) > 1 else "facts"
    place = documents[document]
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        if isinstance(place, list) and step.isdigit() and int(step) < len(place):
            key = int(step)
        elif isinstance(place, dict) and (step in place or (last and document == "policy")):
            key = step      # a policy lists only what was set (xid.79, codes.GH-...)
        else:
            raise UsageError("%s: there is no %r at %s (there: %s)" % (
                text, step, ".".join(steps[:number]) or "the top", _names(place)))
        if last:
            place[key] = value
        else:
            place = place[key]


def _names(place):
    if isinstance(place, dict):
        return " ".join(sorted(map(str, place))[:40])
    return "%d items" % len(place) if isinstance(place, list) else "a single value"
