"""slurm.conf: reading it as Slurm does, changing it so that it can be put back byte for byte."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.setup import slurmconf

LINES = ["Prolog=/usr/libexec/gpuhealth/prolog", "PrologFlags=Alloc"]


def write(root, name, text):
    """A file of a fixture node."""
    path = root / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_reads_as_slurm_does(tmp_path):
    """Case does not matter, comments end a line, a backslash continues it, includes are followed, the last wins."""
    write(tmp_path, "/etc/slurm/slurm.conf",
          "prolog=/a  # first\nKillWait=30\nInclude more.conf\nPROLOGFLAGS=X11,\\\nContain\n#Epilog=/no\nkillwait=40\n")
    write(tmp_path, "/etc/slurm/more.conf", 'Epilog="/b c"\nInclude /etc/slurm/slurm.conf\n')
    conf = slurmconf.read("/etc/slurm/slurm.conf", str(tmp_path))
    assert [item.value for item in conf.all("Prolog")] == ["/a"]
    assert (conf.get("KillWait"), conf.get("prologflags"), conf.get("Epilog")) == ("40", "X11,Contain", "/b c")
    assert conf.all("PrologFlags")[0][3:5] == (3, 4)
    assert conf.get("Nothing", "?") == "?"


def test_missing_file_is_an_error_of_ours(tmp_path):
    """With the path of the file that is missing, also of an included one."""
    write(tmp_path, "/etc/slurm/slurm.conf", "Include gone.conf\n")
    with pytest.raises(DataError, match="/etc/slurm/gone.conf: No such file"):
        slurmconf.read("/etc/slurm/slurm.conf", str(tmp_path))


@pytest.mark.parametrize("text", ["", "a=1", "a=1\n", "a=1\nb=2", "a=1\r\nb=2\r\n", "\n\n", "a=1\n\n"])
def test_put_back_byte_for_byte(text):
    """Also where the file had no end of line at its end, or DOS line ends."""
    gone = [0] if text.startswith("a") else []
    changed = slurmconf.edited(text, gone, LINES)
    assert slurmconf.revert(changed) == text
    assert slurmconf.edited(text, [], []) == text


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r"), max_size=200))
def test_put_back_any_text(text):
    """Any file that does not already have our marks."""
    assert slurmconf.revert(slurmconf.edited(text, list(range(text.count("\n"))), LINES)) == text


def test_what_the_admin_changed_since_stays():
    """Only our marks go."""
    changed = slurmconf.edited("Prolog=/a\nKillWait=30\n", [0], LINES)
    assert slurmconf.revert(changed.replace("KillWait=30", "KillWait=60") + "Epilog=/z\n") == (
        "Prolog=/a\nKillWait=60\nEpilog=/z\n")


def test_our_own_lines_do_not_count_unless_asked_for(tmp_path):
    """The installer plans from the site's text, the doctor looks at what is there."""
    write(tmp_path, "/s.conf", slurmconf.edited("Prolog=/a\n", [0], LINES))
    assert slurmconf.read("/s.conf", str(tmp_path)).get("Prolog") == "/a"
    assert slurmconf.read("/s.conf", str(tmp_path), with_ours=True).get("Prolog") == LINES[0].split("=")[1]


def test_scontrol_show_config():
    """As 24.11 and, with numbered keys, newer releases print it."""
    found = slurmconf.scontrol_settings(
        "Configuration data as of 2026-11-30T10:00:00\nKillWait                = 30 sec\n"
        "Epilog                  = (null)\n"
        "Prolog[0]               = /a\nProlog[1]               = /b/*\nSLURM_VERSION           = 24.11.5\n"
        "PrologEpilogTimeout     = 65534\n\nCgroup Support Configuration:\nx y = 1\n")
    assert found == {"killwait": "30 sec", "epilog": "", "prolog": "/a,/b/*", "slurm_version": "24.11.5",
                     "prologepilogtimeout": "65534"}


@pytest.mark.parametrize("text, expected", [
    ("30", 30), ("30 sec", 30), ("65534", None), ("INFINITE", None), ("", None), (None, None), ("0", 0)])
def test_seconds(text, expected):
    """Slurm's numbers for never are no numbers."""
    assert slurmconf.seconds(text) == expected


@pytest.mark.parametrize("flags, expected", [
    ("Alloc", True), ("X11", True), ("Serial,contain", True), ("Serial", False), ("", False), ("NoHold", False)])
def test_alloc(flags, expected):
    """Flags that run Prolog at the allocation."""
    assert slurmconf.has_alloc(flags) is expected
