"""The simulated NVML of the test cluster, through the real nvidia-ml-py."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nvml_sim_cases import CASES, PRELUDE

pytestmark = pytest.mark.allow_subprocess

SOURCE = Path(__file__).resolve().parents[2] / "containers" / "slurm-testbed" / "nvml"
README = (SOURCE / "README.md").read_text()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both libraries; `old/` holds the old one under the name that programs load."""
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("no C compiler or no make")
    out = tmp_path_factory.mktemp("nvml")
    command = ["make", "-C", str(SOURCE), f"OUT={out}", "CC=cc", "CFLAGS=-O1 -Werror"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (out / "old").mkdir()
    (out / "old" / "libnvidia-ml.so.1").symlink_to(out / "libnvidia-ml-old.so.1")
    return out


class Node:
    """One simulated node: a state file, and children that ask NVML about it."""

    def __init__(self, library: Path, state: Path) -> None:
        self.library, self.state = library, state

    def put(self, *lines: str) -> None:
        self.state.write_text("".join(line + "\n" for line in lines))

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "LD_LIBRARY_PATH": str(self.library), "GPUSIM_STATE": str(self.state)}

    def start(self, body: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + body]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def ask(self, body: str) -> object:
        """What `out` is at the end of the body."""
        child = self.start(f"{body}\nprint(json.dumps(out))")
        output, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors
        return json.loads(output)

    def smi(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SOURCE / "nvidia-smi"), *args]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )


@pytest.fixture
def node(built: Path, tmp_path: Path) -> Node:
    return Node(built, tmp_path / "state")


# ---- every key ----


@pytest.fixture(scope="module")
def answers(built: Path, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """What one long-lived child says to every case, with the state file replaced before each."""
    node = Node(built, tmp_path_factory.mktemp("cases") / "state")
    body = f"""
nv.nvmlInit()
out = []
for lines, expression in {[(state, expression) for state, expression, _ in CASES]!r}:
    put(*lines.split("\\n"))
    try:
        out.append(eval(expression))
    except nv.NVMLError as exc:
        out.append("not expected: NVML error %d" % exc.value)
"""
    got = node.ask(body)
    assert isinstance(got, list)
    return got


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{n}-{CASES[n][0][:40]}")
def test_each_key_reaches_its_call(answers: list[object], number: int) -> None:
    """A key of the state file is what nvidia-ml-py reads at the next call of a running process."""
    assert answers[number] == CASES[number][2]


# ---- the state file ----


def test_no_file_is_a_healthy_node(node: Node) -> None:
    """Without a state file there are eight healthy H100 whose identities differ."""
    out = node.ask("""
nv.nvmlInit()
h = [d(i) for i in range(nv.nvmlDeviceGetCount())]
out = [[call(x) for x in h] for call in
       (nv.nvmlDeviceGetUUID, nv.nvmlDeviceGetSerial, nv.nvmlDeviceGetMinorNumber)]
out.append([nv.nvmlDeviceGetPciInfo(x).busIdLegacy for x in h])
""")
    assert isinstance(out, list)
    assert [len(set(column)) for column in out] == [8, 8, 8, 8]
    assert out[3][0] == "0000:18:00.0"
    assert all(re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid) for uuid in out[0])


def test_identities_differ_between_nodes(node: Node) -> None:
    """UUIDs come from the node's name, so two nodes have no GPU in common."""
    out = node.ask("""
nv.nvmlInit()
out = []
for name in ("n1", "n2", "n1"):
    put("node=" + name)
    out.append([nv.nvmlDeviceGetUUID(d(i)) for i in range(8)])
""")
    assert isinstance(out, list)
    assert out[0] == out[2]
    assert not set(out[0]) & set(out[1])


