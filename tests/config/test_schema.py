"""Strict reading of gpuhealth.yaml: each mistake has its line and the nearest right name."""
import os
import textwrap

import pytest

from slurm_gpuhealth import config_docs, config_schema
from slurm_gpuhealth.config_defaults import DEFAULTS
from slurm_gpuhealth.config_keys import TOP
from slurm_gpuhealth.config_kinds import Keys
from slurm_gpuhealth.errors import ConfigError


def problems(text, node="", checks=None):
    """Problems of a dedented text."""
    return config_schema.problems_of(textwrap.dedent(text), "F", node, checks)


def compiled(text, node="gpu001"):
    """The compiled configuration of a dedented text."""
    return config_schema.compile_config(textwrap.dedent(text), node, "F")


def shape(value):
    """Nested key names of the defaults."""
    return {key: shape(item) for key, item in value.items()} if isinstance(value, dict) else None


def test_schema_and_defaults_have_the_same_keys():
    """What can be set has a default, and what has a default can be set."""
    keys = {key.name: {inner.name: None for inner in key.kind.keys} if isinstance(key.kind, Keys) else None
            for key in TOP.keys}
    expected = shape(DEFAULTS)
    for name in ("codes", "xid", "sxid", "limits"):     # names inside are not fixed
        expected[name] = None
    assert keys == expected


def test_empty_file_means_the_defaults():
    """A file with comments only, or none at all, changes nothing."""
    for text in ("", "# nothing\n", "---\n", "deadlines:\ncodes:\nmounts:\n"):
        assert compiled(text) == DEFAULTS


@pytest.mark.parametrize("text, expected", [
    ("mod: full\n", "F:1: unknown key 'mod' (did you mean 'mode'?)"),
    ("mode: observe\nzzz: 1\n", "F:2: unknown key 'zzz'"),
    ("deadlines:\n  nvmll: 3\n", "F:2: unknown key 'nvmll' in deadlines (did you mean 'nvml'?)"),
    ("mode: fulll\n", "F:1: mode: must be one of observe, drain, full, not 'fulll' (did you mean 'full'?)"),
    ("mode: off\n", "F:1: mode: must be one of observe, drain, full, not 'off'"),
    ("mode:\n", "F:1: mode: has no value, must be one of observe, drain, full"),
    ("mode: [full]\n", "F:1: mode: must be one of observe, drain, full, not a sequence"),
    ("deadlines: 5\n", "F:1: deadlines: must be keys with values"),
    ("deadlines: {nvml: 8s}\n", "F:1: deadlines.nvml: must be a number, not '8s'"),
    ("deadlines: {nvml: '8'}\n", "F:1: deadlines.nvml: must be a number, not '8'"),
    ("deadlines: {nvml: 010}\n", "F:1: deadlines.nvml: must be a number, not '010'"),
    ("deadlines: {nvml: 1:30}\n", "F:1: deadlines.nvml: must be a number, not '1:30'"),
    ("deadlines: {nvml: -1}\n", "F:1: deadlines.nvml: must be a number, not '-1'"),
    ("deadlines: {nvml: .inf}\n", "F:1: deadlines.nvml: must be a number, not '.inf'"),
    ("deadlines: {nvml: 100000}\n", "F:1: deadlines.nvml: must be from 0.1 to 86400, is 100000"),
    ("expected_gpus: 8.5\n", "F:1: expected_gpus: must be a whole number, not '8.5'"),
    ("expected_gpus: auot\n", "F:1: expected_gpus: must be one of auto, not 'auot' (did you mean 'auto'?)"),
    ("expected_gpus: true\n", "F:1: expected_gpus: must be a whole number, not 'true'"),
    ("kernel_log_user_facility: 1\n", "F:1: kernel_log_user_facility: must be true or false, not '1'"),
    ("service_user: 1000\n", "F:1: service_user: must be text: put 1000 in quotes"),
    ("shared_dir: shared\n", "F:1: shared_dir: shared: must be an absolute path"),
    ("shared_dir: /a/../etc\n", "F:1: shared_dir: /a/../etc: must not contain .."),
    ("mounts:\n  - {type: [nfs]}\n", "F:2: mounts[0]: key 'path' is missing"),
    ("mounts:\n  - path: /a\n    typ: nfs\n", "F:3: unknown key 'typ' in mounts[0] (did you mean 'type'?)"),
    ("mounts: {path: /a}\n", "F:1: mounts: must be a list"),
    ("mounts: [{path: /a}, {path: /a}]\n", "F: mounts: /a is there twice"),
    ("codes: {GH-MNT-HNAG: {severity: note}}\n",
     "F:1: codes: GH-MNT-HNAG: no such reason code (did you mean 'GH-MNT-HANG'?)"),
    ("codes: {GH-XID: {severity: note}}\n", "F:1: codes: GH-XID: no such reason code"),
    ("recover: {codes: [GH-NOPE]}\n", "F:1: recover.codes[0]: GH-NOPE: no such reason code"),
    ("xid: {GH-XID79: {action: note}}\n", "F:1: xid: GH-XID79: not an Xid number"),
    ("xid: {79: note}\n", "F:1: xid.79: must be keys with values"),
    ("modes: [{nodes: 'a[1-', mode: full}]\n", "F:1: modes[0].nodes: a[1-: brackets of a host list do not match"),
    ("nodes: [{match: a1, set: {nodes: []}}]\n", "F:1: unknown key 'nodes' in nodes[0].set"),
    ("nodes: [{match: a1, set: {mode: x}}]\n", "F:1: nodes[0].set.mode: must be one of observe, drain, full"),
    ("mode: full\nmode: drain\n", "F:2: key 'mode' is there twice (first in line 1)"),
    ("resume: {default_pattern: '/c/{jobid}'}\n",
     "F:1: resume.default_pattern: /c/{jobid}: only {job_id}, {array_job_id}"),
    ("resume: {default_pattern: 'c/{job_id}'}\n", "F:1: resume.default_pattern: c/{job_id}: must be an absolute path"),
    ("notify: {webhook: 'ftp://x'}\n", "F:1: notify.webhook: ftp://x: must be a URL with http:// or https://"),
    ("notify: {command: [mail]}\n", "F: notify.command: the program must be an absolute path"),
    ("resume: {accepts: []}\n", "F: resume.accepts: must name at least one level"),
    ("deadlines: {healthcheck: 60}\n", "F: deadlines.healthcheck: slurmd kills the health check after 60 s"),
    ("deadlines: {nvml: 20}\n", "F: deadlines.nvml (20 s) must be below deadlines.prolog (20 s)"),
    ("nodes: [{match: a1, set: {deadlines: {nvml: 25}}}]\n", "F: nodes a1: deadlines.nvml (25 s) must be below"),
    ("- mode\n", "F:1: the file: must be keys with values"),
    ("mode: full\n  x: 1\n", "F:2: mapping values are not allowed here"),
    ("? [a]\n: 1\n", "F:1: the file: a key must be a word"),
    ("mode: !!python/name:os.system\n", "F:1: mode: tag tag:yaml.org,2002:python/name:os.system is not allowed"),
    ("mode: !foo full\n", "F:1: mode: tag !foo is not allowed"),
    ("a: &x 1\nb: *x\n", "F:1: anchors and aliases are not allowed here"),
    ("<<: {mode: full}\n", "F:1: unknown key '<<'"),
    ("mode: full\n--- \nmode: full\n", "F:2: but found another document"),
    ("mode: \"a\\x1bb\"\n", "F:1: mode: must be one of observe, drain, full, not 'a\\x1bb'"),
    ("service_user: \"a\\nb\"\n", "F:1: service_user: has control characters or is too long"),
    ("\x07", "F: not a text that YAML allows"),
    ("[" * 40, "F:1: nested too deeply"),
])
def test_mistake_is_named_with_its_line(text, expected):
    """File, line, what is wrong, and the nearest right name."""
    found = problems(text)
    assert found and found[0].startswith(expected), found
    with pytest.raises(ConfigError) as caught:
        compiled(text, "a1")
    assert str(caught.value).startswith(expected.replace("nodes a1: ", ""))


