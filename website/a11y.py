"""`make a11y`: are the reports of the gallery accessible? axe-core, in a real headless browser, in light and in dark.

Every page is opened by Chromium (or Chrome) with the checker inside it; rules are those of WCAG 2.0 to 2.2, A and AA, and the
best practices of axe. What it finds is printed with the places in the page, and ends in 1.

    python -m website.a11y build/axe/node_modules/axe-core/axe.min.js PAGE.html…
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from treesens.extensions.studies.report.pdf import browser

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
SCHEMES = {"light": "1", "dark": "0"}
"""Chromium's numbers of the colours that a reader prefers."""
SECONDS = 180

_SCRIPT = """
<script>{axe}</script>
<script>
addEventListener("load", () => axe.run(document, {{runOnly: {tags}}}).then(
  found => done(JSON.stringify({{
    violations: found.violations.map(v => ({{id: v.id, help: v.help, nodes: v.nodes.map(n => n.html.slice(0, 160))}})),
    incomplete: found.incomplete.map(v => ({{id: v.id, help: v.help, nodes: v.nodes.map(n => n.html.slice(0, 160))}})),
    passes: found.passes.length}})),
  error => done(JSON.stringify({{error: String(error)}}))));
function done(text) {{
  const told = document.createElement("pre");
  told.id = "axe-told";
  told.textContent = text;
  document.body.append(told);
}}
</script>
"""


def check(page: Path, axe: Path, scheme: str) -> dict[str, Any]:
    """What axe says of a page in a scheme of colours. Exits with the words of the browser if there is no answer."""
    script = _SCRIPT.format(axe=axe.read_text("utf-8"), tags=json.dumps(list(TAGS)))
    text = page.read_text("utf-8").replace("</body>", script + "</body>", 1)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "page.html"
        copy.write_text(text, "utf-8")
        command = [
            *(browser(), "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions"),
            *(f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", "--window-size=1200,900"),
            *(f"--user-data-dir={folder}/profile", "--virtual-time-budget=120000", "--dump-dom", copy.as_uri()),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to sandbox itself as root
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    told = re.search(r'<pre id="axe-told">(.*?)</pre>', done.stdout, re.DOTALL)
    if told is None:
        sys.exit(f"{page}: the checker gave no answer: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(html.unescape(told[1]))
    return found


def main(axe: Path, pages: list[Path]) -> int:
    """Checks all pages; 1 if something is wrong."""
    wrong = 0
    for page in pages:
        for scheme in SCHEMES:
            found = check(page, axe, scheme)
            if "error" in found:
                sys.exit(f"{page}: {found['error']}")
            wrong += len(found["violations"])
            wrong_here, open_here = len(found["violations"]), len(found["incomplete"])
            print(
                f"{page.name}, {scheme}: {wrong_here} violations, {open_here} to look at, {found['passes']} rules passed"
            )
            for kind in ("violations", "incomplete"):
                for one in found[kind]:
                    print(f"  {kind[:-1] if kind == 'violations' else 'look at'} {one['id']}: {one['help']}")
                    print("".join(f"    {node}\n" for node in one["nodes"][:3]), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