@pytest.mark.parametrize(
    "line",
    [
        "gpu3.tmep=3",
        "gpu3.temp=hot",
        "gpu16.temp=3",
        "model=B9",
        "no equals",
        "gpus=17",
        "error.nvmlDeviceGetTemp=3",
    ]
    + [
        "hang.call=nvmlX",
        "hang.kind=crash",
        "gpu3.bdf=18:00",
        "gpu3.proc=1",
        "gpu3.lost=2",
        "order=1,x",
        "gpu3.mig=!0",
    ]
    + ["gpu3.nvlink.x.state=0", "gpu3.ecc.corrected.sometimes=1", "gpu3.lost=!3", "missing=nvmlInit"],
)
def test_wrong_line_is_never_passed_over(node: Node, line: str) -> None:
    """A typing mistake makes every call fail and is said with its line, so no test passes by it."""
    node.put("gpus=8", line)
    child = node.start(
        "print(t(nv.nvmlInit)); put('gpus=8'); print(t(nv.nvmlInit), t(nv.nvmlDeviceGetCount))"
    )
    output, errors = child.communicate(timeout=60)
    assert output.split() == ["E999", "None", "8"]
    assert "line 2" in errors
    assert errors.count("gpusim:") == 1


def test_file_that_turns_wrong_and_right_again(node: Node) -> None:
    """A running process sees a broken file as UNKNOWN and recovers with the next good one."""
    out = node.ask("""
nv.nvmlInit()
out = []
for line in ("gpus=3", "gpus=many", "gpus=5"):
    put(line)
    out.append(t(nv.nvmlDeviceGetCount))
os.unlink(STATE)
out.append(t(nv.nvmlDeviceGetCount))
""")
    assert out == [3, "E999", 5, 8]


def test_call_costs_about_one_stat(node: Node) -> None:
    """An unchanged file is not read again: a call through ctypes costs a few times what os.stat does."""
    node.put(*(f"gpu{i}.{key}=7" for i in range(8) for key in ("temp", "power", "util", "minor", "energy")))
    out = node.ask("""
nv.nvmlInit()
h = d(3)
def best(call):
    rounds = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(2000):
            call()
        rounds.append(time.perf_counter() - start)
    return min(rounds)
out = best(lambda: nv.nvmlDeviceGetTemperature(h, 0)) / best(lambda: os.stat(STATE))
""")
    assert isinstance(out, float)
    assert out < 6, f"{out:.1f} times a stat"


# ---- the library's life ----


def test_before_init_and_after_shutdown(node: Node) -> None:
    """Without nvmlInit every call is UNINITIALIZED; init and shutdown are counted."""
    out = node.ask("""
nv.nvmlInit(); nv.nvmlInit(); nv.nvmlShutdown()
out = [t(nv.nvmlDeviceGetCount)]
nv.nvmlShutdown()
out += [t(nv.nvmlDeviceGetCount), t(nv.nvmlShutdown), nv.nvmlErrorString(1)]
""")
    assert out == [8, "E1", "E1", "Uninitialized"]


def test_handle_survives_renumbering(node: Node) -> None:
    """A handle means its GPU, not its index; after the GPU is gone it says GPU_IS_LOST."""
    out = node.ask("""
nv.nvmlInit()
h3, h5 = d(3), d(5)
put("gpu3.present=0")
out = [nv.nvmlDeviceGetMinorNumber(h5), nv.nvmlDeviceGetIndex(h5), t(nv.nvmlDeviceGetUUID, h3)]
""")
    assert out == [5, 4, "E15"]


def test_not_a_handle(node: Node) -> None:
    """A pointer that NVML never gave out is INVALID_ARGUMENT, not a crash."""
    out = node.ask("""
nv.nvmlInit()
out = [t(nv.nvmlDeviceGetUUID, nv.c_nvmlDevice_t()),
       t(nv.nvmlDeviceGetUUID, ctypes.cast(4096, nv.c_nvmlDevice_t)),
       t(nv.nvmlDeviceGetTemperature, d(0), 7)]
""")
    assert out == ["E2", "E2", "E2"]


def test_buffer_too_small(node: Node) -> None:
    """A text that does not fit is INSUFFICIENT_SIZE; nothing is written behind the buffer."""
    out = node.ask("""
nv.nvmlInit()
buffer = ctypes.create_string_buffer(b"....", 5)
rc = nv.nvmlLib.nvmlDeviceGetName(d(0), buffer, 4)
out = [rc, buffer.value.decode()]
""")
    assert out == [7, "...."]


