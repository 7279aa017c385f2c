"""The grammar of drain reasons."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_gpuhealth import reason
from slurm_gpuhealth.catalogue import CODES
from slurm_gpuhealth.model import ALL_GPUS, FATAL, NODE, NOTE, Finding, Subject


def gpu(code, index=3, seen="", expected="", **more):
    """A finding about one GPU."""
    return Finding(code, FATAL, Subject("gpu", index), seen, expected, **more)


def mount(code, path, seen=""):
    """A finding about one mount."""
    return Finding(code, FATAL, Subject("mount", name=path), seen)


@pytest.mark.parametrize("findings, expected", [
    ([gpu("GH-XID79")], "GH-XID79 gpu3 fell off bus [ev=3f2a]"),
    ([gpu("GH-XID79", seen="no answer")], "GH-XID79 gpu3 no answer [ev=3f2a]"),
    ([gpu("GH-PCIE-WIDTH", 5, "x8", "x16")], "GH-PCIE-WIDTH gpu5 x8<x16 [ev=3f2a]"),
    ([Finding("GH-GPU-COUNT", FATAL, ALL_GPUS, "7", "8")], "GH-GPU-COUNT 7/8 [ev=3f2a]"),
    ([mount("GH-MNT-RO", "/data")], "GH-MNT-RO /data read-only [ev=3f2a]"),
    ([Finding("GH-NVML-HANG", FATAL, ALL_GPUS)], "GH-NVML-HANG no answer [ev=3f2a]"),
    ([mount("GH-MNT-HANG", "/lustre/scratch1", "3 s")], "GH-MNT-HANG ~cratch1 /lustre/scratch1 3 s [ev=3f2a]"),
    ([Finding("GH-LOG-FAIL", FATAL, NODE)], "GH-LOG-FAIL kernel log unread [ev=3f2a]"),
])
def test_written_form(findings, expected):
    """The published examples: code, subject, detail, evidence."""
    assert reason.write(findings, "3f2a") == expected


def test_worst_leads_and_the_rest_is_counted_behind_the_subject():
    """+N counts other findings of the same severity, each code and subject once; notes do not count."""
    findings = [
        Finding("GH-GPU-COUNT", FATAL, ALL_GPUS, "7", "8"), gpu("GH-XID154"), gpu("GH-GPU-LOST"), gpu("GH-XID79"),
        gpu("GH-XID79"), Finding("GH-REMAP-PEND", NOTE, Subject("gpu", 0))]
    assert reason.write(findings, "ab") == "GH-XID79 gpu3+3 fell off bus [ev=ab]"
    assert [item.code for item in reason.worst_first(findings)] == [
        "GH-XID79", "GH-XID79", "GH-GPU-LOST", "GH-XID154", "GH-GPU-COUNT", "GH-REMAP-PEND"]


def test_what_stops_the_job_leads():
    """A lost GPU says more than a GPU that only needs a reset."""
    assert reason.write([gpu("GH-XID48", 0), gpu("GH-GPU-LOST", 5)]).startswith("GH-GPU-LOST gpu5+1")


def test_order_of_the_findings_does_not_matter():
    """The same findings in any order give the same reason, so that two hooks agree."""
    findings = [gpu("GH-XID79", 4), gpu("GH-XID79", 1), mount("GH-MNT-RO", "/b"), mount("GH-MNT-RO", "/a")]
    assert reason.write(findings, "ab") == reason.write(findings[::-1], "ab") == "GH-XID79 gpu1+3 fell off bus [ev=ab]"


@pytest.mark.parametrize("code", [code for code, entry in CODES.items() if entry.subject == "gpu"] + ["GH-XID185"])
def test_code_and_gpu_fit_what_sinfo_shows(code):
    """sinfo -R prints 20 characters; they hold code and subject, up to gpu99."""
    assert len(reason.write([gpu(code, 99)], "ab").split(" ")[0] + " gpu99") <= reason.SHOWN


@pytest.mark.parametrize("code", [code for code, entry in CODES.items() if entry.subject == "gpu"] + ["GH-XID185"])
@pytest.mark.parametrize("more", [0, 1, 9])
def test_code_and_address_fit_what_sinfo_shows(code, more):
    """So does the address of a GPU of which nobody knows the index, with the number of further faults."""
    lost = Finding(code, FATAL, Subject("gpu", None, "", "0000:dc:00.0"))
    text = reason.write([lost] + [mount(code, "/m%d" % n) for n in range(more)], "ab")
    shown = " ".join(text.split(" ")[:2])
    assert len(shown) <= reason.SHOWN and shown.startswith(code + " ~dc"), text
    assert reason.parse(text)[1].startswith("~dc") and "0000:dc:00.0" in text


@pytest.mark.parametrize("bdf,room,expected", [
    ("0000:b3:00.0", 20, "~b3:00.0"), ("0000:b3:00.0", 7, "~b3:00"), ("0000:b3:00.0", 5, "~b3"),
    ("0008:01:00.0", 20, "~8:01:00.0"), ("0019:01:00.0", 9, "~19:01:00"), ("0019:01:00.0", 6, "~19:01"),
    ("00000000:b3:00.0", 20, "~b3:00.0"), ("", 20, "~"), ("GPU-1234-abcd-efgh", 20, "~-abcd-efgh"),
])
def test_short_forms_of_an_address(bdf, room, expected):
    """The domain is left out where it is 0000, and kept where it tells GPUs apart."""
    assert reason.subject_text(Subject("gpu", None, "", bdf), room) == expected


def test_long_reason_is_cut_and_keeps_its_evidence():
    """Slurm's reason is bounded, the way to the evidence is not given up for words."""
    text = reason.write([gpu("GH-XID79", seen="x" * 500)], "a" * 32)
    assert len(text) == 200
    assert text.endswith("~ [ev=%s]" % ("a" * 32))


