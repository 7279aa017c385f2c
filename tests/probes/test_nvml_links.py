"""NVLink, fabric, temperature, clocks, modes and MIG through the real nvidia-ml-py, with the checks behind them."""
import types

import pytest
import simulated_node

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.probes import nvml_thermal

pytestmark = pytest.mark.allow_subprocess

library, rounds = simulated_node.library, simulated_node.rounds

WORKS = ["gpu2.util=98", "gpu2.clock.sm=1700"]


def only(found):
    """The findings of a round without their subject's GPU."""
    return {code: severity for (code, _), (severity, _) in found.findings.items()}


class FakeDevice:
    """Answers what a reader asks from lists, one entry after the other; the last one stays."""

    def __init__(self, **answers):
        self.nvml = types.SimpleNamespace(NVML_TEMPERATURE_GPU=0, NVML_CLOCK_SM=1, NVML_CLOCK_MEM=2,
                                          NVML_CLOCK_GRAPHICS=0)
        self.values, self.answers, self.in_rounds, self.error = {}, answers, True, None

    def ask(self, function, *args):
        rest = self.answers.get(function, [F.Unknown(F.UNSUPPORTED)])
        return rest.pop(0) if len(rest) > 1 else rest[0]

    optional = ask

    def newest(self, function, older):
        return self.ask(function)

    def take(self, name, answer, part=None):
        self.values[name] = part(answer) if part is not None and F.is_known(answer) else answer

    def fields(self, *ids):
        return dict.fromkeys(ids, F.Unknown(F.UNSUPPORTED))


@pytest.mark.parametrize("masks,samples", [
    ([1], [1]), ([4], [4]), ([8, 0], [8, 0]), ([8], [8, 8, 8]), ([0x48, 0x48, 0], [0x48, 0x48, 0])])
def test_looks_again_only_where_the_hardware_slows(masks, samples, monkeypatch):
    """Two more looks 0.1 s apart while the bit stands, none on the healthy path, none in a starting job's prolog."""
    slept = []
    monkeypatch.setattr(nvml_thermal.time, "sleep", slept.append)
    device = FakeDevice(nvmlDeviceGetCurrentClocksEventReasons=list(masks))
    nvml_thermal.read(device)
    assert device.values["reason_samples"] == samples and slept == [0.1] * (len(samples) - 1)
    quick = FakeDevice(nvmlDeviceGetCurrentClocksEventReasons=list(masks))
    quick.in_rounds = False
    nvml_thermal.read(quick)
    assert "reason_samples" not in quick.values and slept == [0.1] * (len(samples) - 1)


class TestNvlink:
    def test_down_link_is_named(self, rounds):
        """One link of one GPU: fatal, with its number; found in the first round ever, by the other GPUs."""
        found, = rounds(["gpu3.nvlink.5.state=0"])
        assert found.findings == {("GH-NVLINK-DN", "gpu3"): ("fatal", "link 5 down")}

    def test_bridge_that_fails(self, rounds):
        """Two bridged cards whose other links are inactive for good: what was up before counts."""
        bridged = ["gpus=2", "gpu*.nvlink_switches=0"] + ["gpu*.nvlink.%d.state=0" % n for n in (4, 5, 10, 11, 16, 17)]
        good, bad = rounds(bridged, bridged + ["gpu1.nvlink.3.state=0"], gpus=2)
        assert good.findings == {}
        assert bad.findings == {("GH-NVLINK-DN", "gpu1"): ("fatal", "link 3 down")}

    def test_what_was_up_is_not_forgotten_by_a_fault(self, rounds):
        """The round with the fault must not become what is normal, however often it repeats."""
        down = ["gpus=2", "gpu1.nvlink.3.state=0"]
        found = rounds(["gpus=2"], down, down, down, gpus=2)
        assert [one.fatal for one in found] == [[], *[["GH-NVLINK-DN"]] * 3]

    def test_all_links_of_all_gpus(self, rounds):
        """All at once is the fabric: one finding, and not eight."""
        down = ["gpu*.nvlink.%d.state=0" % n for n in range(18)]
        assert rounds([], down)[1].findings == {("GH-NVLINK-ALL", "gpus"): ("fatal", "no link up on 8 GPUs")}

    def test_sleeping_link(self, rounds):
        """State 2 is asleep, which is up."""
        assert rounds([], ["gpu3.nvlink.5.state=2"])[1].findings == {}

    def test_errors_that_grow(self, rounds):
        """A recovery between two rounds is a warning; standing still, it is none any more; going back neither."""
        once = ["gpu3.nvlink.5.err.recovery=2"]
        found = rounds([], once, once, ["gpu3.nvlink.5.err.recovery=1"])
        assert [one.findings for one in found] == [
            {}, {("GH-NVLINK-ERR", "gpu3"): ("warning", "link 5 +2 recovery")}, {}, {}]

    def test_counters_of_nvlink_5(self, rounds):
        """Where the counters of before are not supported, those of Blackwell are read, and bit error rates decoded."""
        new = ["gpu*.field.%d=!3" % number for number in (161, 162, 163)]
        found = rounds(new, new + ["gpu3.nvlink.5.err.recovery_failed=1", "gpu1.nvlink.0.symbol_ber=0x309",
                                   "gpu1.nvlink.1.symbol_ber=0xfff"])
        assert found[1].findings == {
            ("GH-NVLINK-ERR", "gpu3"): ("warning", "link 5 +1 recovery failed"),
            ("GH-NVLINK-ERR", "gpu1"): ("warning", "link 0 symbol ber 3e-09")}

    def test_counters_of_an_old_driver(self, rounds):
        """Drivers that do not know the fields with a scope: by the fields of each link, and by one call a state."""
        old = ["model=A100"] + ["gpu*.field.%d=!2" % number for number in (
            161, 162, 163, 165, 206, 207, 211, 214, 215, 220, 222)]
        found = rounds(old, old + ["gpu3.nvlink.7.err.recovery=3", "gpu2.nvlink.11.state=0"])
        assert found[0].findings == {}
        assert len(found[0].gpus[0]["nvlinks"]) == 12
        assert found[1].findings == {("GH-NVLINK-ERR", "gpu3"): ("warning", "link 7 +3 recovery"),
                                     ("GH-NVLINK-DN", "gpu2"): ("fatal", "link 11 down")}

    def test_driver_that_does_not_count_links(self, rounds):
        """The number of links is not known: asked until the driver says that there is no such link."""
        found, = rounds(["model=V100", "gpu*.field.91=!2", "gpu*.field.165=!2"])
        assert found.findings == {} and [len(gpu["nvlinks"]) for gpu in found.gpus] == [6] * 8

    def test_prolog_reads_states_only(self, rounds):
        """A starting job waits for no counters."""
        found, = rounds({"lines": ["gpu3.nvlink.5.state=0"], "phase": "prolog"})
        assert found.fatal == ["GH-NVLINK-DN"]
        assert not any("errors" in link for gpu in found.gpus for link in gpu["nvlinks"])

    def test_unread_state_is_unknown(self, rounds):
        """A field's own return code counts, not the 0 beside it: unknown, not down."""
        found, = rounds(["gpu3.nvlink.5.state=!999"])
        assert found.findings == {("GH-GPU-UNREAD", "gpu3"): ("unknown", "nvlink state: unknown error")}