def test_start_of_cold_gpus_is_slow(node: Node) -> None:
    """Without persistence mode the first handle of each GPU costs its initialisation, the second nothing."""
    node.put("gpu*.persistence=0", "gpu0.persistence=1", "init_delay_ms=60")
    out = node.ask("""
nv.nvmlInit()
out = []
for _ in range(2):
    start = time.monotonic()
    for i in range(8): d(i)
    out.append(time.monotonic() - start)
""")
    assert isinstance(out, list)
    assert 0.42 <= out[0] < 3
    assert out[1] < 0.06


def test_delay(node: Node) -> None:
    """delay.CALL slows that call only."""
    node.put("delay.nvmlDeviceGetTemperature=200")
    out = node.ask("""
nv.nvmlInit()
h = d(0)
out = []
for call in (lambda: nv.nvmlDeviceGetTemperature(h, 0), lambda: nv.nvmlDeviceGetUUID(h)):
    start = time.monotonic(); call(); out.append(time.monotonic() - start)
""")
    assert isinstance(out, list)
    assert out[0] >= 0.2 > out[1]


def test_events(node: Node) -> None:
    """EventSetWait ends with TIMEOUT, or with the Xid that the state names, once."""
    out = node.ask("""
nv.nvmlInit()
put("gpu2.xid_event=13")
s = nv.nvmlEventSetCreate()
for i in range(8):
    nv.nvmlDeviceRegisterEvents(d(i), nv.nvmlEventTypeXidCriticalError, s)
start = time.monotonic()
out = [t(nv.nvmlEventSetWait_v2, s, 100), time.monotonic() - start >= 0.1]
threading.Timer(0.1, put, ["gpu2.xid_event=48"]).start()
e = nv.nvmlEventSetWait_v2(s, 5000)
out += [e.eventType, e.eventData, nv.nvmlDeviceGetIndex(e.device), t(nv.nvmlEventSetWait_v2, s, 20)]
out += [nv.nvmlDeviceGetSupportedEventTypes(d(0)) & nv.nvmlEventTypeXidCriticalError, nv.nvmlEventSetFree(s)]
""")
    assert out == ["E10", True, 8, 48, 2, "E10", 8, None]


# ---- an old driver ----


def test_missing_symbols_of_an_old_driver(node: Node, built: Path) -> None:
    """Omitted symbols do not exist, so nvidia-ml-py says FUNCTION_NOT_FOUND; the rest works."""
    node.library = built / "old"
    node.put("driver=470.256.02")
    out = node.ask("""
nv.nvmlInit()
out = [t(nv.nvmlDeviceGetMemoryInfo, d(0), nv.nvmlMemory_v2), t(fabric, 0),
       t(nv.nvmlDeviceGetComputeRunningProcesses_v3, d(0)),
       t(nv.nvmlDeviceGetCurrentClocksEventReasons, d(0)), t(nv.nvmlDeviceGetRepairStatus, d(0)),
       t(nv.nvmlDeviceGetComputeRunningProcesses_v2, d(0)),
       t(nv.nvmlDeviceGetCurrentClocksThrottleReasons, d(0)),
       nv.nvmlDeviceGetCount(), nv.nvmlSystemGetDriverVersion()]
""")
    assert out == ["E13"] * 5 + [[], 1, 8, "470.256.02"]


