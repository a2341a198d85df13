"""The command: reads files within limits, prints their claims, and accepts or rejects them."""

import argparse
import errno
import hashlib
import json
import lzma
import os
import stat
import sys
import threading
from _thread import interrupt_main

from .core import MALFORMED, MOST_ENTRIES, check, model_of
from .models import object_of, read_model
from .numbers import Rejected, require
from .together import check_manifest, together
from .words import in_full, in_words

MEGABYTE, MEMORY, SECONDS = 1 << 20, 4096, 600
MOST_BYTES = MEMORY * MEGABYTE // 16
MANIFEST = ".manifest.json"


def read(path, most=MOST_BYTES):
    """The JSON object of a certificate, of at most so many bytes and an eighth as many values."""
    return unpacked(content(path, most, "certificate"), most)


def content(path, most, what):
    """The bytes of a file within the limit."""
    found = bytes_of(path, most + 1)
    require(len(found) <= most, f"the {what} has more than {most} bytes")
    return found


def bytes_of(path, most=-1):
    """The bytes of a plain file. OSError for a pipe or a device, whose reading might never end."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file: copy what it gives into one")
        return file.read(most)


def unpacked(packed, most):
    """The JSON object in the bytes of a certificate."""
    unpack = lzma.LZMADecompressor(memlimit=most)
    text = unpack.decompress(packed, max_length=most + 1)
    require(len(text) <= most, f"the certificate has more than {most} bytes when it is unpacked")
    require(unpack.eof and not unpack.unused_data, "the file ends too early, or something follows the certificate")
    values = sum(map(text.count, (b",", b"[", b"{")))
    require(values <= most // 8, f"the certificate has more than {most // 8} values")
    refuse = lambda name: require(False, f"{name} is no number")  # noqa: E731
    return json.loads(text.decode(), parse_constant=refuse, object_pairs_hook=object_of)


def read_manifest(path, most=MOST_BYTES):
    """The JSON object of a manifest, of at most so many bytes."""
    return json.loads(content(path, most, "manifest").decode(), object_pairs_hook=object_of)


def say(text):
    # Names come from files that nobody trusts: no control character reaches a terminal.
    print("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text), flush=True)


class Clock:
    """Interrupts the main thread when time is up; it ends in `Rejected`."""

    def __init__(self, seconds):
        self.seconds, self.over = seconds, False
        self.timer = threading.Timer(seconds, self.end)
        self.timer.daemon = True

    def end(self):
        self.over = True
        interrupt_main()

    def __enter__(self):
        self.timer.start()

    def __exit__(self, kind, *_):
        self.timer.cancel()
        if self.over and kind is KeyboardInterrupt:
            raise Rejected(f"it is not decided after {self.seconds:g} s (--seconds allows more)")


def limit_memory(megabytes):
    """Sets the system's memory limit, where it has one: beyond it a MemoryError is raised."""
    try:
        import resource
    except ImportError:  # no POSIX
        return
    most, hard = megabytes * MEGABYTE, resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def judge(path, asked, data, files):
    """Prints the claim of a certificate, or of a manifest with its parts, and accepts or rejects it."""
    most = asked.megabytes * MEGABYTE // 16
    try:
        for line in (of_manifest if path.endswith(MANIFEST) else one)(path, asked, data, files, most):
            if not asked.quiet:
                say(line)
    except OSError as error:
        reason = error.strerror or error
    except MemoryError:
        reason = f"it takes more than {asked.megabytes} MB of memory (--megabytes allows more)"
    except (Rejected, *MALFORMED) as error:
        reason = error
    else:
        say(f"{path}: accepted")
        return True
    say(f"{path}: rejected: {reason}")
    return False


def one(path, asked, data, files, most):
    """The lines of an accepted certificate."""
    with Clock(asked.seconds):
        return checked(content(path, most, "certificate"), asked, data, files, most, read_model)[0]


def checked(packed, asked, data, files, most, read_one):
    """The lines, claim and statement of an accepted certificate; each content is checked once in a run."""
    digest = hashlib.sha256(packed).hexdigest()
    if digest not in asked.known:
        certificate = unpacked(packed, most)
        lines = accepted(certificate, asked, data, files, read_one)
        asked.known[digest] = lines, {name: certificate[name] for name in ("claim", "statement")}
    return asked.known[digest]


def accepted(certificate, asked, data, files, read_one):
    """Checks a certificate and returns its claim in lines."""
    prove = with_numpy() if asked.numpy else check
    problem = prove(certificate, data, read_one, entries=asked.entries, **allowed_by(asked))
    lines = list(in_words(problem, files))
    return lines + list(in_full(problem, certificate["inputs"]) if problem.found else [])


