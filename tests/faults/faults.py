"""Rows of table.yaml as facts, and what the program makes of them: parser, checks, merge, decision."""
import json
import os

import builders
import yaml

from slurm_gpuhealth import checks, reason
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.catalogue import judge, kinds_table, sxid_table, xid_table
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.decide import decide
from slurm_gpuhealth.model import Declared, Incident, Job, NodeRecord, Situation

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(os.path.dirname(HERE), "cases")
NEW_BOOT = "fedcba9876543210fedcba9876543210"
SECTIONS = ("xids", "sxids", "kinds", "incidents", "states")


def load():
    """The table: {section: [row]}."""
    with open(os.path.join(HERE, "table.yaml"), encoding="utf-8") as handle:
        table = yaml.load(handle, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for row in table["sxids"]:
        row.setdefault("code", "GH-SXID")
    return table


def lines(row):
    """The kernel-log lines of a row."""
    if "xid" in row:
        return ["NVRM: Xid (PCI:0000:5d:00): %d, %s" % (
            row["xid"], row.get("says") or "pid='<unknown>', name=<unknown>, Ch 00000008")]
    if "sxid" in row:
        return ["nvidia-nvswitch1: SXid (PCI:0000:06:00.0): %d, %s, Link 48 as the driver says it" % (
            row["sxid"], row["word"])]
    return row.get("log") or []


def fault(row):
    """What is wrong, in words."""
    if "fault" in row:
        return row["fault"]
    if "xid" in row:
        return xid_table.XIDS[row["xid"]].title
    if "sxid" in row:
        return judge.sxid_title(row["sxid"])
    return case_of(row)["why"]


def case_of(row):
    """The case file that a row of `states` names."""
    with open(os.path.join(CASES, row["case"] + ".json"), encoding="utf-8") as handle:
        return json.load(handle)


def given(row):
    """(facts, policy) of a row. A row names a case, or has `facts` ({path: value} over a healthy node) and a log."""
    case = case_of(row) if "case" in row else row
    facts = builders.healthy_node(**({"gpus": case["gpus"]} if "gpus" in case else {}))
    if case.get("baseline") == "none":
        facts = facts._replace(baseline=None)
    log = case.get("log") if "case" in row else lines(row)
    if log:
        facts = facts._replace(klog=builders.log(*log, step=case.get("log_step", 1.0)))
    if case.get("facts"):
        facts = builders.changed(facts, case["facts"])
    return facts, overlay(DEFAULTS, case.get("policy", {}))


def found(facts, policy):
    """What all checks see, each fault once, worst first."""
    return reason.worst_first(checks.merge(checks.run_checks(facts, policy)))


def planned(findings, policy, boot_id=builders.BOOT_ID, incidents=()):
    """Kinds of the actions that a health check would take, with a job on all GPUs of the node."""
    job = Job(7, 2001, "alice", "main", ("n1",), "n1", tuple(range(8)), state="RUNNING", batch=True, requeue=True,
              start=builders.NOW - 3600, declared=Declared("/ckpt/run7"), has_baseline=True, whole_node=True)
    situation = Situation("healthcheck", "n1", builders.NOW, boot_id, "full", incidents=incidents,
                          node_record=NodeRecord("n1", ("ALLOCATED",), partitions=("main",)), jobs=(job,),
                          shared_drains=0, partition_size=100, whole_node_gpus=8)
    plan = decide(findings, situation, policy)
    assert plan.lookups == ()
    return [action.kind for action in plan.actions]


def rebooted(facts):
    """The node after a reboot, when whatever it was did not survive it: the log of the old boot can still be read."""
    old = tuple(event._replace(data=dict(event.data or {}, earlier_boot=True)) for event in facts.klog.events) \
        if F.is_known(facts.klog) else ()
    return builders.healthy_node()._replace(
        boot_id=NEW_BOOT, klog=F.KernelLog(old, {"boot_id": NEW_BOOT, "seq": 1}, 0, 10), baseline=facts.baseline)


def old_incident(finding):
    """The drained incident that a fault of the last boot left behind."""
    return Incident("a1b2c3", "old", builders.BOOT_ID, finding.code, finding.subject, builders.NOW - 600,
                    drained=True)


def at_once(row):
    """What `gpuhealth log parse` says must be done about the first line of a row."""
    event = given(row)[0].klog.events[0]
    return judge.action_of(event.kind, event.code, event.data)[1]


def missing(table):
    """Numbers and kinds of the catalogue that have no row: {section: [..]}."""
    return {
        "xids": sorted(set(xid_table.XIDS) - {row["xid"] for row in table["xids"]}),
        "sxids": sorted(set(sxid_table.SXIDS) - {row["sxid"] for row in table["sxids"]}),
        "kinds": sorted(set(kinds_table.KINDS) - {row["kind"] for row in table["kinds"]}),
    }