class TestFabric:
    def test_fabric_manager_does_not_run(self, rounds):
        """State 1 on all: one finding, with what systemd says."""
        service = {"name": "nvidia-fabricmanager", "load": "loaded", "active": "failed", "sub": "", "result": ""}
        found, = rounds({"lines": ["gpu*.fabric.state=1"], "services": [service]})
        assert found.findings == {("GH-FABRIC-DN", "gpus"): (
            "fatal", "registration not started on 8 GPUs; nvidia-fabricmanager is failed")}

    def test_fabric_still_starting(self, rounds):
        """After a boot: notes while it starts, then well."""
        starting = {"lines": ["gpu*.fabric.state=2"], "uptime": 50.0}
        found = rounds(starting, [])
        assert [only(one) for one in found] == [{"GH-FABRIC-DN": "note"}, {}]

    def test_in_progress_for_ever(self, rounds):
        """The third round in progress is a fault, and stays one."""
        found = rounds(*[["gpu*.fabric.state=2"]] * 4)
        assert [one.fatal for one in found] == [[], [], ["GH-FABRIC-DN"], ["GH-FABRIC-DN"]]

    def test_in_progress_starts_no_job(self, rounds):
        """CUDA would fail at once with error 802."""
        assert rounds({"lines": ["gpu*.fabric.state=2"], "phase": "prolog"})[0].fatal == ["GH-FABRIC-DN"]

    def test_one_gpu(self, rounds):
        """Status, summary and state of one GPU each."""
        found, = rounds(["gpu1.fabric.status=23", "gpu2.fabric.health_summary=2", "gpu3.fabric.state=1",
                         "gpu4.fabric.health_summary=3"])
        assert only(found) == {"GH-FABRIC-BAD": "fatal", "GH-FABRIC-LIM": "warning"}
        assert sorted(subject for _, subject in found.findings) == ["gpu1", "gpu2", "gpu3", "gpu4"]

    def test_link_and_fabric_are_one_fault(self, rounds):
        """A GPU whose link is down and whose fabric is limited has one fault."""
        found, = rounds(["gpu3.nvlink.5.state=0", "gpu3.fabric.health_summary=3"])
        assert list(found.findings) == [("GH-NVLINK-DN", "gpu3")]

    def test_no_fabric_and_no_links_are_one_fault(self, rounds):
        """Without Fabric Manager the links are not trained either."""
        down = ["gpu*.fabric.state=1", *("gpu*.nvlink.%d.state=0" % number for number in range(18))]
        assert list(rounds([], down)[1].findings) == [("GH-FABRIC-DN", "gpus")]


