"""A pseudo-Boolean solver as the competitions want one: reads an OPB file, decides or optimises it with z3, prints `s` and `v`.

It reads the format by its definition (http://www.cril.univ-artois.fr/PB24/OPBgeneral.pdf) and knows nothing of treesens, so
that what our writer says and what it means are compared by somebody else.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import z3

Terms = list[tuple[int, int]]


def terms_of(text: str) -> Terms:
    """Pairs of coefficient and variable number."""
    tokens = text.split()
    assert len(tokens) % 2 == 0, text
    result = []
    for coefficient, variable in zip(tokens[::2], tokens[1::2], strict=True):
        assert re.fullmatch(r"[+-]?\d+", coefficient), coefficient
        assert re.fullmatch(r"x[1-9]\d*", variable), variable
        result.append((int(coefficient), int(variable[1:])))
    return result


def read(text: str) -> tuple[int, Terms | None, list[tuple[Terms, str, int]]]:
    """The number of variables, the objective to be minimised if there is one, and the constraints."""
    lines = [line for line in text.splitlines() if line.strip()]
    head = re.match(r"\* #variable= (\d+) #constraint= (\d+)", lines[0])
    assert head, "the first line counts variables and constraints"
    statements = " ".join(line for line in lines if not line.startswith("*")).split(";")
    assert statements.pop().strip() == "", "every statement ends in a semicolon"
    objective = None
    if statements and statements[0].strip().startswith("min:"):
        objective = terms_of(statements.pop(0).strip().removeprefix("min:"))
    rows = []
    for statement in statements:
        parts = re.fullmatch(r"\s*(.*?)\s*(>=|=)\s*([+-]?\d+)\s*", statement)
        assert parts, statement
        rows.append((terms_of(parts[1]), parts[2], int(parts[3])))
    assert len(rows) == int(head[2])
    variables = int(head[1])
    named = [v for terms, _, _ in rows for _, v in terms] + [v for _, v in objective or []]
    # A term over x1 stands where a row has none; then there need not be a variable.
    assert max(named, default=0) <= max(1, variables)
    return max(1, variables), objective, rows


def main(path: str) -> None:
    variables, objective, rows = read(Path(path).read_text())
    x = [None, *(z3.Bool(f"x{i}") for i in range(1, variables + 1))]

    def total(terms: Terms) -> z3.ArithRef:
        return z3.Sum([z3.If(x[v], c, 0) for c, v in terms])

    solver = z3.Optimize() if objective is not None else z3.Solver()
    for terms, relation, bound in rows:
        solver.add(total(terms) >= bound if relation == ">=" else total(terms) == bound)
    if objective is not None:
        solver.minimize(total(objective))
    answer = solver.check()
    if answer == z3.unsat:
        print("s UNSATISFIABLE")
    elif answer == z3.sat:
        model = solver.model()
        print("s OPTIMUM FOUND" if objective is not None else "s SATISFIABLE")
        for i in range(1, variables + 1):
            print(f"v {'' if z3.is_true(model[x[i]]) else '-'}x{i}")
    else:
        print("s UNKNOWN")


if __name__ == "__main__":
    main(sys.argv[1])
