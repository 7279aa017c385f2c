"""The compiled copy: reading it on the hot path, freshness, ownership, modes."""
import json
import os
import stat

import pytest

from slurm_gpuhealth import __version__, config, config_schema, paths
from slurm_gpuhealth.config_defaults import DEFAULTS
from slurm_gpuhealth.errors import ConfigError


@pytest.fixture
def node(tmp_path):
    """A fixture node with a configuration: (root, path of the yaml)."""
    yaml = tmp_path / "etc/slurm/gpuhealth.yaml"
    yaml.parent.mkdir(parents=True)
    yaml.write_text("mode: drain\nnodes: [{match: n1, set: {expected_gpus: 2}}]\n")
    return str(tmp_path), yaml


def test_without_a_compiled_copy_the_defaults_hold(tmp_path):
    """Before the first health check: built-in values, mode observe, and a note."""
    value, notes = config.load(str(tmp_path), "n1")
    assert value == DEFAULTS and value is not DEFAULTS
    assert notes == ["no compiled configuration: built-in defaults are used"]


def test_refresh_compiles_once(node):
    """The copy is private, complete for this node, and not written again while nothing changed."""
    root, yaml = node
    assert config_schema.refresh(root, "n1") is True
    path = paths.under(root, paths.COMPILED)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    value, notes = config.load(root, "n1")
    assert (value["mode"], value["expected_gpus"], notes) == ("drain", 2, [])
    assert config_schema.refresh(root, "n1") is False
    assert os.listdir(os.path.dirname(path)) == ["config.json"]


def test_a_changed_file_makes_the_copy_stale(node):
    """Size, time and inode of the file are compared; another version of this package is stale too."""
    root, yaml = node
    config_schema.refresh(root, "n1")
    compiled = config.read(root)[0]
    assert not config.is_stale(compiled, os.stat(yaml))
    assert config.is_stale(compiled, None)
    assert config.is_stale(None, os.stat(yaml))
    assert config.is_stale({**compiled, "version": "0.0.0"}, os.stat(yaml))
    assert config.is_stale(compiled, os.stat(yaml), "n2") and not config.is_stale(compiled, os.stat(yaml), "n1")
    new = yaml.with_suffix(".new")
    new.write_text(yaml.read_text())
    os.utime(new, ns=(os.stat(yaml).st_atime_ns, os.stat(yaml).st_mtime_ns))
    os.replace(new, yaml)           # same size, same time, another inode
    assert config.is_stale(compiled, os.stat(yaml))
    assert config_schema.refresh(root, "n1") is True
    yaml.unlink()
    assert config.is_stale(config.read(root)[0], None)
    config_schema.refresh(root, "n1")
    assert not config.is_stale(config.read(root)[0], None)
    assert config.load(root, "n1")[0] == DEFAULTS


def test_a_wrong_file_leaves_the_old_copy(node):
    """A mistake must not take the last good configuration away."""
    root, yaml = node
    config_schema.refresh(root, "n1")
    yaml.write_text("mode: fulll\n")
    with pytest.raises(ConfigError, match="gpuhealth.yaml:1: mode: "):
        config_schema.refresh(root, "n1")
    assert config.load(root, "n1")[0]["mode"] == "drain"


def test_copy_of_another_node_is_not_used(node):
    """A node image may carry the copy of the machine it was made on."""
    root, _ = node
    config_schema.refresh(root, "n1")
    value, notes = config.load(root, "n2")
    assert value == DEFAULTS and "another node" in notes[0]
    assert config_schema.refresh(root, "n2") is True
    assert config.load(root, "n2")[0]["expected_gpus"] == "auto"


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b"null", b'{"v": 99, "config": {}}', b'{"v": 1}', b"\xff\xfe", b"[" * 100000,
    b'{"v": 1, "config": []}'])
def test_a_damaged_copy_gives_the_defaults(tmp_path, content):
    """Whatever the disk did to it, the hook goes on with built-in values and says so."""
    path = tmp_path / "var/lib/gpuhealth/config.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    value, notes = config.load(str(tmp_path), "n1")
    assert value == DEFAULTS and "built-in defaults" in notes[0]


def test_copy_of_an_older_version_is_filled_up(tmp_path):
    """Keys that came with a later version have their defaults."""
    path = tmp_path / "var/lib/gpuhealth/config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"v": 1, "version": "0", "node": "n1", "source": None, "config": {
        "mode": "full", "deadlines": {"nvml": 3}}}))
    value, _ = config.load(str(tmp_path), "n1")
    assert (value["mode"], value["deadlines"]["nvml"], value["deadlines"]["epilog"]) == ("full", 3, 20)


def fake_stat(mode, uid):
    """A stat result of a file with this mode and owner."""
    return os.stat_result((mode, 1, 1, 1, uid, 0, 10, 0, 0, 0))


@pytest.mark.parametrize("mode, uid, wrong", [
    (0o100644, 0, None), (0o100600, 0, None), (0o100644, 1000, "owned by root"), (0o100664, 0, "writable by group"),
    (0o100646, 0, "writable by group"), (0o040755, 0, "regular file"), (0o120777, 0, "regular file")])
def test_only_root_may_have_written_it(mode, uid, wrong):
    """Root hooks do what the file says, so nobody else may have a hand in it."""
    if wrong is None:
        config.check_trusted(fake_stat(mode, uid), "F")
    else:
        with pytest.raises(ConfigError, match=wrong):
            config.check_trusted(fake_stat(mode, uid), "F")


def test_a_link_for_the_copy_is_not_followed(tmp_path):
    """In the state folder there are no links of ours."""
    path = tmp_path / "var/lib/gpuhealth/config.json"
    path.parent.mkdir(parents=True)
    path.symlink_to("/etc/passwd")
    assert config.load(str(tmp_path), "n1")[0] == DEFAULTS


def test_file_that_is_no_text_or_too_large(node):
    """Said with file and line, never a crash."""
    root, yaml = node
    yaml.write_bytes(b"mode: full\n# \xff\n")
    with pytest.raises(ConfigError, match="gpuhealth.yaml:2: not UTF-8"):
        config_schema.read_file(root)
    yaml.write_bytes(b"#" * (config_schema.MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than"):
        config_schema.read_file(root)
    yaml.unlink()
    os.mkfifo(yaml)
    with pytest.raises(ConfigError, match="not a regular file"):
        config_schema.read_file(root)


@pytest.mark.parametrize("partitions, expected", [
    ((), "drain"), (("gpu",), "drain"), (("debug",), "full"), (("special",), "observe"), (("debug", "gpu"), "drain"),
    (("debug", "special"), "observe")])
def test_mode_by_partition(partitions, expected):
    """The last entry that fits wins; of several partitions the mildest mode holds."""
    value = {"mode": "observe", "modes": [
        {"nodes": "n1", "mode": "drain"}, {"partitions": ["debug"], "mode": "full"},
        {"partitions": ["special"], "mode": "observe"}]}
    assert config.mode_for(value, partitions) == expected


def test_version_is_recorded(node):
    """Freshness depends on it."""
    root, _ = node
    config_schema.refresh(root, "n1")
    assert config.read(root)[0]["version"] == __version__
