"""No product with a power of two is formed outside of the file that forms it exactly.

`2**shift` is a float if the shift is negative, and every exact number that meets it becomes one. What an exponent is cannot be
told from the text; whether it is written out can. So powers of two have a literal or a constant as their exponent everywhere
but in `compiler/base/dyadic.py`, and nothing else scales floats or divides by a shifted 1.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "treesens"
EXACT = {"compiler/base/dyadic.py"}
SCALING = {"ldexp", "exp2", "scalb", "scalbn"}


def is_two(node: ast.expr) -> bool:
    """2, 2.0, 0.5 or a number type called with one of them."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    return isinstance(node, ast.Constant) and node.value in {2, 0.5}


def is_known(node: ast.expr) -> bool:
    """A number that is written out, or a constant of the module."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return is_known(operand)
        case ast.Name(id=name):
            return name.isupper()
    return False


def scalings(source: str) -> Iterator[int]:
    """The lines that scale by a power of two that is not known."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(left=left, op=ast.Pow(), right=right) if is_two(left) and not is_known(right):
                yield node.lineno
            case ast.BinOp(op=ast.Div(), right=ast.BinOp(op=ast.LShift(), right=right)) if not is_known(right):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in SCALING:
                yield node.lineno


def test_powers_of_two_are_formed_exactly() -> None:
    paths = {path.relative_to(SOURCES).as_posix(): path for path in SOURCES.rglob("*.py")}
    assert paths.keys() >= EXACT
    found = [
        f"{name}:{line}" for name, path in paths.items() if name not in EXACT for line in scalings(path.read_text())
    ]
    assert found == [], "use compiler/base/dyadic.Unit"


@pytest.mark.parametrize(
    "source",
    [
        "x * 2**shift",
        "x * 2.0 ** -row.shift",
        "Fraction(2) ** s",
        "np.ldexp(x, s)",
        "x / (1 << s)",
        "0.5**n",
        "exp2(x)",
    ],
)
def test_a_power_of_two_is_seen(source: str) -> None:
    assert list(scalings(source)) == [1]


@pytest.mark.parametrize("source", ["x * 2.0**-40", "x / 2**_BITS", "(1 << s) - 1", "n**2", "x >> s"])
def test_what_is_known_is_none(source: str) -> None:
    assert list(scalings(source)) == []
