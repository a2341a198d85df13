"""The published models and tables, fetched from their public place: python -m benchmarks.published (or `make bench-data`)

They belong to the authors of the paper and of its predecessors, and lie in the repository of the paper's tool; none of them is
in this one. A file is kept only if its SHA-256 digest is the one in `published.sha256`. A second run fetches what is missing.

`TREESENS_BENCH` names another folder for tests and benchmarks. What else such a folder may hold is in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("TREESENS_BENCH") or ROOT / "build" / "bench").resolve()
"""With `models/NAME.json` and `data/NAME/train.csv`."""
VERDICTS = Path(__file__).resolve().parent / "instances" / "published.jsonl"
"""Every single feature of the binary models at three raw gaps, with its verdict: all proved or replayed."""
COMMIT = "042d73b2e117108a2e3d98ca2fd81c554a71240a"
ADDRESS = f"https://raw.githubusercontent.com/formal-trust-AI/ensense/{COMMIT}"
SECONDS = 60.0
"""Until a server that says nothing is given up."""
MANIFEST = Path(__file__).with_name("published.sha256")


def files(manifest: Path = MANIFEST) -> Iterator[tuple[str, Path, str]]:
    """The SHA-256 digest, the place in the folder and the place in the public repository of each file."""
    for line in manifest.read_text().splitlines():
        digest, place, source = line.split()
        yield digest, Path(place), source


def is_whole(path: Path, digest: str) -> bool:
    """Whether the file is there with its digest."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def fetch(folder: Path, address: str, manifest: Path = MANIFEST) -> int:
    """Fetches what is missing; the number of files that came. A file with another digest is refused and not kept."""
    return sum(
        fetch_file(folder / place, f"{address}/{source}", digest)
        for digest, place, source in files(manifest)
        if not is_whole(folder / place, digest)
    )


def fetch_file(path: Path, address: str, digest: str) -> bool:
    """Fetches one file. SystemExit if it cannot be had, or has another digest; then nothing is kept of it."""
    try:
        with urlopen(address, timeout=SECONDS) as answer:
            content = answer.read()
    except (URLError, TimeoutError) as error:
        raise SystemExit(f"{address} cannot be fetched: {error}. Files fetched so far are kept.") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise SystemExit(f"{address} is not the file that was measured: its SHA-256 digest differs.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(content)
    partial.replace(path)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=FOLDER, help="the folder to fill (default: %(default)s)")
    parser.add_argument("--from", dest="address", default=ADDRESS, help="another copy of the repository, as an address")
    asked = parser.parse_args()
    fetched = fetch(asked.bench, asked.address)
    print(f"{asked.bench}: {fetched} files fetched, {sum(1 for _ in files())} in all")


if __name__ == "__main__":
    main()
