"""Every sample of tests/corpus: what must be found in it, and nothing else, by `log parse` and by the hooks' reader."""
import io
import json
import os

import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.cli import log_cmd
from slurm_gpuhealth.parse import journal_text, kmsg, log_lines
from slurm_gpuhealth.probes import kmsg as probe

CORPUS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "corpus")


def blocks(name):
    """{id: text of the block} of a file of samples."""
    found, ident = {}, ""
    with open(os.path.join(CORPUS, name), encoding="utf-8") as handle:
        for line in handle:
            if line.startswith("### "):
                ident = line.split()[1]
                found[ident] = ""
            elif ident:
                found[ident] += line
    return {ident: text.rstrip("\n") + "\n" for ident, text in found.items()}


def labels(name):
    with open(os.path.join(CORPUS, name), encoding="utf-8") as handle:
        return json.load(handle)


SAMPLES = [(ident, text, labels(wanted)[ident])
           for name, wanted in (("kmsg_samples.txt", "labels.json"), ("variants.txt", "variants.json"))
           for ident, text in blocks(name).items()]


def label_of(event):
    """What is written down of an event: all but its line, message and times."""
    one = {"kind": event["kind"], "code": event["code"], "bdf": event["bdf"], "count": event["count"]}
    if event["pid"] is not None:
        one["pid"] = event["pid"]
    if event["process"]:
        one["process"] = event["process"]
    data = {key: value for key, value in event["data"].items() if key != "message"}
    return dict(one, data=data) if data else one


@pytest.mark.parametrize("ident,text,wanted", SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_log_parse_finds_what_is_there(ident, text, wanted):
    """Kind, code, address, process and data of each event of the sample; no event that is not there."""
    assert [label_of(event) for event in log_cmd.read(io.BytesIO(text.encode()))] == wanted


@pytest.mark.parametrize("ident,text,wanted", SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_hooks_read_the_same(ident, text, wanted, tmp_path):
    """The same lines as records of /dev/kmsg: the same events, but for what programs wrote, which is dropped."""
    lines = []
    form = journal_text.form_of(text.encode())
    if form:
        found = [log_lines.read(one) for one in journal_text.entries(io.BytesIO(text.encode()), form)]
    else:
        found = [(line, log_lines.parse_line(raw)[1]) for raw in text.splitlines() for line in [log_lines.split(raw)]]
    if any(line.form == "redfish" or parsed and "XID" in line.text for line, parsed in found):
        pytest.skip("a BMC's log is no kernel log")
    for number, (line, parsed) in enumerate(found):
        program = line.facility or (parsed is not None and parsed[5].get("injected"))
        lines.append(builders.raw(line.text.replace("\n", "\\x0a"), number, 1000000, 12 if program else 4))
    builders.write_node(tmp_path, {"/proc/stat": "btime 1796000000\n", "/kmsg": "".join(lines)})
    records = []
    probe.read({"root": str(tmp_path), "path": "/kmsg", "cursor": None, "boot_id": "b1"},
               lambda kind, plain: records.append((kind, json.loads(json.dumps(plain)))))
    klog = probe.assemble(records, {}, F.SourceStatus("kmsg", "ok"))["klog"]
    assert sorted({(event.kind, event.code or 0, event.bdf) for event in klog.events}) == sorted(
        {(one["kind"], one["code"] or 0, one["bdf"]) for one in wanted
         if not {"injected", "stamp_unread"} & set(one.get("data", ()))})      # hooks read no unknown stamp


def test_each_kind_of_the_documentation_has_a_sample():
    """The kinds that are part of the documented interface are all in the corpus."""
    kinds = {one["kind"] for _, _, wanted in SAMPLES for one in wanted}
    assert {"xid", "sxid", "gpu_fell_off", "rm_init_failed", "nvml_version_mismatch", "aer_corrected",
            "aer_uncorrected", "fs_error",
            "fs_readonly", "nfs_not_responding", "lustre_lost", "nvme", "block_io", "mce_corrected",
            "mce_uncorrected", "edac_corrected", "edac_uncorrected", "oom_kill", "hung_task", "link_flap", "mlx5",
            "driver_load"} <= kinds


def test_every_rule_has_a_sample():
    """A rule that no sample matches would be untested."""
    from slurm_gpuhealth.parse import kernel_kinds
    from slurm_gpuhealth.parse.kernel_rules import RULES

    texts = [log_lines.split(raw).text for _, text, _ in SAMPLES for raw in text.splitlines()]
    for text in texts:
        kernel_kinds.parse(text)
    unused = [row[3] for number, row in enumerate(RULES) if number not in kernel_kinds._compiled
              or not any(kernel_kinds._compiled[number].match(text) for text in texts)]
    assert unused == []


@pytest.mark.parametrize("ident,text,wanted", SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_the_quick_look_misses_nothing(ident, text, wanted):
    """Among many dull lines each line that the parser understands is given, in any form and as a raw record."""
    dull = b"[    1.000000] systemd[1]: Started something.\n" * 3
    for raw in text.splitlines():
        found, parsed = log_lines.parse_line(raw)
        if parsed is None:
            continue
        for around in (b"", dull, b"May 27 16:50:10 n1 kernel: dull\n"):
            assert raw.encode() in list(log_lines.interesting(around + raw.encode() + b"\n" + around))
        if "injected" not in parsed[5] and found.form != "redfish":
            record = b"4,1,1,-;" + found.text.replace("\n", "\\x0a").encode()
            assert record in kmsg.interesting_records(b"6,1,1,-;dull\n" + record + b"\n")
