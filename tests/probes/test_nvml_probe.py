"""The NVML probe: the real nvidia-ml-py on the test cluster's simulated library, and the pure part on its own.

What the simulation answers is set in a state file (containers/slurm-testbed/nvml/README.md).
"""
import json
import os
import shutil
import subprocess
import sys

import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.probes import nvml, nvml_libraries, nvml_pcie

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, "containers", "slurm-testbed", "nvml")
OK = F.SourceStatus("nvml", "ok")

SCRIPT = """
import json, sys
before = set(sys.modules)
from slurm_gpuhealth.probes import nvml
def emit(kind, plain):
    print(json.dumps([kind, plain]), flush=True)
nvml.read({"root": "", "phase": sys.argv[1]}, emit)
print(json.dumps(["modules", sorted(set(sys.modules) - before)]))
"""

# In front of SCRIPT: how many calls go through to nvidia-ml-py.
COUNTING = """
import atexit
from slurm_gpuhealth.probes import nvml_call
calls, call = [], nvml_call.Caller.__call__
nvml_call.Caller.__call__ = lambda self, name, *args: (calls.append(name), call(self, name, *args))[1]
atexit.register(lambda: print(json.dumps(["calls", calls])))
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Folder with the simulated libnvidia-ml.so.1 and, under old/, that of an old driver."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("no C compiler or no make")
    out = tmp_path_factory.mktemp("nvml")
    done = subprocess.run(["make", "-C", SOURCE, "OUT=%s" % out, "CC=cc", "CFLAGS=-O1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (out / "old").mkdir()
    (out / "old" / "libnvidia-ml.so.1").symlink_to(out / "libnvidia-ml-old.so.1")
    return out


@pytest.fixture
def probe(library, tmp_path):
    """Call with lines of the state file: the records of one reading."""
    def run(*lines, folder=library, timeout=None, phase="healthcheck", before=""):
        (tmp_path / "state").write_text("".join(line + "\n" for line in lines))
        env = dict(os.environ, LD_LIBRARY_PATH=str(folder), GPUSIM_STATE=str(tmp_path / "state"), PYTHONPATH=ROOT)
        child = subprocess.Popen([sys.executable, "-c", "import json" + before + SCRIPT, phase], env=env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, errors = child.communicate(timeout=timeout or 60)
            assert child.returncode == 0, errors
        except subprocess.TimeoutExpired:
            child.kill()
            out = child.communicate()[0]
        return [json.loads(line) for line in out.splitlines()]
    return run


def facts_of(records, known=(), minors=(), status=OK, expected=None):
    read = [tuple(record) for record in records if record[0] not in ("modules", "calls")]
    spec = {"known": [F.to_plain(one) for one in known], "minors": minors, "expected": expected}
    return nvml.assemble(read, spec, status)


def known_of(records):
    """What a healthy round teaches."""
    return tuple(F.KnownGpu(gpu.index, gpu.uuid, gpu.bdf, gpu.minor, gpu.serial) for gpu in facts_of(records)["gpus"])


@pytest.mark.allow_subprocess
class TestThroughRealBinding:
    """Each through nvidia-ml-py in a process of its own."""

    def test_eight_healthy_gpus(self, probe):
        """Every field of a healthy GPU is read, but for what row remapping replaced and what only a fault asks for."""
        fields = facts_of(probe())
        assert (fields["gpu_count"], len(fields["gpus"])) == (8, 8)
        assert fields["driver"].count(".") == 2 and fields["cuda"].count(".") == 1
        gpu = fields["gpus"][3]
        assert (gpu.index, gpu.nvml_index, gpu.minor, gpu.bdf, gpu.error) == (3, 3, 3, "0000:5d:00.0", None)
        unread = {name for name in F.Gpu._fields if not F.is_known(getattr(gpu, name))}
        assert unread == {"retired_pages", "retired_pending", "retired_counts", "ecc_locations", "pcie_width_slot",
                          "accounting"}

    def test_what_tells_most_comes_first(self, probe):
        """System and count before any GPU, all identities before any detail: a later hang leaves its trail."""
        assert [record[0] for record in probe()][:3] == ["system", "libraries", "count"]
        kinds = [record[0] for record in probe(phase="prolog")]
        assert kinds[:5] == ["system", "count", "reading", "persistence", "gpu"]
        assert kinds.count("gpu") == 16 and kinds[-2:] == ["done", "modules"]

    def test_no_heavy_module_comes_with_it(self, probe):
        """The stand-in for ctypes.util keeps subprocess and tempfile out: tens of milliseconds a round."""
        modules = set(probe()[-1][1])
        assert "pynvml" in modules
        assert not modules & {"subprocess", "tempfile", "shutil", "logging", "typing"}

    @pytest.mark.parametrize("at", ["call", "handle"])
    def test_lost_gpu(self, probe, at):
        """15 on the handle or on any call; who it was is known from before."""
        known = known_of(probe())
        fields = facts_of(probe("gpu3.lost=1", "gpu3.lost_at=" + at), known)
        gpu = fields["gpus"][3]
        assert (gpu.error.code, gpu.index, gpu.uuid, gpu.bdf) == (15, 3, known[3].uuid, "0000:5d:00.0")
        assert [other.error for other in fields["gpus"] if other is not gpu] == [None] * 7

    def test_lost_gpu_is_asked_no_further(self, probe):
        """Every call to a lost GPU can wait for most of a minute."""
        records = probe("gpu3.lost=1")
        assert [plain["nvml_index"] for kind, plain in records if kind == "reading"].count(3) == 1

    def test_removed_gpu_with_shuffled_minors(self, probe):
        """NVML renumbers; the index is that of gres.conf's device order, not of NVML and not of the minor."""
        shuffled = ["gpu%d.minor=%d" % (slot, minor) for slot, minor in enumerate((4, 7, 0, 2, 1, 3, 6, 5))]
        minors = (4, 7, 0, 2, 1, 3, 6, 5)
        whole = facts_of(probe(*shuffled), minors=minors)
        assert [gpu.index for gpu in whole["gpus"]] == list(range(8))
        rest = facts_of(probe(*shuffled, "gpu2.present=0"), minors=minors)
        assert [gpu.index for gpu in rest["gpus"]] == [0, 1, 3, 4, 5, 6, 7]

    def test_removed_gpu_without_gres_order(self, probe):
        """Without gres.conf's order the ranks move when one is gone: then what was learnt counts."""
        shuffled = ["gpu%d.minor=%d" % (slot, minor) for slot, minor in enumerate((4, 7, 0, 2, 1, 3, 6, 5))]
        known = known_of(probe(*shuffled))
        assert [one.index for one in known] == [4, 7, 0, 2, 1, 3, 6, 5]
        rest = facts_of(probe(*shuffled, "gpu2.present=0", "order=7,6,5"), known)
        assert [gpu.index for gpu in rest["gpus"]] == [5, 6, 3, 4, 7, 2, 1]

    @pytest.mark.parametrize("code", [9, 12, 18, 999])
    def test_start_errors(self, probe, code):
        """NVML that does not start gives its code, and no GPU."""
        fields = facts_of(probe("error.nvmlInitWithFlags=%d" % code))
        assert (fields["nvml"].code, fields["gpu_count"].code, fields["gpus"]) == (code, code, ())

    def test_no_library(self, probe, tmp_path):
        """A node without the library."""
        fields = facts_of(probe(folder=tmp_path))
        assert fields["nvml"].code == 12 and fields["nvml"].reason == F.ABSENT

    def test_denied_gpu_is_counted(self, probe):
        """Behind a device cgroup a GPU stays in the count and its handle says no."""
        fields = facts_of(probe("gpu2.denied=1"))
        assert fields["gpu_count"] == 8
        assert (fields["gpus"][2].error.code, fields["gpus"][2].error.reason) == (4, F.DENIED)

    def test_old_driver(self, probe, library):
        """Missing symbols make single fields unsupported and nothing else."""
        gpu = facts_of(probe(folder=library / "old"))["gpus"][0]
        assert gpu.error is None and gpu.pcie_width == 16
        assert gpu.pcie_gen_gpu_max.reason == F.UNSUPPORTED and gpu.pcie_gen_gpu_max.code == 13

    @pytest.mark.parametrize("line,field,reason", [
        ("gpu0.ecc_mode=!3", "ecc_mode", F.UNSUPPORTED), ("gpu0.ecc_mode=0", "ecc_uncorrected_volatile", F.UNSUPPORTED),
        ("gpu0.temp=!999", "temperature", F.ERROR), ("field.230=!3", "recovery_action", F.UNSUPPORTED),
        ("gpu0.field.230=!999", "recovery_action", F.ERROR), ("gpu0.uuid=!999", "uuid", F.ERROR),
    ])
    def test_one_field_that_fails(self, probe, line, field, reason):
        """An error of one value makes that field unknown; a field value's own return code counts, not its 0."""
        gpu = facts_of(probe(line if line.startswith("gpu") else "gpu0." + line))["gpus"][0]
        assert gpu.error is None and getattr(gpu, field).reason == reason

    def test_gpu_that_answers_nonsense_to_everything(self, probe):
        """One unknown error is a call's, four are the GPU's."""
        bad = ["gpu1.%s=!999" % name for name in ("pcie.width", "pcie.gen", "pstate", "util")]
        assert facts_of(probe(*bad))["gpus"][1].error.code == 999
        assert facts_of(probe("gpu1.temp=!999", "gpu1.power=!999"))["gpus"][1].error is None

    def test_values_that_drain(self, probe):
        """Counters, remap states, link, recovery action arrive in their fields."""
        gpu = facts_of(probe(
            "gpu1.ecc.uncorrected.volatile=3", "gpu1.ecc.uncorrected.aggregate=7", "gpu1.remap.pending=1",
            "gpu1.remap.failure=1", "gpu1.pcie.width=8", "gpu1.pcie.gen=1", "gpu1.recovery_action=4", "gpu1.util=50",
            "gpu1.proc=4711:1048576"))["gpus"][1]
        assert (gpu.ecc_uncorrected_volatile, gpu.ecc_uncorrected_aggregate, gpu.remap_pending, gpu.remap_failure) == (
            3, 7, 1, 1)
        assert (gpu.pcie_width, gpu.pcie_gen, gpu.recovery_action, gpu.utilization) == (8, 1, 4, 50)
        assert gpu.processes == ((4711, 1048576),)

    def test_where_the_errors_were(self, probe):
        """Locations are asked for only of totals above zero; before Ampere the SRAM is told by its parts."""
        gpu = facts_of(probe("gpu1.ecc.uncorrected.volatile.dram=3", "gpu1.ecc.corrected.aggregate.sram=5"))["gpus"][1]
        assert gpu.ecc_locations == {"volatile_uncorrected": {"dram": 3, "sram": 0},
                                     "aggregate_corrected": {"dram": 0, "sram": 5}}
        old = facts_of(probe("model=V100", "gpu0.ecc.uncorrected.aggregate.regfile=2"))["gpus"][0]
        assert old.ecc_locations["aggregate_uncorrected"]["regfile"] == 2
        assert "sram" not in old.ecc_locations["aggregate_uncorrected"]

    def test_sram_status(self, probe):
        """The structure goes in with its version and comes back with flag and counts."""
        gpu = facts_of(probe("gpu1.sram.threshold_exceeded=1", "gpu1.sram.bucket.l2=4"))["gpus"][1]
        assert (gpu.sram_threshold, gpu.sram_counts["l2"]) == (1, 4)
        denied = facts_of(probe("error.nvmlDeviceGetSramEccErrorStatus=4"))["gpus"][1]
        assert denied.sram_threshold.reason == F.DENIED

    @pytest.mark.parametrize("line", ["gpu1.inforom_corrupt=1", "error.gpu1.nvmlDeviceGetSerial=14"])
    def test_corrupt_inforom(self, probe, line):
        """14 from the checksum, or from any call that stumbles over it."""
        gpu = facts_of(probe(line))["gpus"][1]
        assert (gpu.error, gpu.inforom.code) == (None, 14)

    def test_a_field_that_the_driver_has_not_heard_of(self, probe):
        """"Invalid argument" for a field id is an old driver, and no error."""
        assert facts_of(probe("gpu0.field.230=!2"))["gpus"][0].recovery_action.reason == F.UNSUPPORTED

    def test_calls_of_a_job_start(self, probe):
        """What a healthy node of eight GPUs costs in prolog; who adds a call to it changes this number knowingly."""
        calls = dict(probe(phase="prolog", before=COUNTING))["calls"]
        assert len(calls) <= 4 + 8 * 36
        assert len(dict(probe(phase="healthcheck", before=COUNTING))["calls"]) <= 4 + 8 * 60

    def test_retired_pages_of_an_old_gpu(self, probe):
        """Before Ampere pages were retired instead of rows remapped."""
        gpu = facts_of(probe("model=V100", "gpu0.retired.dbe=0x1000,0x2000", "gpu0.retired.sbe=0x3000",
                             "gpu0.retired.pending=1"))["gpus"][0]
        assert (gpu.retired_pages, gpu.retired_pending) == (3, 1)
        assert gpu.remap_pending.reason == F.UNSUPPORTED

    def test_mig(self, probe):
        """With MIG much is not supported, and that is no error."""
        gpu = facts_of(probe("model=A100-MIG"))["gpus"][0]
        assert gpu.error is None and gpu.mig_mode == 1
        assert gpu.utilization.reason == F.UNSUPPORTED and gpu.remap_pending.reason == F.UNSUPPORTED

    def test_call_that_hangs(self, probe):
        """What came before the hang is kept: count, all identities, and which GPU it was."""
        records = probe("hang.call=nvmlDeviceGetTemperature", "hang.gpu=2", timeout=4)
        fields = facts_of(records, status=F.SourceStatus("nvml", "late", 4.0, "no answer in 4.0 s"))
        assert fields["gpu_count"] == 8 and len(fields["gpus"]) == 8
        assert fields["gpus"][1].temperature == 31
        assert fields["gpus"][2].temperature == F.Unknown(F.TIMEOUT, "no answer in 4.0 s")
        assert fields["gpus"][2].uuid.startswith("GPU-") and fields["gpus"][5].temperature == F.UNASKED

    def test_persistence_is_told_at_once(self, probe):
        """So that deadlines can grow: before the GPU's own record."""
        records = probe("gpu*.persistence=0")
        first = next(number for number, (kind, _) in enumerate(records) if kind == "persistence")
        assert records[first][1] == {"nvml_index": 0, "mode": 0}
        assert first < next(number for number, (kind, _) in enumerate(records) if kind == "gpu")


