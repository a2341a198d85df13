"""How often each construct has been compared, by frontend and by backend."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Coverage:
    """Counts of compared questions by (construct, frontend, backend), and of verdicts."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.pipelines: Counter[str] = Counter()
        self.frontends: Counter[str] = Counter()
        self.backends: Counter[str] = Counter()
        self.provers: Counter[tuple[str, str]] = Counter()
        self.studies: Counter[tuple[str, str]] = Counter()
        """Records of studies by (study, frontend)."""
        self.refused: Counter[str] = Counter()

    def add(self, told: dict[str, Any]) -> None:
        for study, count in told.get("studies", {}).items():
            self.studies[study, told["frontend"]] += count
        self.refused.update(told.get("refused", {}))
        for question in told["questions"]:
            self.statuses[question["status"]] += 1
            if question["status"] not in ("compared", "wrong"):
                continue
            self.verdicts[question["verdict"] or "error"] += 1
            self.pipelines[told["pipeline"]] += 1
            self.frontends[told["frontend"]] += 1
            self.backends[told["backend"]] += 1
            for construct in question["constructs"]:
                self.seen[construct, told["frontend"], told["backend"]] += 1
                self.provers[construct, question["prover"]] += 1
            self.provers["questions", question["prover"]] += 1

    @property
    def judged(self) -> int:
        """Records of studies."""
        return sum(self.studies.values())

    @property
    def queries(self) -> int:
        return sum(self.statuses.values())

    def record(self) -> dict[str, Any]:
        return {
            "statuses": dict(self.statuses), "verdicts": dict(self.verdicts), "pipelines": dict(self.pipelines),
            "compared": [[*key, n] for key, n in sorted(self.seen.items())],
            "provers": [[*key, n] for key, n in sorted(self.provers.items())],
            "studies": [[*key, n] for key, n in sorted(self.studies.items())], "refused": dict(self.refused),
        }  # fmt: skip

    def table(self, place: int) -> str:
        """Markdown: constructs by frontends (place 1) or backends (place 2)."""
        columns = sorted({key[place] for key in self.seen})
        rows = sorted({key[0] for key in self.seen})
        counts: Counter[tuple[str, str]] = Counter()
        for key, n in self.seen.items():
            counts[key[0], key[place]] += n
        lines = ["| construct | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
        lines += [f"| {row} | " + " | ".join(str(counts[row, c]) for c in columns) + " |" for row in rows]
        return "\n".join(lines)

    def markdown(self) -> str:
        return "\n\n".join(
            [
                "# What the oracle has compared",
                self.short(),
                "## By frontend",
                self.table(1),
                "## By backend",
                self.table(2),
                "## By prover that answered",
                self.table_of_provers(),
                "## Records of studies by frontend",
                self.table_of_studies(),
                "",
            ]
        )

    def table_of_provers(self) -> str:
        """Markdown: who answered, all questions, and the constructs with the fewest of them."""
        lines = ["| prover | questions | constructs |", "| --- | ---: | ---: |"]
        for (construct, prover), n in self.provers.most_common():
            if construct == "questions":
                kinds = sum(1 for one, other in self.provers if other == prover) - 1
                lines.append(f"| {prover} | {n} | {kinds} |")
        return "\n".join(lines)

    def table_of_studies(self) -> str:
        """Markdown: records by study and frontend, and what was refused."""
        columns = sorted({frontend for _, frontend in self.studies})
        lines = ["| study | " + " | ".join(columns) + " | together |", "| --- |" + " ---: |" * (len(columns) + 1)]
        for study in sorted({study for study, _ in self.studies}):
            counts = [self.studies[study, c] for c in columns]
            lines.append(f"| {study} | " + " | ".join(map(str, [*counts, sum(counts)])) + " |")
        return "\n".join(lines)

    def short(self) -> str:
        """A few lines: totals, and the constructs that were compared least often."""
        least: Counter[str] = Counter()
        for key, n in self.seen.items():
            least[key[0]] += n
        rare = ", ".join(f"{c} {n}" for c, n in sorted(least.items(), key=lambda item: item[1])[:8])
        return "\n".join(
            f"{title}: " + ", ".join(f"{k} {n}" for k, n in counter.most_common())
            for title, counter in (
                ("questions", self.statuses), ("verdicts", self.verdicts), ("frontends", self.frontends),
                ("backends", self.backends), ("pipelines", self.pipelines),
            )
        ) + f"\nleast often: {rare}"  # fmt: skip
