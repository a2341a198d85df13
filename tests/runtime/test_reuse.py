"""What several steps of one answer share is made once, and only while that lasts."""

from __future__ import annotations

from treesens.runtime.kept import reuse, reused


class Owner:
    """Something that is compiled."""


def test_made_once_while_it_lasts() -> None:
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    owner, other = Owner(), Owner()
    with reused():
        assert [reuse(owner, ("a",), make), reuse(owner, ("a",), make), reuse(owner, ("b",), make)] == [0, 0, 1]
        assert reuse(other, ("a",), make) == 2
    assert [reuse(owner, ("a",), make), reuse(owner, ("a",), make)] == [3, 4]


def test_a_long_row_of_things_is_not_kept() -> None:
    with reused():
        first = Owner()
        assert reuse(first, (), lambda: "first") == "first"
        for number in range(20):
            assert reuse(Owner(), (number,), lambda: "more") == "more"
        assert reuse(first, (), lambda: "again") == "first"
        late = Owner()
        assert [reuse(late, (), lambda: "late"), reuse(late, (), lambda: "again")] == ["late", "again"]
