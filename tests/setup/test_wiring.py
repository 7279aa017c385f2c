"""Our hooks beside what a site already has in slurm.conf."""
import pytest

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.setup import slurmconf, wiring

PREFIX = "/usr/libexec/gpuhealth"
BARE = ["HealthCheckInterval=120", "HealthCheckNodeState=ANY,CYCLE", "PrologFlags=Alloc", "PrologEpilogTimeout=120"]


def plan(tmp_path, text, folders=(), **options):
    """The wiring for a slurm.conf text; folders: those that exist on the node."""
    (tmp_path / "etc").mkdir(exist_ok=True)
    (tmp_path / "etc/slurm.conf").write_text(text)
    conf = slurmconf.read("/etc/slurm.conf", str(tmp_path))
    return wiring.plan(conf, PREFIX, lambda path: path in folders, **options)


def test_nothing_there(tmp_path):
    """An empty slurm.conf gets the hooks and what they need."""
    wired = plan(tmp_path, "ClusterName=x\n")
    assert sorted(wired.lines) == sorted([
        "Prolog=%s/prolog" % PREFIX, "Epilog=%s/epilog" % PREFIX, "HealthCheckProgram=%s/healthcheck" % PREFIX] + BARE)
    assert wired.comment_out == wired.links == wired.scripts == ()


def test_a_script_of_the_site_runs_after_ours(tmp_path):
    """slurmd runs a pattern in reverse alphabetical order: zz-gpuhealth, then the site's in their order."""
    wired = plan(tmp_path, "Prolog=/site/one\nProlog=two.sh\n")
    links = dict(wired.links)
    folder = PREFIX + "/prolog.d/"
    assert [links[name] for name in sorted(links, reverse=True)] == [PREFIX + "/prolog", "/site/one", "/etc/two.sh"]
    assert all(name.startswith(folder) for name in links)
    assert "Prolog=%s*" % folder in wired.lines
    assert [item.first for item in wired.comment_out] == [0, 1]


def test_a_folder_of_the_site_gets_a_link(tmp_path):
    """prolog.d: nothing in slurm.conf changes for it."""
    wired = plan(tmp_path, "Prolog=/etc/prolog.d/*\nEpilog=/etc/epilog.d/*.sh\n", ("/etc/prolog.d", "/etc/epilog.d"))
    assert wired.links == (("/etc/prolog.d/zz-gpuhealth", PREFIX + "/prolog"),
                           ("/etc/epilog.d/zz-gpuhealth.sh", PREFIX + "/epilog"))
    assert not any(line.startswith(("Prolog=", "Epilog=")) for line in wired.lines)
    assert wired.comment_out == ()


@pytest.mark.parametrize("text, folders", [("Prolog=/etc/prolog.d/*.py\n", ("/etc/prolog.d",)),
                                           ("Prolog=/etc/gone.d/*\n", ())])
def test_a_pattern_that_does_not_fit_is_left_to_the_admin(tmp_path, text, folders):
    """Better no installation than a Prolog that no longer runs."""
    with pytest.raises(DataError, match="does not fit this pattern"):
        plan(tmp_path, text, folders)


def test_nhc_runs_first_through_a_wrapper(tmp_path):
    """There is one HealthCheckProgram; the site's interval stays."""
    wired = plan(tmp_path, "HealthCheckProgram=/usr/sbin/nhc\nHealthCheckInterval=300\nHealthCheckNodeState=ANY\n")
    assert wired.scripts == ((PREFIX + "/healthcheck-site", "/usr/sbin/nhc"),)
    assert "HealthCheckProgram=%s/healthcheck-site" % PREFIX in wired.lines
    assert not any(line.startswith(("HealthCheckInterval", "HealthCheckNodeState")) for line in wired.lines)
    assert "60 s" in wired.notes[0]


def test_an_interval_of_zero_is_replaced(tmp_path):
    """HealthCheckInterval=0 switches the check off."""
    wired = plan(tmp_path, "HealthCheckInterval=0\n")
    assert "HealthCheckInterval=120" in wired.lines
    assert [item.key for item in wired.comment_out] == ["healthcheckinterval"]


@pytest.mark.parametrize("flags, line", [("Serial", "PrologFlags=Serial,Alloc"), ("X11", None), ("Alloc", None)])
def test_flags_are_added_to(tmp_path, flags, line):
    """Alloc joins the site's flags where they do not bring it."""
    wired = plan(tmp_path, "PrologFlags=%s\n" % flags)
    assert [one for one in wired.lines if one.startswith("PrologFlags")] == ([line] if line else [])


def test_ours_are_left_alone(tmp_path):
    """Lines that somebody put there by hand are as good."""
    text = (f"Prolog={PREFIX}/prolog\nEpilog={PREFIX}/epilog\nHealthCheckProgram={PREFIX}/healthcheck\n"
            "PrologFlags=Alloc\nPrologEpilogTimeout=90\n")
    assert plan(tmp_path, text) == wiring.Wiring()


def test_task_prolog_only_on_request(tmp_path):
    """It is optional; a site's own stays, with a note."""
    assert "TaskProlog=%s/taskprolog" % PREFIX in plan(tmp_path, "", task_prolog=True).lines
    wired = plan(tmp_path, "TaskProlog=/site/tp\n", task_prolog=True)
    assert not any(line.startswith("TaskProlog") for line in wired.lines)
    assert "/site/tp stays" in " ".join(wired.notes)


def test_a_line_with_several_settings_is_not_torn(tmp_path):
    """Commenting it out would take the other setting along."""
    with pytest.raises(DataError, match="line 2: has other settings beside prolog"):
        plan(tmp_path, "\nProlog=/a KillWait=30\n")