def gpu(index, **changes):
    return builders.healthy_gpu(index, **changes)


LOST = F.Unknown(F.ERROR, "GPU is lost", 15)


def silent(number):
    """A GPU that does not even say who it is."""
    return F.Gpu(nvml_index=number, error=LOST, uuid=LOST, bdf=LOST, minor=LOST)


def test_two_silent_gpus_are_placed_by_the_bus():
    """NVML counts in the order of PCI addresses: then two silent GPUs can be told apart."""
    gpus = [gpu(0), silent(1), gpu(2), silent(3)]
    placed = nvml.with_indices(gpus, builders.known_gpus(4), ())
    assert [one.index for one in placed] == [0, 1, 2, 3]


def test_one_silent_gpu_without_memory_gets_the_place_that_is_left():
    """First round ever, one GPU of four lost: the others say which it is."""
    gpus = [gpu(0), gpu(1), silent(2), gpu(3)]
    assert [one.index for one in nvml.with_indices(gpus, (), (), 4)] == [0, 1, 2, 3]
    assert not F.is_known(nvml.with_indices(gpus, (), (), 5)[2].index)


def test_two_silent_gpus_are_not_guessed():
    """Where NVML's order is another one, they stay without an index."""
    gpus = [gpu(2, nvml_index=0), silent(1), gpu(0, nvml_index=2), silent(3)]
    placed = nvml.with_indices(gpus, builders.known_gpus(4), ())
    assert [F.is_known(one.index) for one in placed] == [True, False, True, False]


