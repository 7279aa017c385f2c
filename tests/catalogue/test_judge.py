"""What one kernel-log event means by itself: by number, line, GPU family and driver branch (catalogue/judge.py)."""
import pytest

from slurm_gpuhealth import catalogue
from slurm_gpuhealth.catalogue import generate, generate_log, judge, kinds_table, sxid_table, xid_table
from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.parse import xid as lines


@pytest.mark.parametrize("name,family", [
    ("NVIDIA H100 80GB HBM3", "hopper"), ("NVIDIA H200", "hopper"), ("NVIDIA GH200 480GB", "hopper"),
    ("NVIDIA H20", "hopper"), ("NVIDIA A100-SXM4-80GB", "ampere"), ("NVIDIA A100 80GB PCIe MIG 1g.10gb", "ampere"),
    ("NVIDIA A10G", "ampere"), ("NVIDIA RTX A6000", "ampere"), ("NVIDIA GeForce RTX 3090", "ampere"),
    ("NVIDIA L40S", "ada"), ("NVIDIA L4", "ada"), ("NVIDIA RTX 6000 Ada Generation", "ada"),
    ("NVIDIA GeForce RTX 4090", "ada"), ("NVIDIA B200", "blackwell"), ("NVIDIA GB200", "grace-blackwell"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "blackwell"), ("NVIDIA GeForce RTX 5090", "blackwell"),
    ("Tesla V100-SXM2-32GB", "pre-ampere"), ("Tesla T4", "pre-ampere"), ("Tesla P100-PCIE-16GB", "pre-ampere"),
    ("NVIDIA GeForce RTX 2080 Ti", "pre-ampere"), ("NVIDIA R300", ""), ("", ""), (None, "")])
def test_family_of_a_name(name, family):
    """The name that NVML gives tells the family; a name nobody knows tells nothing."""
    assert judge.family_of(name) == family


@pytest.mark.parametrize("driver,branch", [("570.124.06", 570), ("575", 575), ("", None), (None, None), ("x.1", None)])
def test_branch_of_a_driver(driver, branch):
    """The number before the first dot."""
    assert judge.branch_of(driver) == branch


def line(text):
    return lines.parse("NVRM: Xid (PCI:0000:04:00): " + text)


def nvlink5(number, words, *registers):
    return line("%d, %s XC0 i0 Link 00 (%s)" % (number, words, " ".join("0x%08x" % value for value in registers)))