class TestHeat:
    def test_by_thresholds(self, rounds):
        """Against the GPU's own limits, each level."""
        found, = rounds(["gpu1.temp=87", "gpu2.temp=90", "gpu3.temp_mem=96", "gpu4.temp=86"])
        assert found.findings == {
            ("GH-THERMAL", "gpu1"): ("warning", "87 C of 87 C"), ("GH-OVERHEAT", "gpu2"): ("fatal", "90 C"),
            ("GH-THERMAL", "gpu3"): ("warning", "memory 96 C of 95 C")}

    def test_by_distance(self, rounds):
        """GPUs that tell distances to the limits (T.Limit): negative ones are above them."""
        limits = ["gpu*.tlimit.shutdown=-8", "gpu*.tlimit.slowdown=-2", "gpu*.tlimit.gpu_max=0"]
        found = rounds(limits + ["gpu*.temp_margin=56"],
                       limits + ["gpu1.temp_margin=0", "gpu2.temp_margin=-6", "gpu3.temp_margin=2"])
        assert found[0].gpus[0]["temperature_limits"] == {"gpu_max": 87, "slowdown": 89, "shutdown": 95}
        assert only(found[0]) == {}
        assert {subject: severity for (_, subject), (severity, _) in found[1].findings.items()} == {
            "gpu1": "warning", "gpu2": "fatal"}

    def test_above_slowdown(self, rounds):
        """Above the slowdown temperature: a warning, a fault in the third round."""
        hot = ["gpu2.temp=90", "gpu2.temp.shutdown=100"]
        assert [only(one) for one in rounds(hot, hot, hot)] == [
            {"GH-THERMAL": "warning"}, {"GH-THERMAL": "warning"}, {"GH-OVERHEAT": "fatal"}]

    @pytest.mark.parametrize("mask,code", [
        (0x48, "GH-OVERHEAT"), (0x88, "GH-POWER-BRAKE"), (0x8, "GH-SLOWDOWN")])
    def test_hardware_slowdown(self, rounds, mask, code):
        """Under load, in each of three looks, in three rounds in a row."""
        slow = [*WORKS, "gpu2.clock_reasons=%d" % mask]
        found = rounds(slow, slow, slow, WORKS)
        assert [only(one).get(code) for one in found] == ["note", "note", "fatal", None]
        assert found[0].gpus[2]["reason_samples"] == [mask] * 3 and found[0].gpus[1]["reason_samples"] == [1]

    def test_a_round_between_breaks_the_row(self, rounds):
        """Two rounds, a good one, two rounds: never three in a row."""
        slow = [*WORKS, "gpu2.clock_reasons=8"]
        assert [one.fatal for one in rounds(slow, slow, WORKS, slow, slow)] == [[]] * 5

    def test_by_the_drivers_counter(self, rounds):
        """Idle at each look, but held down for most of the time between."""
        steps = [["gpu2.violation.hw_thermal=%d" % (n * 200 * 10**9)] for n in range(5)]
        assert [only(one).get("GH-OVERHEAT") for one in rounds(*steps)] == [None, "note", "note", "fatal", "fatal"]

    def test_low_clock(self, rounds):
        """Fully used, at a fifth of its clock, without a reason."""
        slow = ["gpu2.util=100", "gpu2.clock.sm=345", "gpu2.clock_reasons=0"]
        assert [only(one).get("GH-CLOCK-LOW") for one in rounds(slow, slow, slow)] == ["note", "note", "warning"]


class TestModes:
    def test_modes(self, rounds):
        """Persistence, compute mode, application clocks."""
        found, = rounds(["gpu0.persistence=0", "gpu1.compute_mode=2", "gpu2.compute_mode=3",
                         "gpu3.clock.app.graphics=1200"])
        assert {(code, subject): severity for (code, subject), (severity, _) in found.findings.items()} == {
            ("GH-PERSIST-OFF", "gpus"): "warning", ("GH-COMP-PROH", "gpu1"): "fatal",
            ("GH-COMP-EXCL", "gpu2"): "warning", ("GH-APP-CLOCK", "gpu3"): "warning"}

    def test_mig_layout(self, rounds):
        """The layout that the site expects, by names, and by sizes where the driver gives no names."""
        layout = ["model=A100-MIG", "gpu*.mig_instances=3", "gpu*.mig_profiles=3g.40gb,2g.20gb,1g.10gb"]
        sizes = [*layout, "gpu*.mig_names=0"]
        cfg = {"expected": {"mig": ["1g.10gb", "2g.20gb", "3g.40gb"]}}
        found = rounds(layout, sizes, [*layout, "gpu3.mig_instances=2"],
                       ["model=A100-MIG", "gpu*.mig_instances=0"], cfg=cfg)
        assert [sorted(found[0].gpus[0]["mig_devices"]), sorted(found[1].gpus[0]["mig_devices"])] == [
            ["1g.10gb", "2g.20gb", "3g.40gb"]] * 2
        assert [one.findings for one in found[:2]] == [{}, {}]
        assert found[2].findings == {("GH-MIG-LAYOUT", "gpu3"): ("warning", "2g.20gb+3g.40gb")}
        assert len(found[3].findings) == 8 and found[3].fatal == []

    def test_mig_mode_waits_for_a_reset(self, rounds):
        """A note."""
        assert only(rounds(["gpu3.mig_pending=1"])[0]) == {"GH-MIG-PEND": "note"}