def test_shrunk_list_without_memory_goes_by_minor():
    """First round ever, one GPU of eight already gone: the device number is the best there is."""
    gpus = [gpu(n, nvml_index=place)._replace(index=F.UNASKED) for place, n in enumerate((0, 1, 2, 4, 5, 6, 7))]
    assert [one.index for one in nvml.with_indices(gpus, (), (), 8)] == [0, 1, 2, 4, 5, 6, 7]


def test_width_of_the_port_above(tmp_path):
    """The port's lanes are in the folder above the device's own; "Unknown", 0 and 255 say nothing."""
    port = "/sys/devices/pci0000:15/0000:15:01.0"
    builders.write_node(tmp_path, {port + "/0000:18:00.0/vendor": "0x10de\n", port + "/max_link_width": "8\n"})
    link = tmp_path / "sys" / "bus" / "pci" / "devices"
    link.mkdir(parents=True)
    (link / "0000:18:00.0").symlink_to(str(tmp_path) + port + "/0000:18:00.0")
    assert nvml_pcie.slot_width("0000:18:00.0", str(tmp_path)) == 8
    for text in ("Unknown\n", "0\n", "255\n", ""):
        builders.write_node(tmp_path, {port + "/max_link_width": text})
        assert nvml_pcie.slot_width("0000:18:00.0", str(tmp_path)).reason == F.UNSUPPORTED
    assert nvml_pcie.slot_width("0000:19:00.0", str(tmp_path)).reason == F.ABSENT


