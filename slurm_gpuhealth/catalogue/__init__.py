"""What is known of reason codes and Xid numbers (hot path: only the generated tables are read).

lookup() and xid() answer for everything, also for codes and numbers that this version does not know. What one event
of the kernel log means (by line, GPU family and driver) is in catalogue/judge.py.
"""
from __future__ import annotations

from slurm_gpuhealth.catalogue.codes_table import CODES, Code
from slurm_gpuhealth.catalogue.xid_table import RECOVERY_ACTIONS, XIDS, Xid

__all__ = ["CODES", "Code", "RECOVERY_ACTIONS", "XIDS", "XID_PREFIX", "Xid", "known", "lookup", "xid",
           "xid_number", "xid_policy"]

XID_PREFIX = "GH-XID"

# Severity of a finding that an action stands for.
_SEVERITY = {"drain": "fatal", "note": "note", "ignore": "note"}


def xid_number(code):
    """79 for "GH-XID79"; None for every other code (GH-XID-USER, GH-XID itself)."""
    digits = code[len(XID_PREFIX):]
    if code.startswith(XID_PREFIX) and digits.isascii() and digits.isdigit() and len(digits) <= 5:
        return int(digits)
    return None


def known(code):
    """True when the catalogue has this code, or it is a member of the family GH-XID<n>."""
    return code in CODES or xid_number(code) is not None


def lookup(code):
    """The catalogue's entry (Code) of a reason code. GH-XID<n> is made of the family and the Xid table.

    A code that another version wrote gets an entry that acts on nothing and comes last in a reason.
    """
    entry = CODES.get(code)
    if entry is not None:
        return entry
    number = xid_number(code)
    if number is None:
        return Code(code, "code that this version does not know", "scheduling", "warning", "none", False,
                    "node", "admin", False, "", "", len(CODES))
    about = xid(number)
    return CODES[XID_PREFIX]._replace(
        code=code, title="Xid %d: %s" % (number, about.title), layer=about.layer, severity=about.severity,
        job_action=about.job_action, short=about.short,
        fixer="user" if about.user_caused == "yes" else "hardware")


def xid(number):
    """The table's entry (Xid) of an Xid number; for an unlisted one an entry that says so, and warns."""
    entry = XIDS.get(number)
    if entry is not None:
        return entry
    return Xid(number, "number that this version does not know", "unknown number", "hardware", "note",
               "warning", "none", "no", (), None, ())


def xid_policy(number, value=None, overrides=None):
    """What to do about one Xid: (action, severity, job_action).

    number: the Xid. value: for an entry with by_value (154) the number at the end of the line, None where it
    could not be read. overrides: `xid:` of the configuration (keys are text).
    """
    entry = xid(number)
    action, severity, job_action = entry.action, entry.severity, entry.job_action
    if entry.by_value is not None and value is not None:
        action = entry.by_value.get(value, "note")
        # A value that is not in the table is not known to be harmless.
        severity = _SEVERITY[action] if value in entry.by_value else "warning"
        job_action = "let-finish" if action == "drain" else "none"
    change = (overrides or {}).get(str(number))
    if change:
        if "action" in change and change["action"] != action:
            action = change["action"]
            severity = _SEVERITY[action]
            job_action = "let-finish" if action == "drain" else "none"
        job_action = change.get("job_action", job_action)
    return action, severity, job_action