def test_omit_takes_any_symbol(node: Node, built: Path, tmp_path: Path) -> None:
    """make OMIT= leaves out what is named, and nothing else."""
    omit = "OMIT=nvmlErrorString nvmlDeviceGetFieldValues"
    command = ["make", "-C", str(SOURCE), f"OUT={tmp_path}", "CC=cc", omit, "old"]
    subprocess.run(command, capture_output=True, check=True)
    (tmp_path / "libnvidia-ml.so.1").symlink_to("libnvidia-ml-old.so.1")
    node.library = tmp_path
    out = node.ask("""
nv.nvmlInit()
put("error.nvmlDeviceGetCount_v2=31")
try:
    nv.nvmlDeviceGetCount()
except nv.NVMLError as exc:
    said = str(exc)
put("")
out = [t(nv.nvmlDeviceGetFieldValues, d(0), [230]), said, nv.nvmlDeviceGetUUID(d(0))[:4]]
""")
    assert out == ["E13", "NVML Error with code 31", "GPU-"]


# ---- hangs ----


def process_state(pid: int) -> str:
    """The kernel's letter for a process: S, D, R, Z."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(condition: object, seconds: float = 10) -> bool:
    """Wait for a condition; whether it came."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


HANGER = """
nv.nvmlInit()
h = d(3)
print("asking", flush=True)
print(t(nv.nvmlDeviceGetTemperature, h, 0), flush=True)
"""


def start_hanging(node: Node) -> subprocess.Popen[str]:
    child = node.start(HANGER)
    assert child.stdout is not None
    assert child.stdout.readline() == "asking\n"
    time.sleep(0.3)
    assert child.poll() is None
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate(timeout=20)


def test_hang_ends_on_sigterm(node: Node) -> None:
    """hang.kind=sleep never returns by itself; SIGTERM ends the process."""
    node.put("hang.call=nvmlDeviceGetTemperature")
    child = start_hanging(node)
    try:
        assert process_state(child.pid) == "S"
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=10) == -signal.SIGTERM
    finally:
        end(child)


def test_hang_that_ignores_sigterm(node: Node) -> None:
    """hang.kind=ignoreterm survives SIGTERM; SIGKILL ends it."""
    node.put("hang.call=nvmlDeviceGetTemperature", "hang.kind=ignoreterm")
    child = start_hanging(node)
    try:
        child.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert child.poll() is None
        child.kill()
        assert child.wait(timeout=10) == -signal.SIGKILL
    finally:
        end(child)


def test_hang_on_one_gpu(node: Node) -> None:
    """hang.gpu hangs on that slot only; in another thread NVML goes on meanwhile."""
    node.put("hang.call=nvmlDeviceGetTemperature,nvmlDeviceGetUUID", "hang.gpu=3")
    body = """
nv.nvmlInit()
h = d(3)
threading.Thread(target=nv.nvmlDeviceGetTemperature, args=(h, 0), daemon=True).start()
time.sleep(0.2)
out = [nv.nvmlDeviceGetTemperature(d(2), 0), threading.active_count()]
print(json.dumps(out), flush=True)
os._exit(0)
"""
    child = node.start(body)
    output, errors = child.communicate(timeout=20)
    assert output == "[31, 2]\n", errors


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetHandleByIndex_v2", "all"])
def test_hang_in_other_calls(node: Node, call: str) -> None:
    """Init, the handle call and every call can hang."""
    node.put(f"hang.call={call}")
    child = node.start("print('here', flush=True); nv.nvmlInit(); d(0); print('past', flush=True)")
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        time.sleep(0.3)
        assert child.poll() is None
        child.terminate()
        assert child.communicate(timeout=10)[0] == ""
    finally:
        end(child)


def test_hang_times_counts_over_processes(node: Node) -> None:
    """hang.times=2: the first two hang, whichever processes they are; then the call answers."""
    node.put("hang.call=nvmlDeviceGetTemperature", "hang.times=2")
    hanging = [start_hanging(node) for _ in range(2)]
    try:
        assert node.ask("nv.nvmlInit(); out = nv.nvmlDeviceGetTemperature(d(3), 0)") == 31
        assert node.state.with_name("state.hangs").stat().st_size == 2
    finally:
        for child in hanging:
            end(child)