@pytest.mark.parametrize("folder,target,version", [
    ("/usr/lib/x86_64-linux-gnu", "libcuda.so.550.90.07", "550.90.07"), ("/usr/lib64", "libcuda.so.470.57", "470.57"),
    ("/usr/lib/x86_64-linux-gnu", "nvidia/current/libcuda.so.535.183.01", "535.183.01")])
def test_version_of_libcuda(tmp_path, folder, target, version):
    """From the name of the file that libcuda.so.1 leads to, also over several links."""
    builders.write_node(tmp_path, {folder + "/" + target: ""})
    (tmp_path / (folder[1:] + "/libcuda.so.1")).symlink_to(target)
    assert nvml_libraries.libcuda_version(str(tmp_path)) == version


def test_version_of_libcuda_that_is_not_told(tmp_path):
    """No library, or a file without a version in its name: unknown, and never a mismatch."""
    assert nvml_libraries.libcuda_version(str(tmp_path)).reason == F.ABSENT
    builders.write_node(tmp_path, {"/usr/lib64/libcuda.so.1": ""})
    assert nvml_libraries.libcuda_version(str(tmp_path)).reason == F.UNSUPPORTED


@pytest.mark.parametrize("line", [
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build  (builder@host)  Fri May 31"])
def test_version_of_the_module(tmp_path, line):
    """Both kernel modules, the closed and the open one."""
    builders.write_node(tmp_path, {"/proc/driver/nvidia/version": line + "\nGCC version:  gcc version 12.2.0\n"})
    assert nvml_libraries.module_version(str(tmp_path)) == "550.90.07"
    assert nvml_libraries.module_version(str(tmp_path / "nowhere")).reason == F.ABSENT


def test_fixture_node(tmp_path):
    """nvml.json of a fixture node: defaults, changes, and a start error."""
    records = []

    def emit(kind, plain):
        records.append((kind, plain))
    plain = F.to_plain(gpu(0))
    del plain["nvml_index"]
    builders.write_node(tmp_path, {"/nvml.json": json.dumps({
        "driver": "550.90.07", "defaults": plain, "gpus": [{}, {"uuid": "GPU-1", "minor": 1, "bdf": "0000:2a:00.0"}]})})
    nvml.read({"root": str(tmp_path)}, emit)
    fields = facts_of(records)
    assert [one.index for one in fields["gpus"]] == [0, 1] and fields["gpu_count"] == 2
    records.clear()
    nvml.read({"root": str(tmp_path / "nowhere")}, emit)
    assert facts_of(records)["nvml"].code == 12