def with_numpy():
    """The numpy path, which nothing else here needs."""
    try:
        from .boxes import check as prove
    except ImportError as error:
        raise Rejected(f"numpy cannot be imported: {error}") from error
    return prove


def allowed_by(asked):
    return {"first_trees": asked.first_trees, "trees_alone": asked.trees_alone}


def of_manifest(path, asked, data, files, most):
    """The lines of a manifest: every part is accepted, and then the claims follow from all of them."""
    certificates, known = [], {}
    with Clock(asked.seconds):
        manifest = read_manifest(path, most)
        check_manifest(manifest)

    def read_one(content, stated):
        key = json.dumps(stated, sort_keys=True)
        if key not in known:
            known[key] = read_model(content, stated)
        return known[key]

    for i, part in enumerate(manifest["parts"]):
        before = part["sha256"] in asked.known
        try:
            with Clock(asked.seconds):
                packed = content(os.path.join(os.path.dirname(path), part["file"]), most, "certificate")
                named = hashlib.sha256(packed).hexdigest() == part["sha256"]
                require(named, "it is not the file that the manifest names")
                lines, stated = checked(packed, asked, data, files, most, read_one)
        except OSError as error:
            raise Rejected(f"part {i}, {part['file']}: {error.strerror or error}") from None
        except (Rejected, *MALFORMED) as error:
            raise Rejected(f"part {i}, {part['file']}: {error}") from None
        certificates.append(stated)
        yield from [f"part {i}, {part['file']}: accepted above"] if before else [f"part {i}, {part['file']}:", *lines]
    said = []
    with Clock(asked.seconds):
        for claim in manifest["claims"]:
            read_stated = lambda stated: model_of(stated, data, read_one, **allowed_by(asked))  # noqa: E731
            said += together(claim, certificates, read_stated, files)
    yield from (f"Together: {line}" for line in said)


def options():
    parser = argparse.ArgumentParser(
        description="Checks certificates about tree ensembles: says in words what is claimed, and whether that is proved."
    )
    parser.add_argument("certificate", nargs="+")
    parser.add_argument("--model", action="append", required=True, help="a model file, or folder; may be repeated")
    parser.add_argument("--quiet", action="store_true", help="only whether it is accepted, not what is claimed")
    parser.add_argument("--first-trees", action="store_true", help="it may be about the first trees of a model alone")
    trees = "a trees file counts without the model that it says to be made from"
    parser.add_argument("--trees-alone", action="store_true", help=trees)
    parser.add_argument("--numpy", action="store_true", help="check proofs of deep trees with numpy, much faster")
    limits = parser.add_argument_group("limits of every certificate")
    limits.add_argument("--seconds", type=float, default=SECONDS, help="default: %(default)s")
    limits.add_argument("--megabytes", type=int, default=MEMORY, help="of memory, default: %(default)s")
    limits.add_argument(
        "--entries", type=int, default=MOST_ENTRIES, help="combinations of leaves, default: %(default)s"
    )
    asked = parser.parse_args()
    asked.known = {}  # what is accepted, by SHA-256
    if not 0 < asked.seconds <= threading.TIMEOUT_MAX or asked.megabytes < 64 or asked.entries < 1:
        parser.error("--seconds and --entries are above 0, and --megabytes is at least 64")
    return asked


def listed(folder):
    """The list that `sha256sum` writes of the files of a folder, by name; its SHA-256 is that of a model folder.

    Names that begin with `.` or `_`, and anything but plain files, do not count.
    """
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        for path in (os.path.join(place, name) for name in names if name[0] not in "._"):
            if os.path.isfile(path) and not os.path.islink(path):
                name = os.path.relpath(path, folder).replace(os.sep, "/")
                if not name.isprintable() or "\\" in name:  # such a name could stand for other lines of the list
                    raise OSError(errno.EINVAL, "a file in it has a name that is no plain text")
                found[name.encode()] = hashlib.sha256(bytes_of(path)).hexdigest().encode()
    return b"".join(digest + b"  " + name + b"\n" for name, digest in sorted(found.items()))


def main():
    """0: all files are accepted; 1: one is rejected; 2: a model cannot be read, or an option is wrong."""
    asked, data = options(), []
    sys.stdout.reconfigure(errors="backslashreplace")
    limit_memory(asked.megabytes)
    try:
        for path in asked.model:
            if os.path.isdir(path):
                data.append(listed(path))
                continue
            data.append(bytes_of(path))
    except (MemoryError, OSError) as error:
        say(f"{path}: the model cannot be read: {getattr(error, 'strerror', None) or 'it does not fit into memory'}")
        return 2
    files = {hashlib.sha256(content).hexdigest(): path for content, path in zip(data, asked.model)}
    try:
        verdicts = [judge(path, asked, data, files) for path in asked.certificate]
        return 0 if all(verdicts) else 1
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
