"""The words of `testbed inject`, apt sources and slurm.conf of the test cluster: pure parts, no cluster needed."""

from __future__ import annotations

import pytest
from harness import parse_show
from testbed_lib import apt, faults, klines, slurmconf
from testbed_lib.errors import UsageError
from testbed_lib.faults import FAULTS, Node, Step
from testbed_lib.inject import nvml_calls

NODE = Node(gpus=8, state={}, calls=nvml_calls())
EXAMPLES = {
    "gpu-lost": "gpu3", "gpu-gone": "gpu3", "gpu-denied": "3", "remap-failure": "gpu1", "remap-pending": "all",
    "off-bus": "gpu3", "ecc": "gpu0 dram 2", "retired-pages": "gpu0 3", "pcie-width": "gpu5 8",
    "pcie-gen": "gpu5 1 busy", "mig": "all 7", "model": "A100", "nvml-hang": "dstate nvmlInitWithFlags gpu3 times=2",
    "nvml-slow": "all 500", "nvml-error": "nvmlDeviceGetTemperature 999 gpu1",
    "no-symbol": "nvmlDeviceGetGpuFabricInfoV",
    "driver": "535.54.03 12020", "temp": "gpu0 91", "power": "gpu0 700", "clock-reasons": "gpu0 0x40",
    "recovery-action": "gpu3 2", "fabric": "all 1", "fabric-health": "gpu0 2", "clocks": "gpu2 345",
    "nvlink-down": "gpu2 4", "process": "gpu0 4242 1024", "set": "gpu0.uuid=GPU-x model=H100", "xid": "79 gpu3",
    "sxid": "12028 1 fatal", "aer": "gpu0 fatal", "fs-error": "sda1 xfs", "klog": "any text at all",
    "mount-gone": "/data", "mount-ro": "/data", "mount-hang": "/data", "mount-back": "/shared", "kill": "",
    "reboot": "", "slurmd-stop": "", "slurmd-start": "", "remap-low": "gpu1", "unrepairable": "gpu1",
    "repair-pending": "gpu1", "inforom": "gpu1", "sram-limit": "gpu1", "pcie-replay": "gpu1 500", "swap": "gpu1",
    "vbios": "gpu1 96.00.61.00.01", "nvlink-errors": "gpu3 5 recovery 2", "slowdown": "gpu2 0x48",
    "fabric-status": "gpu1 23", "temp-mem": "gpu1 96", "compute-mode": "gpu1 2", "persistence": "all 0",
    "app-clock": "gpu1 1200",
}  # fmt: skip


def test_every_fault_has_an_example_here():
    """A new fault comes with an example."""
    assert set(EXAMPLES) == set(FAULTS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_parse(name):
    """Each fault accepts its documented words and gives at least one step."""
    steps = faults.parse(NODE, [name, *EXAMPLES[name].split()])
    assert steps and all(isinstance(step, Step) for step in steps)


@pytest.mark.parametrize("words, hint", [
    ("gpu-lots gpu3", "did you mean gpu-lost?"),
    ("gpu-lost gpu9", "gpu0 to gpu7"),
    ("ecc gpu0 drum 2", "did you mean dram?"),
    ("ecc gpu0 dram two", "count is a number"),
    ("model H1000", "did you mean H100?"),
    ("nvml-error nvmlDeviceGetTemprature 3", "did you mean nvmlDeviceGetTemperature?"),
    ("mount-gone /dta", "did you mean /data?"),
    ("pcie-width gpu1", "takes 2 words, not 1 (usage: pcie-width GPU LANES)"),
    ("kill now", "takes 0 words"),
    ("set gpu0.lost", "not KEY=VALUE"),
])  # fmt: skip
def test_wrong_words_are_one_line_with_the_nearest_right_name(words, hint):
    """A wrong word changes nothing and says what would be right."""
    with pytest.raises(UsageError) as caught:
        faults.parse(NODE, words.split())
    assert hint in str(caught.value) and "\n" not in str(caught.value)


def test_xid_line_carries_the_slots_pci_address():
    """The kernel log names the GPU by its PCI address without the function, also a changed one."""
    assert klines.xid(31, klines.bdf("gpu3", {}))[0].startswith("NVRM: Xid (PCI:0000:5d:00): 31, pid=")
    assert "(PCI:0000:07:00)" in klines.xid(79, klines.bdf("gpu3", {"gpu3.bdf": "0000:07:00.0"}))[0]


def test_dstate_freezes_before_the_hang_is_set():
    """The call must not find the file system still answering."""
    steps = faults.parse(NODE, ["nvml-hang", "dstate"])
    assert [step.verb for step in steps] == ["freeze", "set"]


def test_mirrors_are_read_from_all_three_source_formats(tmp_path):
    """One-line, deb822 and mirror lists count; security, sources, disabled and third parties do not."""
    folder = tmp_path / "etc/apt"
    (folder / "sources.list.d").mkdir(parents=True)
    (folder / "mirrors").mkdir()
    (folder / "sources.list").write_text(
        "deb [signed-by=/k arch=amd64] http://a.example/debian bookworm main\n"
        "deb-src http://src.example/debian bookworm main\n# deb http://no.example/debian bookworm main\n")  # fmt: skip
    (folder / "sources.list.d/x.sources").write_text(
        "Types: deb\nURIs: http://b.example/debian/\nSuites: trixie trixie-updates\nComponents: main\n\n"
        "Types: deb\nURIs: http://c.example/debian-security\nSuites: trixie-security\n\n"
        "Types: deb\nEnabled: no\nURIs: http://d.example/debian\nSuites: trixie\n")  # fmt: skip
    (folder / "sources.list.d/y.list").write_text("deb mirror+file:/etc/apt/mirrors/debian.list trixie main\n"
                                                  "deb http://third.example/repo nodistro main\n")  # fmt: skip
    (folder / "mirrors/debian.list").write_text("https://e.example/debian\n")
    assert apt.debian_mirrors(tmp_path) == ["http://a.example/debian", "http://b.example/debian", "https://e.example/debian"]


def test_slurm_conf_overrides_replace_and_drop_defaults():
    """A changed key replaces the default, an empty value drops it, None goes back."""
    changed = slurmconf.merged({"KillWait": "5", "JobFileAppend": ""}, {})
    text = slurmconf.slurm_conf(3, 8, changed)
    assert "\nKillWait=5\n" in text and "JobFileAppend" not in text
    assert slurmconf.merged({"KillWait": None}, changed) == {"JobFileAppend": ""}


def test_show_lines_with_blanks_in_values():
    """A reason or a path with blanks stays whole."""
    line = "JobId=5 JobName=a b Reason=Node fail x Comment=k=v Restarts=1 StdOut=/home/a b/out"
    assert parse_show(line) == {"JobId": "5", "JobName": "a b", "Reason": "Node fail x", "Comment": "k=v",
                                "Restarts": "1", "StdOut": "/home/a b/out"}  # fmt: skip
