"""What one event of the kernel log means by itself: how bad it is, what must be done, and what becomes of the jobs.

Pure; used by the checks, by `gpuhealth log parse` and by `gpuhealth explain`, so that they agree. What the node's own
state adds (earlier jobs, other lines of the same moment) is for the checks.
"""
from __future__ import annotations

from collections import namedtuple

from slurm_gpuhealth.catalogue import xid, xid_policy
from slurm_gpuhealth.catalogue.kinds_table import KINDS
from slurm_gpuhealth.catalogue.nvlink5_table import LAYOUT_CHANGED, RULES
from slurm_gpuhealth.catalogue.sxid_table import CLASSES, SXIDS

Verdict = namedtuple("Verdict", "action severity job_action do why", defaults=("",))
Verdict.__doc__ = """What to do about an event. action: drain, note or ignore. severity: of the finding. job_action: of
jobs that use the thing. do: none, restart-app, reset, reboot, repair or drain, at once. why: what decided, "" for the
number alone."""

# What Xid 154 asks for, by its value: 3 and 4 let jobs end first, 5 is about the whole NVLink domain.
_RECOVERY_DO = {0: "none", 1: "reset", 2: "reboot", 3: "drain", 4: "drain", 5: "drain", 6: "reset", 7: "reboot"}

NVLINK5 = frozenset(range(144, 151))

# Xid 74: (register, bit) by what NVIDIA's workflow says of them (docs.nvidia.com/deploy/xid-errors, NVLink workflow;
# looked up 2026-11-30). Registers count from 0; of all others a reset is what is asked for.
_HARMLESS_74 = {(0, 0), (0, 23), (0, 30), (4, 20), (4, 23), (4, 26), (4, 29)}
_HANDS_ON_74 = {(0, 8), (0, 9), (0, 12), (0, 16), (0, 17), (0, 21), (0, 22), (0, 24), (0, 28), (2, 16), (2, 19)}

_STRONGEST = ("reset", "ask-154", "none")

# Words of a board's name, and what family it is of. The first row with one of the words counts.
_NAMES = (
    ("grace-blackwell", {"gb200", "gb300", "gb10"}),
    ("blackwell", {"blackwell", "b100", "b200", "b300", "b40"}),
    ("hopper", {"h100", "h200", "h800", "h20", "gh200", "hopper"}),
    ("ada", {"ada", "l4", "l40", "l40s", "l40g", "l20", "l2"}),
    ("ampere", {"a100", "a100x", "a800", "a30", "a30x", "a40", "a10", "a10g", "a10m", "a16", "a2", "a2000", "a4000",
                "a4500", "a5000", "a5500", "a6000", "ampere", "pg506", "pg509"}),
    ("pre-ampere", {"v100", "v100s", "p100", "p40", "p4", "t4", "t4g", "k80", "k40m", "m60", "m40", "quadro", "titan",
                    "gtx", "tesla", "t1000"}),
)


def family_of(name):
    """The family of a GPU by the name that NVML gives it ("NVIDIA A100-SXM4-80GB"): "pre-ampere", "ampere", "ada",
    "hopper", "blackwell", "grace-blackwell", or "" where the name is not known."""
    words = "".join(char if char.isalnum() else " " for char in str(name).lower()).split()
    for family, known in _NAMES:
        if known.intersection(words):
            return family
    series = next((word[:2] for before, word in zip(words, words[1:])
                   if before == "rtx" and len(word) == 4 and word.isdigit()), "")
    return {"20": "pre-ampere", "30": "ampere", "40": "ada", "50": "blackwell"}.get(series, "")


def branch_of(driver):
    """570 of "570.124.06"; None where it is no version."""
    first = str(driver or "").partition(".")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) <= 6 else None


def of_xid(number, data=None, family="", driver="", overrides=None):
    """Verdict on one Xid line. data: of the event (klog). family: of family_of. driver: its version, "" where not
    known. overrides: `xid:` of the configuration, which has the last word on the action."""
    data = data or {}
    entry = xid(number)
    action, severity, job = xid_policy(number, data.get("to"), overrides)
    verdict = Verdict(action, severity, job, entry.do)
    if entry.by_value is not None:
        return verdict._replace(do=_RECOVERY_DO.get(data.get("to"), "none"))
    judged = _of_line(number, entry, data, family, driver, verdict)
    if "action" in (overrides or {}).get(str(number), {}):
        return verdict._replace(do=judged.do, why="the site's table")
    if judged.action == "drain" and "job_action" in (overrides or {}).get(str(number), {}):
        return judged._replace(job_action=overrides[str(number)]["job_action"])
    return judged


def _of_line(number, entry, data, family, driver, verdict):
    """`verdict` with what line, family and driver change in it."""
    if number in NVLINK5:
        return _of_nvlink5(number, data, driver)
    if number == 74:
        return _of_registers(data.get("registers") or (), verdict)
    different = (entry.differs or {}).get(family)
    if different:
        return verdict._replace(why=family, **different)
    branch = branch_of(driver)
    if verdict.do == "reset" and entry.user_caused != "no" and entry.asks and branch and branch >= entry.asks:
        # This driver asks for the reset with Xid 154 where the GPU needs one (109 since R570).
        return verdict._replace(do="restart-app", why="driver %d asks with Xid 154" % branch)
    return verdict


