"""Which Debian mirrors this machine uses, from its own apt sources (one-line and deb822 format)."""

from __future__ import annotations

from pathlib import Path

DEBIAN_SUITES = {
    "stable",
    "oldstable",
    "oldoldstable",
    "testing",
    "unstable",
    "sid",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
}


def _one_line(text: str) -> list[tuple[list[str], list[str]]]:
    """(uris, suites) of each `deb [options] URI SUITE COMPONENT...` line."""
    found = []
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words or words[0] != "deb":
            continue
        rest = words[1:]
        if rest and rest[0].startswith("["):
            while rest and not rest[0].endswith("]"):
                rest = rest[1:]
            rest = rest[1:]
        if len(rest) >= 2:
            found.append(([rest[0]], [rest[1]]))
    return found


def _deb822(text: str) -> list[tuple[list[str], list[str]]]:
    """(uris, suites) of each stanza of a .sources file that is for binary packages and enabled."""
    found = []
    stanza: dict[str, str] = {}
    key = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if "deb" in stanza.get("types", "").split() and stanza.get("enabled", "yes").lower() != "no":
                found.append((stanza.get("uris", "").split(), stanza.get("suites", "").split()))
            stanza, key = {}, ""
        elif line[0] in " \t":
            stanza[key] = stanza.get(key, "") + " " + line.strip()
        elif ":" in line:
            key, value = line.split(":", 1)
            key = key.strip().lower()
            stanza[key] = value.strip()
    return found


def _expand(uri: str, root: Path) -> list[str]:
    """`mirror+file:/path` names a list of mirrors, one a line (cloud images use it); anything else is itself."""
    for prefix in ("mirror+file://", "mirror+file:"):
        if uri.startswith(prefix):
            path = root / uri[len(prefix) :].lstrip("/")
            try:
                lines = path.read_text(errors="replace").splitlines()
            except OSError:
                return []
            return [line.split()[0] for line in lines if line.split() and not line.startswith("#")]
    return [uri]


def debian_mirrors(root: Path = Path("/")) -> list[str]:
    """URIs of the Debian archive in apt's sources under root, in their order, each once.

    A source counts when one of its suites is Debian's and it is neither the security archive nor an updates
    pocket alone; third parties' archives name suites of their own or are told apart by the `/debian` path.
    """
    folder = root / "etc" / "apt"
    entries: list[tuple[list[str], list[str]]] = []
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        if path.suffix == ".sources":
            entries += _deb822(text)
        elif path.suffix == ".list":
            entries += _one_line(text)
    mirrors: list[str] = []
    for uris, suites in entries:
        if not DEBIAN_SUITES.intersection(suites):
            continue
        for uri in uris:
            for real in _expand(uri, root):
                plain = real.rstrip("/")
                if (
                    plain.startswith(("http://", "https://"))
                    and "security" not in plain
                    and plain not in mirrors
                ):
                    mirrors.append(plain)
    # The archive proper is conventionally served under /debian: those first.
    return sorted(mirrors, key=lambda uri: not uri.endswith("/debian"))