def test_hang_write_returns_when_the_file_system_answers(node: Node, tmp_path: Path) -> None:
    """hang.kind=write writes its file for real, so a healthy file system makes the call fail, not hang."""
    node.put("hang.call=nvmlDeviceGetTemperature", "hang.kind=write", f"hang.path={tmp_path}/x")
    assert node.ask("nv.nvmlInit(); out = t(nv.nvmlDeviceGetTemperature, d(0), 0)") == "E999"
    assert (tmp_path / "x").read_bytes() == b"x"


@pytest.fixture
def frozen(tmp_path: Path) -> object:
    """A mounted file system whose freezing and thawing the test may do; thawed and unmounted afterwards."""
    tools = ["mkfs.ext4", "mount", "umount", "fsfreeze"]
    if os.geteuid() != 0 or any(
        shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin") is None for tool in tools
    ):
        pytest.skip("needs root, mkfs.ext4 and fsfreeze")
    image, mount = tmp_path / "image", tmp_path / "mount"
    image.write_bytes(b"")
    os.truncate(image, 8 << 20)
    mount.mkdir()
    environment = {**os.environ, "PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}

    def run(*command: str) -> int:
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode

    if run("mkfs.ext4", "-q", str(image)) != 0 or run("mount", "-o", "loop", str(image), str(mount)) != 0:
        pytest.skip("no loop mounts here")
    try:
        yield mount, run
    finally:
        run("fsfreeze", "-u", str(mount))
        assert until(lambda: run("umount", str(mount)) == 0)


def test_hang_in_d_state(node: Node, frozen: tuple[Path, object]) -> None:
    """On a frozen file system the call is in D and survives SIGKILL; the thaw lets it go."""
    mount, run = frozen
    assert callable(run)
    node.put("hang.call=nvmlDeviceGetTemperature", "hang.kind=write", f"hang.path={mount}/x")
    assert run("fsfreeze", "-f", str(mount)) == 0
    child = node.start(HANGER)
    try:
        assert until(lambda: process_state(child.pid) == "D")
        child.kill()
        time.sleep(0.3)
        assert process_state(child.pid) == "D"
    finally:
        run("fsfreeze", "-u", str(mount))
        end(child)
    assert child.returncode == -signal.SIGKILL


# ---- nvidia-smi ----


def test_smi_lists_and_queries(node: Node) -> None:
    """-L, -q and --query-gpu show the state; [N/A] or the error's text where there is no value."""
    node.put("model=V100", "gpus=2", "gpu1.uuid=GPU-b", "gpu1.temp=77", "gpu1.ecc_mode=0", "gpu0.power=!999")
    assert "GPU 1: Tesla V100-SXM2-32GB (UUID: GPU-b)" in node.smi("-L").stdout
    query = "--query-gpu=index,temperature.gpu,ecc.errors.uncorrected.volatile.total,power.draw"
    assert node.smi(query, "--format=csv").stdout.splitlines() == [
        "index, temperature.gpu, ecc.errors.uncorrected.volatile.total, power.draw [W]",
        "0, 33, 0, [Unknown Error]",
        "1, 77, [N/A], 41.00 W",
    ]
    assert node.smi(query, "--format=csv,noheader,nounits", "-i", "1").stdout == "1, 77, [N/A], 41.00\n"
    assert re.search(r"temperature.gpu +: 77\n", node.smi("-q").stdout)
    assert node.smi("--query-gpu=nonsense").returncode == 2


def test_smi_ends_with_nvmls_code(node: Node) -> None:
    """Driver away, version mismatch and a lost handle end with the code of NVML, as the real program does."""
    node.put("error.nvmlInitWithFlags=9")
    assert node.smi("-q").returncode == 9
    node.put("error.nvmlInitWithFlags=18")
    assert node.smi("-q").returncode == 18
    node.put("gpu3.lost=1", "gpu3.lost_at=handle")
    done = node.smi("-q")
    assert (done.returncode, "GPU3: GPU is lost" in done.stdout) == (15, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a reset needs root")
def test_smi_reset(node: Node) -> None:
    """A reset clears one GPU's volatile state; in use, lost or not resettable it is refused."""
    node.put(
        "order=3,0",
        "gpu3.remap.pending=1",
        "gpu3.recovery_action=1",
        "gpu*.ecc.uncorrected.volatile.dram=2",
        "gpu3.ecc.uncorrected.aggregate.dram=2",
        "gpu1.proc=1:1",
        "gpu2.lost=1",
        "gpu4.reset_result=30",
    )
    assert node.smi("-r", "-i", "0").returncode == 0  # index 0 is slot 3
    body = """
nv.nvmlInit()
out = [fields(0, 144, 230, 4, 6), fields(1, 4)]
"""
    assert node.ask(body) == [[[0, 0], [0, 0], [0, 0], [0, 2]], [[0, 2]]]
    assert node.smi("--gpu-reset", "-i", "2").returncode == 19
    assert node.smi("-r", "-i", "4").returncode == 30
    assert node.smi("-r", "-i", "3").returncode == 15
    assert len(node.state.with_name("state.resets").read_text().splitlines()) == 4


# ---- the page that says all this ----


def documented_keys() -> set[str]:
    """The keys in README's tables, with what its words stand for filled in."""
    found: set[str] = set()
    for row in README.partition("## Keys: the node")[2].partition("## An old driver")[0].splitlines():
        cells = row.split(" | ")
        if not row.startswith("| `"):
            continue
        for key in re.findall(r"`([^`]+)`", cells[0]):
            keys = {key}
            names = re.findall(r"[a-z0-9_]+", re.sub(r"\(.*?\)", "", row.partition("NAME is")[2]))
            for word, values in {
                "NAME": [n for n in names if n != "and" and not n.isdigit()],
                "KIND": ["corrected", "uncorrected"],
                "WHEN": ["volatile", "aggregate"],
                "LOC": ["l1", "l2", "dram", "regfile", "texture", "texshm", "cbu", "sram"],
                "CALL": ["nvmlDeviceGetTemperature"],
                "error.gpuN": ["error.gpu3"],
            }.items():
                keys = {k.replace(word, value) for k in keys for value in values} if word in key else keys
            found |= keys
    return found


def code_keys() -> set[str]:
    """The key patterns of the C source, spelled out (# stays N)."""
    source = (SOURCE / "keys.c").read_text().partition("gpu_keys[] = {")[2].partition("};")[0]
    keys: set[str] = set()
    for entry in re.findall(r'\{((?:\s*"[^"]*")+)\s*,', source):
        pending = ["".join(re.findall(r'"([^"]*)"', entry)).replace("#", "N")]
        while pending:
            key = pending.pop()
            group = re.search(r"\{([^}]*)\}", key)
            if group is None:
                keys.add(key)
            else:
                pending += [key[: group.start()] + word + key[group.end() :] for word in group[1].split("|")]
    return keys


def test_page_names_every_key_and_no_other() -> None:
    """README's table of a GPU's keys and the C table have the same keys."""
    node_keys = {"gpus", "model", "driver", "cuda", "nvml", "order", "node", "init_delay_ms"}
    documented = {k for k in documented_keys() if not re.match(r"error\.|delay\.|hang\.", k)} - node_keys
    assert len(documented) > 150
    assert documented == code_keys()


def test_page_lists_every_call(built: Path) -> None:
    """README's list of calls is what the library exports."""
    listed = set(re.findall(r"nvml\w+", README.partition("## The calls")[2]))
    assert listed == set((built / "calls.txt").read_text().split())


FAULTS = re.findall(r"`([a-z*0-9]+\.[\w.*]+=[\w/]+)`", README.partition("## Ready-made faults")[2])


@pytest.mark.parametrize("line", FAULTS)
def test_ready_made_faults_are_valid(node: Node, line: str) -> None:
    """Each line that README offers as a fault is one that the library takes."""
    node.put(line)
    if line.startswith(("hang", "delay", "error")):
        node.put(line.replace("6000", "1"), "hang.times=0")
    child = node.start("print(t(nv.nvmlInit))")
    output, errors = child.communicate(timeout=20)
    assert errors == ""
    assert output.strip() in ("None", "E9", "E18", "E999")
