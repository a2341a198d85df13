"""Which certificates of a file the path with numpy accepts. It needs the checker and numpy alone: `lies.py` starts it.

    python -I judge_with_numpy.py verify/src CASES.jsonl

A line is a certificate and the content of a model file. Certificates that boxes accept without the proof in core.py count too.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
from treesens_verify import Rejected, boxes, problem_of  # type: ignore[import-not-found]


def accepts(certificate: dict[str, object], data: bytes) -> bool:
    try:
        boxes.check(certificate, [data], trees_alone=True)
    except Rejected:
        return False
    return True


def accepts_alone(certificate: dict[str, object], data: bytes) -> bool:
    """True if boxes accept a proof by themselves. An error raised by numpy is not a rejection: it ends the run."""
    if certificate["claim"] != "none":
        return False
    try:
        problem = problem_of(certificate, [data], trees_alone=True)
        problem.make_factors(set())
        proof = boxes.BoxProof(problem)
        if not proof.suits(certificate["nodes"]):
            return False
        proof.go_through(certificate["nodes"])
    except (Rejected, *boxes.MALFORMED):
        return False
    return True


verdicts = []
with open(sys.argv[2]) as lines:
    for line in lines:
        document, text = json.loads(line)
        verdicts.append(accepts(document, text.encode()) or accepts_alone(document, text.encode()))
json.dump(verdicts, sys.stdout)
