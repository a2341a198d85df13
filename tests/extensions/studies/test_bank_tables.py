"""`treesens audit MODEL TABLE` on ten models and tables as banks have them: every number of page 1 against the library.

Page 1 is the text before the section "What has to be trusted". A sentence or a cell with a digit has a template with a claim;
one without a template fails. Claims about rows are exact: the library predicts every row with a value of every cell.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.command import run_command
from tests.extensions.studies.bank_tables import BANKS, Bank

pytest.importorskip("jinja2")
GAP = r"gap ([\d.]+)"
NUMBER = r"[\d.e+-]+"
ROUNDING = 2e-6
"""Of a probability in float32."""


def percent(text: str) -> float:
    return float(text) / 100


def entropy(codes: np.ndarray) -> float:
    part = np.unique(codes, return_counts=True)[1] / len(codes)
    return float(-(part * np.log(part)).sum())


def codes_of(column: pd.Series) -> np.ndarray:
    """Texts and few numbers by value, many numbers in ten bins of equally many rows; a missing value is a value."""
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > 20:
        ends = np.unique(np.quantile(column.dropna(), np.linspace(0, 1, 11)[:-1], method="inverted_cdf"))
        return np.where(column.isna(), len(ends) + 1, np.searchsorted(ends, column, side="right"))
    return pd.factorize(column, use_na_sentinel=False)[0]


class Judge:
    """The templates of sentences with a number, each with its claim."""

    def __init__(self, bank: Bank, facts: dict[str, Any]) -> None:
        self.bank, self.facts = bank, facts
        self.ours = {shown: name for name, shown in bank.shown.items()}
        self.gaps = sorted({record["gap"] for record in facts["results"]})
        self.used = [record["varied"][0] for record in facts["results"] if record["gap"] == self.gaps[0]]
        self.known: dict[str, np.ndarray] = {}
        self.templates: list[tuple[str, Callable[..., bool]]] = [
            (rf"At {GAP}, (.*)", self.headline),
            (r".*: (\d+) trees, (\d+) leaves, (\d+) features", self.size),
            (r".*: ([\d,]+) rows", lambda count: int(count) == len(bank.frame)),
            (r"Date: \d{4}-\d\d-\d\d", lambda: True),
            (rf"{GAP}: (\S+) >= ({NUMBER}) for one input, <= ({NUMBER}) for the other", self.question),
            (rf"{GAP}: predictions of the two inputs at least ({NUMBER}) apart", lambda gap, size: gap == size),
            (r"(.+?): (.* \([\d.]+ %, largest swing: .*\))", self.proxies),
            # Definitions: their only digit is the label of a class.
            (r"Largest swing: the largest difference of .*", lambda: True),
            (r"In brackets: the part of the entropy .*", lambda: True),
            (r"The time limit of each set was ([\d.]+) s: .*", self.seconds),
        ]

    def scores(self, name: str) -> np.ndarray:
        """The library's predictions float64[rows, values]."""
        if name not in self.known:
            self.known[name] = self.bank.scores(self.ours.get(name, name))
        return self.known[name]

    def flips(self, name: str, gap: float) -> tuple[int, int]:
        """The fewest and the most rows that flip, as probabilities are rounded."""
        high, low = self.scores(name).max(axis=1), self.scores(name).min(axis=1)
        counts = []
        for slack in (-ROUNDING, ROUNDING):
            if self.bank.regression:
                counts.append(int((high - low >= gap - slack * np.abs(high).max()).sum()))
            else:
                counts.append(int(((high >= 0.5 + gap - slack) & (low <= 0.5 - gap + slack)).sum()))
        return counts[0], counts[1]

    @cached_property
    def sample(self) -> pd.DataFrame:
        """400 inputs of the domain: each value is one of its column."""
        rng = np.random.default_rng(0)
        frame = self.bank.frame
        return pd.DataFrame(
            {name: frame[name].to_numpy()[rng.integers(len(frame), size=400)] for name in frame}
        ).astype(frame.dtypes)

    def ever_flips(self, name: str, gap: float) -> bool:
        """True if a row or an input of the sample flips: such an input disproves `none`."""
        if self.flips(name, gap)[0]:
            return True
        high, low = self.of_sample(name)
        if self.bank.regression:
            return bool((high - low >= gap).any())
        return bool(((high > 0.5 + gap + ROUNDING) & (low < 0.5 - gap - ROUNDING)).any())

    def of_sample(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        ours = self.ours.get(name, name)
        parts = [
            self.bank.predict(self.sample.assign(**{ours: self.typed(ours, value)})) for value in self.bank.values(ours)
        ]
        return np.max(parts, axis=0), np.min(parts, axis=0)

    def typed(self, name: str, value: Any) -> pd.Series:
        column = self.bank.frame[name]
        dtype = float if value is None and column.dtype.kind in "iu" else column.dtype
        return pd.Series([value] * len(self.sample), index=self.sample.index, dtype=dtype)

    def headline(self, gap: str, words: str) -> bool:
        of = [name for name in self.used if self.ours.get(name, name) in self.bank.protected]
        assert of, "the protected features of the table were not recognised"
        counted = 0
        for part in words.split("; "):
            found = re.fullmatch(
                r"(\d+) of (\d+)(?: protected features? \(suggested by name\))? "
                r"(?:can (?:change a decision|move the prediction so far): (.*)|((?:is|are) proved not to .*))",
                part,
            )
            if found is None or int(found[2]) != len(of):
                return False
            counted += int(found[1])
            named = [name for name in of if f"{name} (" in (found[3] or "")]
            if found[3] is None:
                if sum(not self.ever_flips(name, float(gap)) for name in of) < int(found[1]):
                    return False
            elif len(named) != int(found[1]) or not all(self.count(name, float(gap), found[3]) for name in named):
                return False
        return counted == len(of)

    def count(self, name: str, gap: float, words: str) -> bool:
        """`Age (85 of 240 rows flip)` in a list."""
        found = re.search(re.escape(name) + r" \((?:(\d+) of 240 rows flips?|none of 240 rows flips)\)", words)
        low, high = self.flips(name, gap)
        return found is not None and low <= int(found[1] or 0) <= high

    def size(self, trees: str, leaves: str, features: str) -> bool:
        return (int(trees), int(leaves), int(features)) == (*self.bank.size, self.bank.frame.shape[1])

    def question(self, gap: str, who: str, high: str, low: str) -> bool:
        return who.startswith("P(") and np.allclose([float(high), float(low)], [0.5 + float(gap), 0.5 - float(gap)])

    def proxies(self, of: str, words: str) -> bool:
        target = codes_of(self.bank.frame[self.ours.get(of, of)])
        for name, told, swing in re.findall(r"(\S.*?) \(([\d.]+) %, largest swing: ([^()]*)\)(?:; )?", words):
            column = codes_of(self.bank.frame[self.ours.get(name, name)])
            both = entropy(target * 1000 + column)
            chance = (len(set(target)) - 1) * (len(set(column)) - 1) / (2 * len(target))
            truth = (entropy(target) + entropy(column) - both - chance) / entropy(target)
            if abs(percent(told) - truth) > 1e-4 or not self.swings(name, swing):
                return False
        return True

    def swings(self, name: str, words: str) -> bool:
        """A largest swing is at least that of the rows and of the sample; its pair of probabilities has this swing."""
        found = re.fullmatch(
            rf"(?:at least )?({NUMBER})(?:, at most ({NUMBER}))?(?: \(P ({NUMBER}) to ({NUMBER})\))?", words
        )
        if found is None:
            return words == "not used (proved)"
        link = (lambda p: p) if self.bank.regression or self.bank.name == "pipeline" else lambda p: np.log(p / (1 - p))
        rows, (high, low) = self.scores(name), self.of_sample(name)
        reached = max((link(rows.max(1)) - link(rows.min(1))).max(), (link(high) - link(low)).max())
        most = float(found[2] or found[1])
        if reached > most * (1 + 1e-3) + 1e-4:
            return False
        if found[3] is None:
            return True
        pair = link(np.array([float(found[3]), float(found[4])]))
        return abs(pair[1] - pair[0] - float(found[1])) <= 0.03 * max(1.0, float(found[1]))

    def seconds(self, seconds: str) -> bool:
        return float(seconds) == self.facts["settings"]["seconds per set"] and float(seconds) <= 5

    def pair(self, words: str) -> bool:
        """`gap 0.2: Age 21 → 56: prob 0.05 → 0.87, row 225`: the library predicts both points of the record."""
        found = re.fullmatch(rf"{GAP}: (.*?): ([^:]*?) ?({NUMBER}|\(.*?\)) → (.*?)(?:, row (\d+))?", words)
        if found is None:
            return False
        name = next(one for one in self.used if found[2].startswith(f"{one} "))
        record = next(r for r in self.facts["results"] if r["varied"] == [name] and r["gap"] == float(found[1]))
        points = [{self.ours.get(n, n): v for n, v in point.items()} for point in record["points"].values()]
        changed = [n for n in points[0] if points[0][n] != points[1][n]]
        values = [re.escape(str(point[changed[0]])) for point in points]
        if changed != [self.ours.get(name, name)] or not re.fullmatch(
            rf"{re.escape(name)} {values[0]} → {values[1]}", found[2]
        ):
            return False
        if found[6] is not None and not self.made_of(points[0], changed[0], int(found[6])):
            return False
        frame = pd.DataFrame(points)[list(self.bank.frame)].astype(self.bank.frame.dtypes)
        first, second = (float(one) for one in self.bank.predict(frame))
        classes = re.findall(r"(granted|refused) \(([\d.]+)\)", words)
        said = [float(number) if label == "refused" else 1 - float(number) for label, number in classes]
        said = said or [float(found[4]), float(found[5])]
        return np.allclose([first, second], said, rtol=5e-3, atol=6e-4)

    def made_of(self, point: dict[str, Any], varied: str, row: int) -> bool:
        """The other features are those of the row; the varied one may have two other values."""
        own = self.bank.frame.iloc[row]
        return all(n == varied or (pd.isna(own[n]) if value is None else own[n] == value) for n, value in point.items())

    def cell(self, name: str, gap: float, words: str) -> bool:
        low, high = self.flips(name, gap)
        found = re.fullmatch(r"on rows: (\d+) of 240 \(([\d.]+) %\)", words)
        if found:
            return low <= int(found[1]) <= high and abs(percent(found[2]) - int(found[1]) / 240) < 1e-4
        if words == "none (proved)":
            return not self.ever_flips(name, gap)
        return words == "on inputs only" and low == 0

    def wrong(self, text: str) -> str | None:
        words = text.removesuffix(".")
        if not re.search(r"\d", words):
            return None
        if " → " in words:
            return None if self.pair(words) else f"false: {text}"
        for template, claim in self.templates:
            found = re.fullmatch(template, words)
            if found is not None:
                return None if claim(*found.groups()) else f"false: {text}"
        return f"of no template: {text}"


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\u00a0", " ").split())


@pytest.mark.parametrize("make", BANKS, ids=lambda make: make.__name__)
def test_one_command_and_a_page_of_true_numbers(make: Callable[[Path], Bank], tmp_path: Path) -> None:
    bank = make(tmp_path)
    page = tmp_path / "page.html"
    bare = run_command(tmp_path, "audit", bank.model.name, bank.table.name)
    assert bare.returncode == 0, bare.stdout + bare.stderr
    assert bank.label is None or f"label: `{bank.label}`" in bare.stderr
    done = run_command(
        tmp_path, "audit", bank.table.name, bank.model.name, "--report", page.name, "-j", "1", COLUMNS="900"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(page.with_suffix(".audit.json").read_text())
    text = page.read_text()
    first = text[text.index("<h1>") : text.index("<h2>What has to be trusted")]
    judge = Judge(bank, facts)
    wrong, judged = [], 0
    for tag, inner in re.findall(r"<(p|li)\b[^>]*>(.*?)</\1>", first, re.DOTALL):
        del tag
        for sentence in re.split(r"(?<=[.?])\s+(?=[A-Z])", plain(inner)):
            # Names of files have dots and spaces, and no sentence ends in them.
            judged += bool(re.search(r"\d", sentence))
            wrong.append(judge.wrong(sentence))
    for name, line in re.findall(r'<tr><th scope="row" class="(?:name|long)">(.*?)</th>(.*?)</tr>', first):
        cells = re.findall(r'<td class="finding \w+" data-label="[^"]+">(.*?)</td>', line)
        for gap, cell in zip(judge.gaps, cells, strict=True):
            judged += 1
            wrong.append(None if judge.cell(plain(name), gap, plain(cell)) else f"false: {name} {gap} {cell}")
        swing = plain(re.findall(r'<td data-label="largest swing">(.*?)</td>', line)[0])
        judged += 1
        wrong.append(None if judge.swings(plain(name), swing) else f"false: {name} {swing}")
    assert judged >= 3 * len(judge.used)
    assert not list(filter(None, wrong)), "\n".join(filter(None, wrong))
    assert plain(re.findall(r'<p class="headline">(.*?)</p>', first)[0]) == done.stdout.splitlines()[0].strip()