def _of_nvlink5(number, data, driver):
    word = data.get("fatal")
    if data.get("injected_error"):
        return Verdict("note", "note", "none", "none", "injected on purpose")
    what, who = nvlink5_rule(number, data, driver) or ("", "")
    why = "registers" if what else "the line's word"
    if who:
        why += "; look at: " + who
    if word is False:
        # The driver says by itself with 154 when a reset is needed all the same.
        return Verdict("note", "warning" if what == "reset" else "note", "none",
                       {"reset": "reset", "ask-154": "restart-app"}.get(what, "none"), why)
    if what == "reset" or (not what and word):
        return Verdict("drain", "fatal", "let-finish", "reset", why)
    if what == "none":
        return Verdict("note", "warning" if word else "note", "none", "none", why)
    if what == "ask-154":
        return Verdict("note", "note", "none", "restart-app", why)
    return Verdict("note", "warning", "none", "none", "cut off")


def nvlink5_rule(number, data, driver=""):
    """(what to do, who looks) of a line of 144 to 150 by its registers; None where no rule fits or the line was cut
    before it can be told. The unit's name on the line decides between the two layouts where the driver does not."""
    registers = data.get("registers") or ()
    unit, branch, word = str(data.get("unit") or "").upper(), branch_of(driver), data.get("fatal")
    if not registers:       # the unit and the word say a little
        choices = [choice for rule in RULES if unit and rule[0] == number and _same_unit(unit, rule[1], branch, False)
                   for choice in rule[6].values() if word is None or (choice[0] == "reset") == word]
        return _one_of(choices, word is False)
    layouts = (False, True) if branch is None else (branch >= LAYOUT_CHANGED, branch < LAYOUT_CHANGED)
    found: list = []
    for new in layouts:
        found += [rule for rule in RULES if rule[0] == number and _same_unit(unit, rule[1], branch, new)
                  and registers[0] & rule[4 if new else 2] == rule[5 if new else 3]]
        if found and branch is not None:
            break       # the other layout only where the driver's own has nothing of that unit
    return _one_of(_choices(number, found, registers[1] if len(registers) > 1 else None), True)


def _one_of(choices, several):
    """The strongest; None where they do not agree and `several` says that one of them is not enough."""
    if not choices or (not several and len({what for what, _ in choices}) > 1):
        return None
    return min(choices, key=lambda choice: _STRONGEST.index(choice[0]))


def _same_unit(unit, names, branch, new):
    if not unit:
        return branch is not None and new == (branch >= LAYOUT_CHANGED)
    return any(unit.startswith(name) or name.startswith(unit) for name in names)


def _choices(number, rules, status):
    """What the rules say of an errorStatus. None (cut off) says something only where all agree."""
    every = [choice for rule in rules for choice in rule[6].values()]
    if status is None:
        return every if len({what for what, _ in every}) == 1 else []
    exact = [rule[6][status] for rule in rules if status in rule[6]]
    if exact or number in (149, 150):       # NETIR and MSE count their errors, the others have one bit each
        return exact
    return [choice for rule in rules for bit, choice in rule[6].items() if bit & status]


def _of_registers(registers, verdict):
    bits = {(number, bit) for number, value in enumerate(registers) if isinstance(value, int)
            for bit in range(32) if value >> bit & 1}
    if bits and bits <= _HARMLESS_74:
        return Verdict("note", "note", "none", "none", "registers")
    if bits & _HANDS_ON_74:
        return verdict._replace(do="repair", why="registers")
    return verdict


def of_sxid(number, data=None, overrides=None):
    """Verdict on one SXid line. overrides: `sxid:` of the configuration."""
    word = (data or {}).get("fatal")
    name, _ = SXIDS.get(number, ("", ""))
    what, action, severity, job, do = CLASSES.get(name) or ("number that this version does not know", "word", "warning",
                                                            "let-finish", "none")
    if action == "word" and word:
        action, do = "drain", "reset" if do == "none" else do
    elif action == "word" and word is False:
        do = "none"
    if name == "harmless" and word:
        severity = "warning"    # corrected by what the number says, fatal by the line's word: somebody should look
    verdict = Verdict("drain", "fatal", job, do, what) if action == "drain" else \
        Verdict("note", severity, "none", do, what)
    change = (overrides or {}).get(str(number)) or {}
    if "action" in change:
        verdict = {
            "drain": Verdict("drain", "fatal", job, do, "the site's table"),
            "note": Verdict("note", "note", "none", do, "the site's table"),
        }.get(change["action"], Verdict("ignore", "note", "none", do, "the site's table"))
    if verdict.action == "drain" and "job_action" in change:
        verdict = verdict._replace(job_action=change["job_action"])
    return verdict


def sxid_title(number):
    """What an SXid number means, in words."""
    return SXIDS.get(number, ("", "number that this version does not know"))[1]


def of_kind(kind, data=None):
    """(severity, what to do) of an event that has no number; ("unknown", "none") for a kind nobody knows."""
    row = KINDS.get(kind)
    if row is None:
        return "unknown", "none"
    for key, value, severity, do in row[4]:
        if (data or {}).get(key) == value:
            return severity, do
    return row[1], row[2]


def action_of(kind, code=None, data=None, family="", driver="", overrides=None):
    """(severity, what to do at once) of any event of the kernel log.

    kind, code, data: as of KernelEvent. severity: fatal, warning, note, or unknown for a kind nobody knows. What to do:
    none, restart-app, reset, reboot, repair, drain.
    """
    if kind == "xid" and code is not None:
        verdict = of_xid(code, data, family, driver, overrides)
    elif kind == "sxid" and code is not None:
        verdict = of_sxid(code, data)
    else:
        return of_kind(kind, data)
    return verdict.severity, verdict.do
