"""What `make docs` adds to the pages: a gallery whose outputs are made while the site is built, option tables, and
links out of the folder.

The examples are trained and asked on the spot, so that a page cannot show what the program does not do.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from tests.docs.option_tables import filled

ROOT = Path(__file__).resolve().parents[1]
GALLERY = (
    "single_feature",
    "two_features",
    "swing",
    "expect_holds",
    "expect_fails",
    "monotonicity",
    "recourse",
    "several",
    "robustness",
    "multiclass",
    "two_models",
    "count",
    "clash",
    "domains",
)
"""The examples of the gallery, in their order."""

EXIT_CODES = {0, 5, 10}
"""Those of an answered file: as expected, undecided, an expectation that does not hold."""

REPORTS = ROOT / "build" / "site-reports"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the gallery, and a report to sign beside it."""
    run(sys.executable, "examples/train.py")
    pages = [gallery_entry(name) for name in GALLERY]
    text = "# Gallery\n\nReal questions with their real answers, asked while this page was built.\n\n" + "\n".join(
        pages
    )
    text += digits_section(files, config) + two_trees_section()
    reports = sample_reports()
    text += REPORT_SECTION + "".join(map(report_line, reports)) + "".join(map(report_pictures, reports))
    files.append(File.generated(config, "gallery.md", content=text))
    for report in reports:
        for name in [*report["files"], *report["pictures"]]:
            files.append(File.generated(config, f"gallery/{name}", content=(REPORTS / name).read_bytes()))
    return files


REPORT_SECTION = """
## Reports to sign

`treesens audit` asks every feature of a model against a table, and writes a page to read and sign, with all records beside it.
[How to read it](report.md).

| model | report | answers |
| --- | --- | --- |
"""


def gallery_entry(name: str) -> str:
    """One example: the remark at its head, its text, and what `treesens check` prints."""
    path = Path("examples") / f"{name}.sens"
    text = (ROOT / path).read_text("utf-8")
    options = ["--core"] if "--core" in text.splitlines()[0] else []
    command = ["treesens", "check", str(path), *options]
    shown = run(sys.executable, "-m", *command, allowed=EXIT_CODES)
    remark, _, question = text.partition("\n")
    title = name.replace("_", " ").capitalize()
    return (
        f"## {title}\n\n{remark.lstrip('# ')}\n\n```sens\n{question.strip()}\n```\n\n"
        f"```console\n$ {' '.join(command)}\n{shown.strip()}\n```\n"
    )


def digits_section(files: Files, config: MkDocsConfig) -> str:
    """The picture of the gallery (website/digits.py), made anew."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "website.digits", str(REPORTS))
    content = (REPORTS / "digits.svg").read_bytes()
    files.append(File.generated(config, "gallery/digits.svg", content=content))
    return (REPORTS / "digits.md").read_text("utf-8")


def two_trees_section() -> str:
    """The paper's illustrative example (website/two_trees.py), made anew."""
    run(sys.executable, "-m", "website.two_trees", str(REPORTS))
    return (REPORTS / "two_trees.md").read_text("utf-8")


def sample_reports() -> list[dict[str, Any]]:
    """The reports of the gallery (website/reports.py), made anew."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "website.reports", str(REPORTS))
    made: list[dict[str, Any]] = json.loads((REPORTS / "reports.json").read_text("utf-8"))
    return made


def report_line(report: dict[str, Any]) -> str:
    """A report as a line of a table, with its files."""
    links = ", ".join(f"[{name.rpartition('.')[2].upper()}](gallery/{name})" for name in report["files"])
    answers = ", ".join(f"{count} {verdict}" for verdict, count in report["verdicts"].items() if count)
    return f"| {report['title']} | {links} | {answers} |\n"


def report_pictures(report: dict[str, Any]) -> str:
    """The pages of a report that are to be signed, if a browser has printed them."""
    if not report["pictures"]:
        return ""
    shown = "\n".join(
        f'![{report["title"]}: {place_of(name)}](gallery/{name}){{ width="{22 if "phone" in name else 49}%" }}'
        for name in report["pictures"]
    )
    return f"\n### {report['title']}: the pages to sign, and the page on a desktop and on a phone\n\n{shown}\n"


def place_of(name: str) -> str:
    """The part of a report that a picture shows, from the end of the picture's name."""
    end = Path(name).stem.rpartition("-")[2]
    return f"page {end} of the report" if end.isdecimal() else f"the report on a {end}"


def run(*command: str, allowed: set[int] | frozenset[int] = frozenset({0})) -> str:
    """What a command prints in 100 columns. Raises `PluginError` if it ends otherwise than allowed."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "HOME": str(Path.home()),
    }
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    if done.returncode not in allowed:
        raise PluginError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def repository() -> str | None:
    """The https address of the repository without a user's name or token: TREESENS_REPOSITORY, or else the remote `origin`."""
    asked = ["git", "remote", "get-url", "origin"]
    address = os.environ.get("TREESENS_REPOSITORY")
    address = address or subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    parts = urlsplit(address.strip().removesuffix("/").removesuffix(".git"))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts.scheme == "https" else None


def linked(markdown: str, upwards: str, address: str | None) -> str:
    """Links to files outside of the documentation lead into the repository; without an address they become their paths."""

    def replaced(link: re.Match[str]) -> str:
        text, path, heading = link.groups(default="")
        if address:
            return f"[{text}]({address}/blob/HEAD/{path}{heading})"
        return f"`{path}`" if Path(path).name in text else f"{text} (`{path}`)"

    return re.sub(rf"\[([^\]]+)\]\({re.escape(upwards)}([\w./-]+)(#[\w-]+)?\)", replaced, markdown)


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Adds the made tables, and the address of the repository to links.

    A second word at a fence is for the tests alone: the site's parser takes such a line for text.
    """
    del config, files
    markdown = re.sub(r"^```sens [\w.-]+$", "```sens", filled(markdown), flags=re.MULTILINE)
    return linked(markdown, "../" * (page.file.src_uri.count("/") + 1), repository())
