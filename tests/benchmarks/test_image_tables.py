"""Tables of images are read from packages that have the digest of the figures, and from no others."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks import image_tables


def package(path: Path, images: dict[int, list[list[int]]]) -> str:
    """Writes a package as that of Fashion-MNIST, with these images of each class; its digest."""
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as tar:
        for k in range(10):
            content = json.dumps({"data": images.get(k, [])}).encode()
            entry = tarfile.TarInfo(f"package/src/clothes/{k}.json")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_images_come_class_by_class_without_empty_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = tmp_path / "served" / "a" / "small.tgz"
    grey, white = [51] * 784, [255] * 784
    digest = package(served, {0: [grey, []], 1: [white], **{k: [grey] for k in range(2, 10)}})
    monkeypatch.setattr(image_tables, "REGISTRY", (tmp_path / "served").as_uri())
    monkeypatch.setitem(image_tables.PACKAGES, "fashion", ("a/small.tgz", digest))
    monkeypatch.setattr(image_tables, "FOLDER", tmp_path)
    pixels, classes = image_tables.images_of("fashion")
    assert classes.tolist() == list(range(10))
    assert pixels.dtype == np.float32
    assert pixels.shape == (10, 784)
    assert np.unique(pixels[1]).tolist() == [1.0]
    assert np.unique(pixels[0]).tolist() == [np.float32(51) / np.float32(255)]
    served.unlink()
    assert image_tables.images_of("fashion")[0].shape == (10, 784), "what was fetched is kept"


def test_another_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "served" / "a" / "small.tgz", {})
    monkeypatch.setattr(image_tables, "REGISTRY", (tmp_path / "served").as_uri())
    monkeypatch.setitem(image_tables.PACKAGES, "fashion", ("a/small.tgz", "0" * 64))
    monkeypatch.setattr(image_tables, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="SHA-256"):
        image_tables.images_of("fashion")
    assert not (tmp_path / "images").exists()
    monkeypatch.setitem(image_tables.PACKAGES, "fashion", ("a/other.tgz", "0" * 64))
    with pytest.raises(SystemExit, match="cannot be fetched"):
        image_tables.images_of("fashion")
