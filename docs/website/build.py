"""Build the documentation as a site in build/site: `make docs`. It fails on a broken link, and on a page that loads from the network.

Pages are those of docs/; each notebook of docs/examples becomes a page with its stored outputs. The Python reference is read from
the docstrings (mkdocstrings). Zensical builds the site from mkdocs.yml.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
PAGES = ("*.md", "*.ipynb", "*_marimo.py", "*.svg", "*.png", "*.css", "*.cff")
BENCHMARKS = ("*.md", "*/README.md", "nl/papers.md")
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^\s"'>]+"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|icon|preconnect))[^>]*\bhref=["']?(?:https?:)?//[^\s"'>]+"""
    r"""|(?:@import\s+|url\()["']?(?:https?:)?//[^\s"')]+""",
    re.I,
)


def main(build: Path = ROOT / "build") -> int:
    """Builds the site in the folder `site` of a folder; the exit code."""
    for name in ("pages", "site", "lib", ".cache"):
        shutil.rmtree(build / name, ignore_errors=True)
    stage(build / "pages")
    as_installed(build / "lib" / "uql")
    for name in ("mkdocs.yml", "docstrings.py"):
        shutil.copy(DOCS / "website" / name, build)
    done = subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=build)
    found = loaded(build / "site")
    for line in found:
        print(f"loads from the network: {line}", file=sys.stderr)
    return done.returncode or bool(found)


def stage(pages: Path) -> None:
    """Copies what the site shows into a folder: docs/ with notebooks as Markdown beside themselves, and pages of benchmarks/."""
    for path in sorted(path for pattern in PAGES for path in DOCS.rglob(pattern)):
        place = pages / path.relative_to(DOCS)
        if "dbt" not in path.parts:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
            if path.suffix == ".ipynb":
                write_notebook(path, place.with_suffix(".md"))
            if path.suffix == ".md":  # the tables of the benchmarks are a part of the site
                place.write_text(path.read_text("utf-8").replace("](../benchmarks/", "](benchmarks/"), "utf-8")
    for path in (path for pattern in BENCHMARKS for path in (ROOT / "benchmarks").glob(pattern)):
        place = pages / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(path.read_text("utf-8").replace("../docs/", "../"), "utf-8")


def write_notebook(path: Path, page: Path) -> None:
    """A notebook with its stored outputs as a page, its pictures beside it."""
    parts = [f"[{path.name}]({path.name}): this notebook, to download. A test compares the outputs."]
    cells = json.loads(path.read_text("utf-8"))["cells"]
    for cell in cells:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{page.stem}-{len(parts)}.png"
                (page.parent / name).write_bytes(base64.b64decode("".join(data["image/png"])))
                parts.append(f"![output]({name})")
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip()
                parts.append(f"``` {{.text .output}}\n{text}\n```")
    parts[0:2] = [parts[1], parts[0]] if parts[1].startswith("# ") else parts[:2]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def as_installed(package: Path) -> None:
    """The package with its folders as an installation has them, by links: docstrings are read from it."""
    package.mkdir(parents=True)
    folders = [ROOT / name for name in ("compiler", "kernels", "sampling", "benchmarks")]
    for path in [*(ROOT / "uql").iterdir(), *folders]:
        (package / path.name).symlink_to(path)


def loaded(site: Path) -> list[str]:
    """Scripts, styles, fonts and pictures that the pages and styles of a folder load from other hosts.

    Returns: a line for each, `page: element`.
    """
    files = [path for ending in ("html", "css") for path in sorted(site.rglob(f"*.{ending}"))]
    return [
        f"{path.relative_to(site)}: {match[0]}" for path in files for match in _LOADED.finditer(path.read_text("utf-8"))
    ]


if __name__ == "__main__":
    sys.exit(main())