@pytest.mark.parametrize("number,words,registers,driver,expected", [
    # the layout since R575
    (144, "SAW_MVB Nonfatal", (0x1, 0x1), "575.57", ("note", "note", "none")),
    (144, "SAW_MVB Fatal", (0x1, 0x2), "580.1", ("drain", "fatal", "reset")),
    (145, "RLW_REMAP Nonfatal", (0x4, 0x1), "575.57", ("note", "note", "restart-app")),
    (145, "RLW_REMAP Fatal", (0x4, 0x40), "575.57", ("drain", "fatal", "reset")),
    (145, "RLW_SRC_TRACK Fatal", (0x7, 0x1), "575.57", ("drain", "fatal", "reset")),
    (145, "RLW_SRC_TRACK Nonfatal", (0x7, 0x2), "575.57", ("note", "note", "none")),
    (145, "RLW_TAGSTATE Fatal", (0x8, 0x2), "575.57", ("drain", "fatal", "reset")),
    (146, "TLW_CTRL Fatal", (0x9, 0x4), "575.57", ("drain", "fatal", "reset")),
    (146, "TLW_RX Nonfatal", (0xa, 0x1), "575.57", ("note", "note", "none")),
    (149, "NETIR_MFDE_EVENT Fatal", (0x14, 0x1), "575.57", ("drain", "fatal", "reset")),
    (149, "NETIR_BER_EVENT Nonfatal", (0x13, 0x1), "575.57", ("note", "note", "none")),
    (149, "NETIR_LINK_EVT Fatal", (0x01000011, 0x0), "575.57", ("drain", "fatal", "reset")),
    (150, "MSE_WATCHDOG Fatal", (0x0, 0x0), "575.57", ("drain", "fatal", "reset")),
    # the layout before
    (144, "SAW_MVB Fatal", (0x21, 0x10), "570.86", ("drain", "fatal", "reset")),
    (145, "RLW_RXPIPE Nonfatal", (0x0409a0c2, 0x8), "570.86", ("note", "note", "none")),
    (145, "RLW_SRC_TRACK Nonfatal", (0x040988e2, 0x8), "570.86", ("note", "note", "restart-app")),
    (149, "NETIR_LINK_EVT Fatal", (0x021425c6, 0x0), "570.86", ("drain", "fatal", "reset")),
    # several errors at once: the worst counts
    (145, "RLW_REMAP Fatal", (0x82, 0x41), "570.86", ("drain", "fatal", "reset")),
    # nobody knows the driver, or it is another one than wrote the line: the unit's name tells the layout
    (145, "RLW_SRC_TRACK Nonfatal", (0x040988e2, 0x8), "", ("note", "note", "restart-app")),
    (149, "NETIR_LINK_EVT Fatal", (0x021425c6, 0x0), "", ("drain", "fatal", "reset")),
    (149, "NETIR_LINK_EVT Fatal", (0x021425c6, 0x0), "580.1", ("drain", "fatal", "reset")),
    (145, "RLW_TAGSTATE Fatal", (0x8, 0x2), "", ("drain", "fatal", "reset")),
    # in no rule: the line's word
    (147, "TREX Fatal", (0x184, 0x40), "570.86", ("drain", "fatal", "reset")),
    (147, "TREX Nonfatal", (0x184, 0x40), "570.86", ("note", "note", "none")),
    # the word says Fatal, the registers that nothing must be done; and the other way
    (149, "NETIR_LINK_EVT Fatal", (0x02800011, 0x0), "575.57", ("note", "warning", "none")),
    (149, "NETIR_LINK_EVT Nonfatal", (0x02100011, 0x0), "575.57", ("note", "warning", "reset")),
    # cut
    (149, "NETIR Fatal", (0x000fe406,), "570.86", ("drain", "fatal", "reset")),
    (144, "SAW_MVB Nonfatal", (0x21,), "570.86", ("note", "note", "none"))])
def test_nvlink5_by_registers_word_and_branch(number, words, registers, driver, expected):
    """144 to 150: registers first, then the word; Nonfatal never drains; R575 changed the layout."""
    _, code, _, _, _, data = nvlink5(number, words, *registers)
    verdict = judge.of_xid(code, data, "blackwell", driver)
    assert (verdict.action, verdict.severity, verdict.do) == expected


def test_nvlink5_without_anything():
    """A bare number, or a line cut before the word: a warning."""
    for text in ("149,", "149, NETIR_LINK_EVT"):
        _, code, _, _, _, data = line(text)
        assert judge.of_xid(code, data)[:4] == ("note", "warning", "none", "none")


def test_nvlink5_injected_is_none():
    """i1: the error was injected on purpose."""
    _, code, _, _, _, data = line("144, SAW_MVB Fatal XC0 i1 Link 00 (0x00000021 0x00000002 0x0 0x0 0x0 0x0)")
    assert judge.of_xid(code, data).severity == "note"


@pytest.mark.parametrize("number,family,driver,expected", [
    (63, "hopper", "570.86", ("note", "note", "none")), (63, "pre-ampere", "535.1", ("note", "warning", "reboot")),
    (64, "ampere", "570.86", ("drain", "fatal", "reset")), (64, "pre-ampere", "535.1", ("drain", "fatal", "reboot")),
    (95, "hopper", "570.86", ("drain", "fatal", "reset")), (95, "ampere", "570.86", ("drain", "fatal", "reboot")),
    (109, "hopper", "550.90", ("note", "note", "restart-app")),
    (109, "hopper", "570.86", ("note", "note", "restart-app")),
    (109, "", "", ("note", "note", "restart-app")), (48, "hopper", "", ("drain", "fatal", "reset")),
    (171, "hopper", "", ("drain", "fatal", "reset")), (79, "pre-ampere", "470.1", ("drain", "fatal", "reboot"))])
def test_what_differs_by_family_and_branch(number, family, driver, expected):
    """Pages before Ampere, rows since; a context switch that took too long alone needs no reset."""
    verdict = judge.of_xid(number, {}, family, driver)
    assert (verdict.action, verdict.severity, verdict.do) == expected