def test_all_mistakes_are_found_at_once():
    """An admin corrects a file once, not ten times; the exception names the first and counts the rest."""
    text = "mod: 1\ndeadlines: {nvml: x, prolgo: 3}\nmounts: [{path: a}]\n"
    assert [line.split(":")[1] for line in problems(text)] == ["1", "2", "2", "3"]
    with pytest.raises(ConfigError, match=r"^F:1: .*\(and 3 more: gpuhealth config check\)$"):
        compiled(text)


def test_names_of_checks_are_checked_where_they_are_known():
    """A typing mistake in checks: disabled would silently leave a check on."""
    text = "checks: {disabled: [pcie_gne]}\nlimits: {ecc: {x: 1}, mounst: {}}\n"
    assert problems(text) == []
    assert problems(text, checks={"pcie_gen": {"busy_utilization": 20}, "ecc": {}, "mounts": {}}) == [
        "F: checks.disabled: no check 'pcie_gne' (did you mean 'pcie_gen'?)",
        "F: limits: no check 'mounst' (did you mean 'mounts'?)",
        "F: limits.ecc: no limit 'x' (this check has none)"]


def test_limits_are_those_of_the_check():
    """A limit that no check knows would limit nothing; one of another kind would stop the check."""
    checks = {"pcie_gen": {"busy_utilization": 20, "strict": False}}
    assert problems("limits: {pcie_gen: {busy_utilization: 30, strict: true}}", checks=checks) == []
    assert problems("limits: {pcie_gen: {busy_utilisation: 30}}", checks=checks) == [
        "F: limits.pcie_gen: no limit 'busy_utilisation' (did you mean 'busy_utilization'?)"]
    assert problems("limits: {pcie_gen: {busy_utilization: much, strict: 1}}", checks=checks) == [
        "F: limits.pcie_gen.busy_utilization: must be like 20", "F: limits.pcie_gen.strict: must be like false"]


