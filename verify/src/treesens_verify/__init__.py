"""Checks certificates about tree ensembles, with the standard library and the original model file alone.

    python -m treesens_verify FILE.cert.xz --model MODEL.json

Prints the claim in words, and then `accepted` or the reason against it. Nothing here imports treesens: this folder is also
the distribution `treesens-verify` (verify/). docs/certificates.md shows why a certificate is a proof.
"""

from .attainable import parts_of
from .command import main, read, say
from .core import Problem, Proof, check, problem_of
from .models import Model, content_of, read_model
from .numbers import LARGEST, Rejected, float32, ln_bounds, step
from .together import check_manifest, together
from .words import in_words

__all__ = [
    "LARGEST",
    "Model",
    "Problem",
    "Proof",
    "Rejected",
    "check",
    "check_manifest",
    "content_of",
    "float32",
    "in_words",
    "ln_bounds",
    "main",
    "parts_of",
    "problem_of",
    "read",
    "read_model",
    "say",
    "step",
    "together",
]