@pytest.mark.parametrize("registers,expected", [
    ((), ("drain", "reset")), ((0x0,) * 7, ("drain", "reset")), ((0x40800001, 0, 0, 0, 0, 0, 0), ("note", "none")),
    ((0, 0, 0, 0, 0x24900000, 0, 0), ("note", "none")), ((0x40010001, 0, 0, 0, 0, 0, 0), ("drain", "repair")),
    ((0x100000, 0, 0, 0, 0, 0, 0), ("drain", "reset")), ((0, 0, 0x10000, 0, 0, 0, 0), ("drain", "repair"))])
def test_xid_74_by_its_registers(registers, expected):
    """Bits that NVIDIA's workflow ignores are harmless when no other is set; some ask for hands on the connector."""
    verdict = judge.of_xid(74, {"registers": list(registers)})
    assert (verdict.action, verdict.do) == expected


@pytest.mark.parametrize("number,word,expected", [
    (12028, False, ("drain", "fatal", "reset")), (20034, True, ("drain", "fatal", "reset")),
    (20034, None, ("drain", "fatal", "reset")), (20001, False, ("note", "note", "none")),
    (20009, False, ("note", "note", "none")), (20012, None, ("note", "note", "none")),
    (22013, False, ("note", "note", "none")), (11012, False, ("note", "note", "none")),
    (20009, True, ("note", "warning", "none")), (19001, True, ("drain", "fatal", "repair")),
    (19001, False, ("note", "warning", "none")), (26006, None, ("drain", "fatal", "reset")),
    (26008, None, ("note", "warning", "none")), (39999, None, ("note", "warning", "none")),
    (39999, True, ("drain", "fatal", "reset"))])
def test_sxid_by_number_then_word(number, word, expected):
    """The number decides; the word only where the number leaves it open."""
    verdict = judge.of_sxid(number, {} if word is None else {"fatal": word})
    assert (verdict.action, verdict.severity, verdict.do) == expected


def test_always_fatal_stops_jobs_at_once():
    """Numbers that are fatal to the whole fabric: no job of the node can go on."""
    assert judge.of_sxid(23001, {"fatal": True}).job_action == "requeue-now"
    assert judge.of_sxid(20034, {"fatal": True}).job_action == "let-finish"


def test_site_has_the_last_word():
    """xid: and sxid: of the configuration go before line, family and number."""
    fatal = {"fatal": True, "unit": "SAW_MVB", "registers": [0x21, 2]}
    assert judge.of_xid(144, fatal, overrides={"144": {"action": "note"}}).action == "note"
    assert judge.of_xid(144, {}, overrides={"144": {"action": "drain"}}).severity == "fatal"
    assert judge.of_xid(144, fatal, overrides={"144": {"job_action": "requeue-now"}}).job_action == "requeue-now"
    assert judge.of_xid(63, {}, "pre-ampere", overrides={"63": {"action": "ignore"}}).action == "ignore"
    assert judge.of_sxid(20034, {}, {"20034": {"action": "ignore"}}).action == "ignore"
    assert judge.of_sxid(20009, {}, {"20009": {"action": "drain", "job_action": "requeue-now"}})[:3] == (
        "drain", "fatal", "requeue-now")


@pytest.mark.parametrize("kind,code,data,expected", [
    ("xid", 79, {}, ("fatal", "reboot")), ("xid", 154, {"to": 4}, ("fatal", "drain")),
    ("xid", 154, {"to": 0}, ("note", "none")), ("xid", 154, {}, ("warning", "none")),
    ("xid", 54, {}, ("fatal", "repair")), ("xid", 183, {}, ("warning", "none")), ("xid", None, {}, ("unknown", "none")),
    ("sxid", 20034, {"fatal": True}, ("fatal", "reset")), ("gpu_fell_off", None, {}, ("fatal", "reboot")),
    ("aer_uncorrected", None, {"class": "Fatal"}, ("fatal", "reboot")),
    ("aer_uncorrected", None, {"class": "Non-Fatal"}, ("warning", "none")),
    ("mce_apei", None, {"severity": "corrected"}, ("note", "none")), ("fs_error", None, None, ("warning", "repair")),
    ("something_new", None, {}, ("unknown", "none"))])
