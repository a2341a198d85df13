"""The report of an audit: its facts, its form for screen readers and paper, and that it is repeatable byte by byte."""

from __future__ import annotations

import hashlib
import html.parser
import itertools
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.command import run_command
from tests.extensions.studies.grids import two_classes
from treesens.extensions.studies.report.drawings import colour, contrast, ink_on
from treesens.extensions.studies.report.pdf import BROWSERS
from treesens.extensions.studies.report.purpose import read_purpose

pytest.importorskip("jinja2")

PURPOSE = """title = "Audit of the loan model"
owner = "Credit risk"
purpose = "Release 7"
limitations = ["Few foreign applicants."]
sign_off = ["Model owner", "Validation"]
"""
VOID = {"meta", "br", "hr", "rect", "img"}


def run(*arguments: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = run_command(Path.cwd(), *map(str, arguments), **environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, a table with rows outside the declared domain, and the report of their audit, made twice."""
    folder = tmp_path_factory.mktemp("report")
    trained = two_classes("xgboost")
    trained.estimator.save_model(folder / "m.json")
    trained.frame.to_csv(folder / "d.csv", index=False)
    (folder / "p.toml").write_text(PURPOSE)
    (folder / "d.sens").write_text("feature p: integer in [0, 4]\n")
    for _ in range(2):
        run(*command(folder), SOURCE_DATE_EPOCH="1767225600")
        for name in ("r.html", "r.audit.json"):
            shutil.copy(
                folder / name, folder / f"{'second' if (folder / f'first-{name}').exists() else 'first'}-{name}"
            )
    return folder


def command(folder: Path, *more: str) -> list[object]:
    about = ["--data", folder / "d.csv", "--domain", folder / "d.sens", "--gap", "0,0.1", "--threshold", "0.3"]
    pages = ["--report", folder / "r.html", "--purpose", folder / "p.toml"]
    return ["audit", folder / "m.json", *about, *pages, "-t", "60", "-j", "1", *more]


class Reader(html.parser.HTMLParser):
    """Collects the elements of a page, and checks that each is closed where it has to be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def page(folder: Path) -> Reader:
    reader = Reader()
    reader.feed((folder / "first-r.html").read_text())
    assert reader.open == []
    return reader


def words(reader: Reader) -> str:
    return " ".join(" ".join(reader.text).split())


def test_two_runs_give_the_same_bytes(folder: Path) -> None:
    for name in ("r.html", "r.audit.json"):
        assert (folder / f"first-{name}").read_bytes() == (folder / f"second-{name}").read_bytes()


def test_the_page_has_what_a_validator_asks_for(folder: Path, page: Reader) -> None:
    text, records = words(page), json.loads((folder / "r.audit.json").read_text())
    for expected in (
        "Audit of the loan model",
        "Credit risk",
        "Few foreign applicants.",
        "Validation",
        "Date: 2026-01-01",
        "P(1) >= 0.3 for one input, < 0.3 for the other",
        "P(1) >= 0.4 for one input, <= 0.2 for the other",
        "of 90 rows lie outside the domain and were left out",
        "What has to be trusted",
        "Limits",
        "Sign-off",
        "seed",
        "seconds per set",
        "Python",
        "xgboost",
        hashlib.sha256((folder / "m.json").read_bytes()).hexdigest(),
        hashlib.sha256((folder / "d.csv").read_bytes()).hexdigest(),
        hashlib.sha256((folder / "r.audit.json").read_bytes()).hexdigest(),
    ):
        assert expected in text, expected
    assert {d["feature"]: d["source"] for d in records["domain"]} == {"p": "declared", "q": "data", "r": "data"}
    assert records["data"]["excluded"] == 90 - records["results"][0]["rows"] > 0
    assert '"seconds"' not in (folder / "r.audit.json").read_text()


def test_records_come_by_effect(folder: Path, page: Reader) -> None:
    records = json.loads((folder / "r.audit.json").read_text())["results"]
    flips = {r["varied"][0]: r["rows_flipped"] for r in records if r["gap"] == 0}
    page_text = (folder / "first-r.html").read_text()
    results = page_text[page_text.index("<h2>Results") : page_text.index("The same as a picture")]
    order = list(dict.fromkeys(re.findall(r'<th scope="row">(\w) \(', results)))
    assert order == sorted(flips, key=lambda name: -flips[name])


def test_screen_readers_find_their_way(page: Reader) -> None:
    """Every table has heads with a scope, every picture a table beside it, headings do not skip a level."""
    for tag, attributes, _ in page.seen:
        if tag == "th":
            assert attributes.get("scope") in {"col", "row"}
        if attributes.get("class") == "wide":  # it scrolls, so a keyboard has to reach it
            assert attributes.get("tabindex") == "0"
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true"
    levels = [int(tag[1]) for tag, _, _ in page.seen if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert levels.count(1) == 1
    assert ("html", {"lang": "en"}, ()) in page.seen
    assert [tag for tag, _, _ in page.seen].count("main") == 1
    assert not [tag for tag, _, _ in page.seen if tag in {"script", "link", "iframe"}]


def test_contrast_is_that_of_wcag_aa(folder: Path) -> None:
    style = (folder / "first-r.html").read_text()
    schemes = [dict(re.findall(r"--(\w+):\s*(#\w+)", part)) for part in style.split("prefers-color-scheme")[:2]]
    assert len(schemes[1]) >= 8
    for scheme in schemes:
        full = {name: c if len(c) == 7 else "#" + "".join(2 * x for x in c[1:]) for name, c in scheme.items()}
        for ink in ("ink", "soft", "found", "none", "unknown"):
            assert contrast(full[ink], full["paper"]) >= 4.5, (ink, full)
        for paper in ("mark", "head"):
            assert contrast(full["ink"], full[paper]) >= 4.5
    for step in range(101):
        assert contrast(ink_on(colour(step / 100)), colour(step / 100)) >= 4.5


def test_paper_has_all_evidence(folder: Path, page: Reader) -> None:
    """Nothing is folded, heads of tables are repeated, pages have numbers."""
    details = [attributes for tag, attributes, _ in page.seen if tag == "details"]
    assert details
    assert all("open" in attributes for attributes in details)
    text = (folder / "first-r.html").read_text()
    for rule in ("size: A4", "counter(page)", "display: table-header-group", "@media print"):
        assert rule in text
    heads = [parents[-1] for tag, attributes, parents in page.seen if tag == "tr" and "thead" in parents]
    assert len(heads) >= 5


def test_the_pdf_has_every_pair(folder: Path) -> None:
    if not any(map(shutil.which, BROWSERS)):
        done = run(*command(folder, "--pdf", str(folder / "r.pdf")), code=1)
        assert "install chromium" in done.stderr
        return
    run(*command(folder, "--pdf", str(folder / "r.pdf"), "--date", "2026-01-01"))
    content = (folder / "r.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert b"/CreationDate (D:20260101120000" in content
    time.sleep(1.1)  # the clock that a browser writes into a PDF has moved on
    run(*command(folder, "--pdf", str(folder / "r.pdf"), "--date", "2026-01-01"))
    assert (folder / "r.pdf").read_bytes() == content
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", folder / "r.pdf", "-"], capture_output=True, text=True, check=True).stdout
        assert re.search(r"page 1 of \d+", text)
        found = [r for r in json.loads((folder / "r.audit.json").read_text())["results"] if r["points"]]
        printed = len(re.findall(r"input\s+a\s+→", text))
        named = len(re.findall(r"the\s+same\s+pair\s+as\s+above", text))
        repeated = sum(a["points"] == b["points"] for a, b in itertools.pairwise(found) if a["varied"] == b["varied"])
        assert (printed, named) == (len(found) - repeated, repeated)
        assert printed > 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('ownr = "x"', "did you mean `owner`"),
        ("owner = 3", "not a text"),
        ('sign_off = "me"', "not a list"),
        ("owner = ", "invalid TOML"),
    ],
)
def test_mistakes_in_the_purpose_have_a_remedy(tmp_path: Path, content: str, message: str) -> None:
    from treesens.errors import UsageError

    (tmp_path / "p.toml").write_text(content)
    with pytest.raises(UsageError, match=message):
        read_purpose(tmp_path / "p.toml")


def test_what_would_stop_the_report_is_said_before_the_work(folder: Path, tmp_path: Path) -> None:
    started: list[Any] = command(folder)
    assert "is not a date" in run(*started, "--date", "tomorrow", code=1).stderr
    assert "SOURCE_DATE_EPOCH" in run(*started, SOURCE_DATE_EPOCH="x", code=1).stderr
    bare = ["audit", folder / "m.json", "--data", folder / "d.csv"]
    assert "add --report" in run(*bare, "--purpose", folder / "p.toml", code=1).stderr
    for name, told in (("r.json", "a name in `.json`"), ("r.pdf", "--pdf NAME.pdf"), ("r", "has no ending")):
        assert told in run(*bare, "--report", tmp_path / name, "--margin", "9", code=1).stderr
        assert not (tmp_path / name).exists()


def test_a_report_needs_no_purpose(folder: Path, tmp_path: Path) -> None:
    bare = ["audit", folder / "m.json", "--data", folder / "d.csv", "-v", "p"]
    run(*bare, "--margin", "9", "--report", tmp_path / "r.html", "-t", "2")
    reader = Reader()
    reader.feed((tmp_path / "r.html").read_text())
    assert "changes of one feature at a time" in words(reader)
    assert "Prepared by" in words(reader)
    records = (tmp_path / "r.audit.json").read_bytes()
    other = [*bare[:-1], "q", "--margin", "9", "--report", tmp_path / "r.html", "-t", "2"]
    refused = run(*other, code=1).stderr
    assert "r.audit.json: the file has the records of another audit: treesens audit" in refused
    assert "add --force, or name another page" in refused
    assert (tmp_path / "r.audit.json").read_bytes() == records
    run(*other, "--force")
    run(*other, "-v", "r", "-t", "3")
    assert {one["varied"][0] for one in json.loads((tmp_path / "r.audit.json").read_text())["results"]} == {"q", "r"}


def test_what_the_page_says_of_repeating_gives_the_same_page(tmp_path: Path) -> None:
    """With the lines of treesens.toml that the page prints, and its command, the page comes out in another folder again."""
    trained = two_classes("xgboost")
    first, second = tmp_path / "first", tmp_path / "second"
    pages = []
    for folder in (first, second):
        folder.mkdir()
        trained.estimator.save_model(folder / "m.json")
        trained.frame.to_csv(folder / "d.csv", index=False)
    content = 'protected = ["p"]\nclasses = {"0" = "granted", "1" = "refused"}\nfavourable = "0"'
    line = "audit m.json --data d.csv --gap 0.1 --report r.html --date 2026-01-01 -t 60 -j 1"
    for folder in (first, second):
        (folder / "treesens.toml").write_text(content)
        done = run_command(folder, *line.split())
        assert done.returncode == 0, done.stderr
        text = (folder / "r.html").read_text()
        pages.append(text)
        # The second folder has only the model, the rows, and the file and the command shown on the page of the first.
        content = html.unescape(text.partition('<pre class="toml">')[2].partition("</pre>")[0])
        line = html.unescape(text.partition("<pre>treesens ")[2].partition("</pre>")[0]) or line
    assert pages[0] == pages[1]
    assert hashlib.sha256((first / "treesens.toml").read_bytes()).hexdigest() in pages[0].partition("Sign-off")[0]
    assert "P(refused) &gt;= 0.6" in pages[0]


def test_the_terminal_has_the_names_of_classes(tmp_path: Path) -> None:
    trained = two_classes("xgboost")
    trained.estimator.save_model(tmp_path / "m.json")
    trained.frame.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "treesens.toml").write_text('classes = {"0" = "granted", "1" = "refused"}')
    done = run_command(tmp_path, "audit", "m.json", "--data", "d.csv", "--gap", "0.1", "-v", "p")
    assert "P(refused) >= 0.6 for one input, <= 0.4 for the other" in done.stdout