def test_plugins_are_programs_with_names_of_their_own():
    """Two of one name could not be told apart; a relative path would depend on where slurmd was started."""
    text = "plugins:\n  - {name: a, command: [bin/a]}\n  - {name: a, command: [/bin/a]}\n"
    assert problems(text) == ["F: plugins: a: the program must be an absolute path", "F: plugins: a is there twice"]


def test_values_come_through():
    """Types as documented: numbers are numbers, Xid numbers are text keys, mounts are complete."""
    value = compiled("""\
        mode: full
        expected_gpus: 4
        kernel_log_user_facility: yes
        deadlines: {nvml: 2.5}
        mounts:
          - {path: /home, type: [nfs], network: true}
        xid: {109: {action: drain}}
        codes: {GH-XID79: {job_action: none}}
        limits: {pcie_gen: {busy_utilization: 30, word: "x", flag: false}}
        """)
    assert value["expected_gpus"] == 4
    assert value["kernel_log_user_facility"] is True
    assert value["deadlines"]["nvml"] == 2.5 and value["deadlines"]["prolog"] == 20
    assert value["mounts"] == [{"path": "/home", "type": ["nfs"], "writable": False, "network": "true", "deadline": 0,
                                "options": [], "min_free_gb": 0, "min_free_percent": 0, "min_free_inodes": 0}]
    assert value["xid"] == {"109": {"action": "drain"}}
    assert value["codes"] == {"GH-XID79": {"job_action": "none"}}
    assert value["limits"] == {"pcie_gen": {"busy_utilization": 30, "word": "x", "flag": False}}


OVERLAYS = """\
    mode: observe
    modes:
      - {nodes: 'gpu[001-002]', mode: full}
      - {partitions: [debug], mode: drain}
    expected_gpus: 8
    nodes:
      - match: gpu[001-100,205]
        set: {expected_gpus: 4, deadlines: {nvml: 12}}
      - match: gpu001
        set: {deadlines: {nvml: 15}}
    """


@pytest.mark.parametrize("node, gpus, nvml, modes", [
    ("gpu001", 4, 15, ["full", "drain"]), ("gpu002", 4, 12, ["full", "drain"]), ("gpu205", 4, 12, ["drain"]),
    ("gpu101", 8, 8, ["drain"]), ("gpu1", 8, 8, ["drain"])])
def test_overlays_by_host_list(node, gpus, nvml, modes):
    """Overlays apply in order, later ones win; other nodes keep the rest; modes of other nodes are gone."""
    value = compiled(OVERLAYS, node)
    assert (value["expected_gpus"], value["deadlines"]["nvml"], value["deadlines"]["prolog"]) == (gpus, nvml, 20)
    assert [entry["mode"] for entry in value["modes"]] == modes
    assert value["nodes"] == []


def test_shipped_file_is_the_defaults_in_observe():
    """What install puts in place changes nothing, in mode observe, and says how to go on."""
    text = config_docs.render_yaml()
    assert compiled(text) == DEFAULTS
    assert DEFAULTS["mode"] == "observe"
    assert "mode drain" in text and "mode full" in text and "gpuhealth.off" in text


def test_shipped_file_shows_every_default():
    """With one # taken from each line the shipped file says all defaults, so its comments cannot lie."""
    text = "\n".join(line[1:] if line.startswith("#") else line for line in config_docs.render_yaml().split("\n"))
    given, wrong = config_schema.read_text(text, "F")
    assert wrong == []
    assert given == DEFAULTS


@pytest.mark.parametrize("key", sorted(config_docs.EXAMPLES))
def test_documented_examples_are_right(key):
    """Examples of the documentation are read without a complaint, and set what they are about."""
    given, wrong = config_schema.read_text(config_docs.EXAMPLES[key], "F")
    assert wrong == [] and set(given) == {key}
    assert problems(config_docs.EXAMPLES[key]) == []


def test_every_key_is_documented():
    """Each key stands in docs/configuration.md with a sentence."""
    text = config_docs.render_docs()
    for key in TOP.keys:
        assert key.doc and ("`%s`" % key.name in text or "## %s\n" % key.name in text)
        for inner in key.kind.keys if isinstance(key.kind, Keys) else ():
            assert inner.doc and "| `%s` |" % inner.name in text


def test_etc_slurm_shows_what_is_installed():
    """etc/slurm and hooks of the source tree are the files of the package."""
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    data = os.path.join(tree, "slurm_gpuhealth", "install_data")
    for shown, real in [("etc/slurm/gpuhealth.yaml", "gpuhealth.yaml"),
                        ("etc/slurm/slurm.conf.fragment", "slurm.conf.fragment")] + [
                            ("hooks/" + name, "hooks/" + name)
                            for name in ("prolog", "epilog", "healthcheck", "taskprolog")]:
        assert os.path.realpath(os.path.join(tree, shown)) == os.path.join(data, real)