def test_hostile_text_is_disarmed():
    """A mount path or a log's text can neither end the line nor pretend to be an evidence mark."""
    text = reason.write([mount("GH-MNT-ERR", "/a\nb [ev=dead]\x1b[31m'\"|`\\", "x\ty\u00e9")], "c0de")
    assert reason.parse(text)[3] == "c0de"
    assert text.isascii() and text.isprintable()
    assert not set(text) & set("'\"|`\\\n\t")
    assert text.count("[") == 1


def test_gpu_without_index_is_named_by_its_address():
    """A GPU that cannot be mapped to Slurm's index still needs a name."""
    assert reason.write([Finding("GH-XID79", FATAL, Subject("gpu", None, "", "0000:3b:00.0"))]) == (
        "GH-XID79 ~3b:00.0 0000:3b:00.0 fell off bus")


@pytest.mark.parametrize("text, ours", [
    ("GH-XID79 gpu3 fell off bus [ev=3f2a]", True),
    ("GH-XID79 gpu3+2 fell off bus [ev=3f2a] : Not responding", True),
    ("GH-GPU-COUNT+1 7/8", True),
    ("GH-NVML-HANG", True),
    ("GH-NVML-HANG : Not responding", True),
    ("GH-FUTURE-CODE gpu1 [ev=00ff]", True),
    ("GH-FUTURE-CODE gpu1", False),
    ("GH-200 board swapped", False),
    ("GH-RACK 7 moved", False),
    ("GH-XID79gpu3", False),
    (" GH-XID79 gpu3", False),
    ("see GH-XID79 gpu3 [ev=3f2a]", False),
    ("Kill task failed", False),
    ("Not responding", False),
    ("", False),
    (None, False),
])
def test_ours_or_not(text, ours):
    """Never take an admin's reason for ours; know ours again whatever Slurm appends."""
    assert reason.is_ours(text) is ours
    assert (reason.parse(text) is not None) is ours


@pytest.mark.parametrize("text, parts", [
    ("GH-XID79 gpu3+1 fell off bus [ev=3f2a] : Not responding", ("GH-XID79", "gpu3", "fell off bus", "3f2a")),
    ("GH-GPU-COUNT 7/8", ("GH-GPU-COUNT", "", "7/8", "")),
    ("GH-MNT-HANG ~cratch1 /x/scratch1 3 s : Low", ("GH-MNT-HANG", "~cratch1", "/x/scratch1 3 s", "")),
    ("GH-NVML-HANG", ("GH-NVML-HANG", "", "", "")),
])
def test_parts(text, parts):
    """Code, subject, detail and evidence come out again."""
    assert reason.parse(text) == parts


@given(st.sampled_from(sorted(CODES)), st.integers(0, 15), st.text(max_size=300), st.text(max_size=60))
def test_any_text_gives_a_sound_reason(code, index, seen, expected):
    """Whatever a check quotes: at most 200 printable ASCII characters, ours, code and evidence intact."""
    text = reason.write([Finding(code, FATAL, Subject("gpu", index), seen, expected)], "00ff00ff")
    assert len(text) <= 200 and text.isascii() and text.isprintable()
    parts = reason.parse(text)
    assert (parts[0], parts[1], parts[3]) == (code, "gpu%d" % index, "00ff00ff")


@given(st.text(min_size=1, max_size=300))
def test_any_path_gives_a_sound_reason(path):
    """The same for mount paths, and the first 20 characters end no later than the subject."""
    text = reason.write([mount("GH-MNT-HANG", "/" + path)], "00ff")
    assert len(text) <= 200 and text.isascii() and text.isprintable() and reason.parse(text)[3] == "00ff"
    assert len(" ".join(text.split(" ")[:2])) <= 20