def test_action_of_any_event(kind, code, data, expected):
    """One answer for every kind of event; a kind nobody knows is unknown and never crashes."""
    assert judge.action_of(kind, code, data) == expected


def test_nothing_that_users_cause_drains_by_a_line():
    """For every family and branch."""
    for number, entry in xid_table.XIDS.items():
        if entry.user_caused != "no":
            for family in ("",) + generate_log.FAMILIES:
                for driver in ("", "470.1", "570.1", "610.1"):
                    assert judge.of_xid(number, {}, family, driver).action != "drain", number


def test_strange_data_never_crashes():
    """What the parser may hand over, and what it should not."""
    for number in range(0, 200):
        for data in (None, {}, {"registers": [], "fatal": None}, {"registers": [2 ** 32 - 1] * 9, "unit": "é"},
                     {"to": 99, "from": -1, "link": -1}):
            verdict = judge.of_xid(number, data)
            assert verdict.severity in ("fatal", "warning", "note") and verdict.do in generate_log.DO
            assert judge.of_sxid(number, data).do in generate_log.DO


def test_a_bad_table_is_refused():
    """The generators stop at a value that means nothing."""
    xids = generate.load_source("xid.yaml")
    good = xids["xids"][79]
    generate_log.check_xid(79, good, xids["sources"], catalogue.CODES)
    for change in ({"do": "pray"}, {"differs": {"hopper": {"action": "note"}}}, {"gpus": ["fermi"]},
                   {"can_be": ["luck"]}, {"colour": "red"}, {"user": "yes"}):
        with pytest.raises(DataError):
            generate_log.check_xid(79, {**good, **change}, xids["sources"])
    sxids = generate.load_source("sxid.yaml")
    with pytest.raises(DataError, match="twice"):
        generate_log.sxid_rows({**sxids, "sxids": {**sxids["sxids"], "other": {20034: "again"}}})
    with pytest.raises(DataError, match="no such code"):
        generate_log.kind_rows({"kinds": {"x": {"title": "x", "severity": "note", "do": "none", "code": "GH-NO"}}},
                               catalogue.CODES)


def test_like_and_companions_name_what_is_there():
    """like: is a code, with: names numbers that the table has."""
    xids = generate.load_source("xid.yaml")
    for number, entry in xids["xids"].items():
        generate_log.check_xid(number, entry, xids["sources"], catalogue.CODES)
        assert set(entry.get("with", ())) <= set(xids["xids"]), number
    assert all(row[3] == "" or row[3] in catalogue.CODES for row in kinds_table.KINDS.values())
    assert all(name in sxid_table.CLASSES for name, _ in sxid_table.SXIDS.values())


@pytest.mark.parametrize("kind,number,data,expected", [
    ("rm_init_failed", None, {}, ("fatal", "reboot")),
    ("rm_init_failed", None, {"reason": "no power cables"}, ("fatal", "reboot")),
    ("rm_init_failed", None, {"reason": "BAR1"}, ("fatal", "reboot")),
    ("rm_init_failed", None, {"reason": "MSI"}, ("note", "none")),
    ("rm_init_failed", None, {"reason": "MSI-X"}, ("note", "none")),
    ("gpu_probe_failed", None, {}, ("warning", "none")),
    ("nvml_version_mismatch", None, {}, ("warning", "none")),
    ("xid", 159, {}, ("warning", "none")),
    ("xid", 154, {"to": 8}, ("warning", "none")), ("xid", 154, {"to": 0xffffffff}, ("warning", "none")),
    ("xid", 154, {"to": 1}, ("fatal", "reset")),
    *[("xid", number, {}, ("note", "none")) for number in (4, 15, 17, 23, 24, 49, 50, 52, 53, 55, 87, 91)],
])
def test_what_is_asked_for_fits_how_bad_it_is(kind, number, data, expected):
    """A line that is nobody's fault asks for nothing: what cannot be enabled and is not needed, a client's library, a
    card of another vendor's age, a number that is a mere note."""
    assert judge.action_of(kind, number, data) == expected
