"""Cuts what the pages need of other people's packages (npm tarballs) into static/ and tests/.

python scripts/vendor.py patternfly patternfly-patternfly-6.6.1.tgz
python scripts/vendor.py icons lucide-static-1.62.0.tgz
python scripts/vendor.py axe axe-core-4.14.1.tgz
python scripts/vendor.py uplot uplot-1.6.32.tgz
"""

import re
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPRITE = ROOT / "static/icons/icons.svg"
ALWAYS = frozenset({"circle-help"})
"""What stands in for an icon that is not in the sprite."""
FONTS = ("RedHatText", "RedHatMono")
"""The families that we set text in; the others' faces are left out, with their files."""


class Package:
    """The files of a tarball, by their path in the package."""

    def __init__(self, tarball: str) -> None:
        self._tar = tarfile.open(tarball)  # noqa: SIM115 - open for the life of this process
        self.version = re.sub(r".*-(\d+\.\d+\.\d+)\.tgz$", r"\1", tarball)

    def read(self, path: str) -> bytes:
        member = self._tar.extractfile(f"package/{path}")
        if member is None:
            raise SystemExit(f"{path} is not a file of this package")
        return member.read()


def patternfly(package: Package) -> None:
    """The minified style sheet with the fonts and pictures it refers to; a reference to nothing
    would end `collectstatic`.
    """
    place = ROOT / f"static/vendor/patternfly-{package.version}"
    css = package.read("patternfly.min.css").decode()
    css = re.sub(
        r"@font-face\{[^}]*\}",
        lambda face: face[0] if any(f"/{font}/" in face[0] for font in FONTS) else "",
        css,
    )
    css = re.sub(r"/\*# sourceMappingURL=.*?\*/\s*", "", css)
    _write(place / "patternfly.min.css", css.encode())
    for path in sorted(set(re.findall(r"url\(\"?(?:\./)?(assets/[^)\"]+)", css))):
        _write(place / path, package.read(path))


def icons(package: Package) -> None:
    """A sprite of the icons in use, a symbol each."""
    symbols = []
    for name in sorted(list_used_icons()):
        svg = package.read(f"icons/{name}.svg").decode()
        inner = re.search(r"<svg[^>]*>(.*)</svg>", svg, re.S)
        if inner is None:
            raise SystemExit(f"{name} is not an icon of this package")
        drawing = re.sub(r"\s+", " ", inner[1]).strip()
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{drawing}</symbol>')
    head = (
        "<!-- Lucide icons, ISC licence: LICENSE beside this file. Made by scripts/vendor.py. -->"
    )
    _write(
        SPRITE,
        "\n".join(
            ['<svg xmlns="http://www.w3.org/2000/svg">', head, *symbols, "</svg>", ""]
        ).encode(),
    )
    _write(SPRITE.parent / "LICENSE", package.read("LICENSE"))


def axe(package: Package) -> None:
    """The accessibility checks of the browser tests."""
    place = ROOT / f"tests/browser/vendor/axe-core-{package.version}"
    for name in ("axe.min.js", "LICENSE"):
        _write(place / name, package.read(name))


def uplot(package: Package) -> None:
    """The charts of the overview: one script, and its style sheet."""
    place = ROOT / f"static/vendor/uplot-{package.version}"
    for path in ("LICENSE", "dist/uPlot.iife.min.js", "dist/uPlot.min.css"):
        _write(place / Path(path).name, package.read(path))


def list_used_icons() -> set[str]:
    """The icons that templates, scripts and Python name: `{% icon "name" %}`, `icon="name"` and
    their kin, and the statuses' own.
    """
    return set(_find_icon_names()) | ALWAYS


def _find_icon_names() -> Iterable[str]:
    for path in sorted(ROOT.glob("templates/**/*.html")):
        text = path.read_text()
        yield from re.findall(r"""{%\s*icon\s+["']([a-z0-9-]+)["']""", text)
        yield from re.findall(r"""\bicon=["']([a-z0-9-]+)["']""", text)
    for path in sorted(ROOT.glob("static/js/*.js")):
        yield from re.findall(r"""\bicon\(["']([a-z0-9-]+)["']""", path.read_text())
    for app in ("console", "projects", "clusters", "environments", "workloads"):
        for path in sorted((ROOT / app).rglob("*.py")):
            yield from re.findall(
                r"""\bicon(?:\s*=\s*|["']:\s*|\()["']([a-z0-9-]+)["']""", path.read_text()
            )
    yield from re.findall(
        r"""\("(?:\w+)", "([a-z0-9-]+)", "[^"]+"\)""", (ROOT / "workloads/states.py").read_text()
    )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("patternfly", "icons", "axe", "uplot"):
        raise SystemExit(__doc__)
    {"patternfly": patternfly, "icons": icons, "axe": axe, "uplot": uplot}[sys.argv[1]](
        Package(sys.argv[2])
    )
