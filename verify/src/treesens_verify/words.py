"""What a certificate claims, line by line, and the command."""

import argparse
import json
import lzma

from .core import MALFORMED, check
from .numbers import Rejected, require

MOST_BYTES = 1 << 30


def in_words(problem, found):
    """What a certificate claims, line by line."""
    statement, names, feature = problem.statement, [p["name"] for p in problem.statement["points"]], problem.features
    yield (
        "These inputs exist" if found else "No inputs exist"
    ) + f": {', '.join(names)} (values as the model stores them), with"
    if problem.agree:
        yield "  the same values of all features but " + ", ".join(feature[f] for f in statement["same_except"])
    for p, f, allowed in statement["domain"]:
        kind = ("whole numbers in " if allowed.get("whole") else "in ") if "runs" in allowed else "one of "
        values = allowed.get("runs", allowed.get("values", []))
        yield f"  {names[p]}.{feature[f]} {kind}{json.dumps(values)}{' or missing' if allowed.get('missing') else ''}"
    for row in statement["rows"]:
        terms = [f"{c} * margin({names[p]}, output {o})" for c, p, o in row["terms"]]
        terms += [f"cost of {names[p]}.{feature[f]} {json.dumps([*s, ['missing', m]])}" for p, f, s, m in row["costs"]]
        logs = "".join(f" + {c} * ln({a})" for c, a in row["bound"]["logs"])
        yield f"  {' + '.join(terms) or '0'} {'>' if row['strict'] else '>='} {row['bound']['rational']}{logs}"
    yield from (f"  {names[p]}.{feature[f]} <= {names[q]}.{feature[f]}" for p, q, f in statement["orders"])
    for clause in statement["clauses"]:
        yield "  " + " or ".join(f"{names[p]}.{feature[f]} in {json.dumps(s)}" for p, f, s in clause)


def read(path):
    with lzma.open(path) as file:
        text = file.read(MOST_BYTES + 1)
    require(len(text) <= MOST_BYTES, "the certificate is too large")
    return json.loads(text, parse_constant=lambda name: require(False, f"{name} is no number"))


def say(text):
    # Names come from files that nobody trusts: no control character reaches a terminal.
    print("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description="Checks certificates about tree ensembles: says in words what is claimed, and whether that is proved."
    )
    parser.add_argument("certificate", nargs="+")
    parser.add_argument("--model", action="append", required=True, help="a model file; may be repeated")
    parser.add_argument("--quiet", action="store_true", help="only whether it is accepted, not what is claimed")
    asked, data = parser.parse_args(), []
    for path in asked.model:
        with open(path, "rb") as file:
            data.append(file.read())
    failures = 0
    for path in asked.certificate:
        try:
            certificate = read(path)
            lines = list(in_words(check(certificate, data), certificate["claim"] == "found"))
            for line in [] if asked.quiet else lines:
                say(line)
            say(f"{path}: accepted")
        except (Rejected, *MALFORMED) as reason:
            failures += 1
            say(f"{path}: rejected: {reason}")
    return 1 if failures else 0
