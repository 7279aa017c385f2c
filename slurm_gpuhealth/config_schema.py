"""Cold side of the configuration: strict reading of gpuhealth.yaml, and the compiled copy for the hooks.

Every mistake in the file is an error with file, line and the nearest right name, and none of the file is taken
over then: a typing mistake in a limit must not silently mean "no limit".
"""
from __future__ import annotations

import json
import os
import tempfile
import time

import yaml

from slurm_gpuhealth import __version__, config, paths
from slurm_gpuhealth.config_defaults import DEFAULTS, fresh, overlay
from slurm_gpuhealth.config_keys import TOP
from slurm_gpuhealth.config_kinds import nearest
from slurm_gpuhealth.errors import ConfigError
from slurm_gpuhealth.parse import hostlist

# A configuration with thousands of overlays is still far below.
MAX_BYTES = 1024 * 1024
MAX_DEPTH = 12
# Beyond this a hook cannot end before slurmd kills it (HealthCheckProgram: 60 s, slurm.conf(5)).
HEALTHCHECK_LIMIT = 58


class _Loader(yaml.SafeLoader):
    """PyYAML's composer without anchors and aliases (a small file can stand for gigabytes) and not endlessly deep."""

    depth = 0

    def compose_node(self, parent, index):
        event = self.peek_event()
        if getattr(event, "anchor", None) is not None or isinstance(event, yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "anchors and aliases are not allowed here",
                                              event.start_mark)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(None, None, "nested too deeply", event.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_text(yaml_text, path):
    """What the file says, without defaults: (dict, list of (line, problem)). Raises ConfigError on bad YAML."""
    loader = None
    try:
        loader = _Loader(yaml_text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigError("%s:%d: %s" % (path, mark.line + 1 if mark else 1, error.problem or error.context)
                          ) from error
    except yaml.YAMLError as error:
        raise ConfigError("%s: not a text that YAML allows (control characters?)" % path) from error
    finally:
        if loader is not None:
            loader.dispose()
    problems: list = []
    return (TOP.read(node, "", problems) if node is not None else {}), problems


def problems_of(yaml_text, path, node="", checks=None):
    """All that is wrong with a file: list of "FILE:LINE: text". Empty when it can be used.

    node: name of the node it is compiled for, "" for all of them. checks: {check: {limit: default}} of the checks
    there are, to find mistakes in checks and limits; None when not known.
    """
    try:
        given, problems = read_text(yaml_text, path)
    except ConfigError as error:
        return [str(error)]
    lines = ["%s:%d: %s" % (path, line, text) for line, text in sorted(problems)]
    if lines:
        return lines
    variants = [("", merged(given, node))]
    if not node:
        variants += [("nodes %s: " % entry["match"], overlay(merged(given), entry["set"]))
                     for entry in given.get("nodes", [])]
    for prefix, value in variants:
        lines += ["%s: %s%s" % (path, prefix, text) for text in contradictions(value, checks)]
    return lines


def merged(given, node=""):
    """Complete configuration: defaults, the file, and (for a named node) its overlays and its modes."""
    value = overlay(DEFAULTS, given)
    if not node:
        return value
    overlays, value["nodes"] = value["nodes"], []
    for entry in overlays:
        if hostlist.contains(entry["match"], node):
            value = overlay(value, entry["set"])
    value["modes"] = [entry for entry in value["modes"]
                      if not entry.get("nodes") or hostlist.contains(entry["nodes"], node)]
    return value


def contradictions(value, checks=None):
    """What does not fit together in a complete configuration: list of texts."""
    found = []
    limits = value["deadlines"]
    if limits["healthcheck"] > HEALTHCHECK_LIMIT:
        found.append("deadlines.healthcheck: slurmd kills the health check after 60 s, so at most %d"
                     % HEALTHCHECK_LIMIT)
    for hook in ("prolog", "epilog", "healthcheck"):
        for source in ("nvml", "kernel_log", "mount", "network_mount"):
            if limits[source] >= limits[hook]:
                found.append("deadlines.%s (%s s) must be below deadlines.%s (%s s)"
                             % (source, limits[source], hook, limits[hook]))
    if value["brake"]["jitter"] >= limits["healthcheck"]:
        found.append("brake.jitter must be below deadlines.healthcheck")
    seen = set()
    for mount in value["mounts"]:
        if mount["path"] in seen:
            found.append("mounts: %s is there twice" % mount["path"])
        seen.add(mount["path"])
    command = value["notify"]["command"]
    if command and not command[0].startswith("/"):
        found.append("notify.command: the program must be an absolute path")
    if not value["resume"]["accepts"]:
        found.append("resume.accepts: must name at least one level")
    found += _plugin_trouble(value["plugins"])
    if checks is not None:
        for key, names in (("checks.disabled", value["checks"]["disabled"]), ("limits", value["limits"]),
                           ("checks.enabled", value["checks"]["enabled"])):
            found += ["%s: no check '%s'%s" % (key, name, nearest(name, checks))
                      for name in names if name not in checks]
        for name in value["limits"]:
            if name in checks:
                found += _limit_trouble(name, value["limits"][name], checks[name])
    return found


def _plugin_trouble(plugins):
    found, names = [], set()
    for plugin in plugins:
        if plugin["name"] in names:
            found.append("plugins: %s is there twice" % plugin["name"])
        names.add(plugin["name"])
        if not plugin["command"] or not plugin["command"][0].startswith("/"):
            found.append("plugins: %s: the program must be an absolute path" % plugin["name"])
    return found


def _limit_trouble(name, given, known):
    """What is wrong with the limits of one check. known: {limit: default}."""
    found = []
    for key, value in given.items():
        if key not in known:
            found.append("limits.%s: no limit '%s'%s" % (name, key, nearest(key, known) if known else
                                                         " (this check has none)"))
        elif isinstance(known[key], bool) != isinstance(value, bool) or \
                isinstance(known[key], (int, float)) != isinstance(value, (int, float)):
            found.append("limits.%s.%s: must be like %s" % (name, key, json.dumps(known[key])))
    return found


def compile_config(yaml_text, node, path):
    """The complete configuration of `node` as one plain dict. Raises ConfigError with the first mistake."""
    lines = problems_of(yaml_text, path, node)
    if lines:
        more = " (and %d more: gpuhealth config check)" % (len(lines) - 1) if len(lines) > 1 else ""
        raise ConfigError(lines[0] + more)
    return merged(read_text(yaml_text, path)[0], node)


def read_file(root="", path=None):
    """(text, stat) of the site's file, ("", None) where there is none.

    path: another file than the usual one. Raises ConfigError when it is too large, no text, or could have been
    written by somebody else than root.
    """
    path = path or paths.under(root, paths.CONFIG)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return "", None
    except OSError as error:
        raise ConfigError("%s: %s" % (path, error.strerror)) from error
    try:
        status = os.fstat(descriptor)
        config.check_trusted(status, path, root)
        with os.fdopen(descriptor, "rb", closefd=False) as handle:
            raw = handle.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError("%s: %s" % (path, error.strerror)) from error
    finally:
        os.close(descriptor)
    if len(raw) > MAX_BYTES:
        raise ConfigError("%s: larger than %d bytes" % (path, MAX_BYTES))
    try:
        return raw.decode("utf-8-sig"), status
    except UnicodeDecodeError as error:
        line = raw[:error.start].count(b"\n") + 1
        raise ConfigError("%s:%d: not UTF-8" % (path, line)) from error


def refresh(root, node, force=False):
    """Renew the compiled copy when the site's file has changed; True when it was written.

    Raises ConfigError when the file is wrong (the old copy stays), OSError when it cannot be written.
    """
    text, status = read_file(root)
    try:
        compiled = config.read(root)[0]
    except ConfigError:
        compiled = None     # not to be believed, and replaced
    if not force and not config.is_stale(compiled, status, node):
        return False
    document = {
        "v": config.COMPILED_VERSION, "version": __version__, "node": node, "compiled": time.time(),
        "source": config.source_of(status),
        "config": compile_config(text, node, paths.under(root, paths.CONFIG)),
    }
    write_compiled(root, document)
    return True


def write_compiled(root, document):
    """Replace the compiled copy in one step; 0600 in a folder of mode 0700."""
    target = paths.under(root, paths.COMPILED)
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".config.", dir=os.path.dirname(target))
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(config.sealed(json.dumps(document, separators=(",", ":"), sort_keys=True)))
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def effective(root, node="", path=None):
    """What `gpuhealth config show` shows: (complete configuration, stat of the file or None)."""
    text, status = read_file(root, path)
    name = path or paths.under(root, paths.CONFIG)
    if not text:
        return merged({}, node) if node else fresh(DEFAULTS), status
    return compile_config(text, node, name), status
