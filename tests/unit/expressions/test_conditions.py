from __future__ import annotations

import pyarrow as pa

from tablewright.expressions.conditions import And, Constant, Leaf, Not, Or, Unknown, leaves_of, normal_form
from tablewright.expressions.queries import Between, Contains, HasAll, HasAny, IsIn, IsNull, StartsWith


def leaf(name: str, *values: int) -> Leaf:
    return Leaf((name,), IsIn(pa.array(values, pa.int64())))


def above(name: str, value: int) -> Leaf:
    return Leaf((name,), Between(low=pa.scalar(value)))


def below(name: str, value: int) -> Leaf:
    return Leaf((name,), Between(high=pa.scalar(value), high_inclusive=False))


def test_two_bounds_of_one_column_are_one_range() -> None:
    assert str(normal_form(And((above("x", 1), And((below("y", 3), below("x", 5))))))) == "(x >= 1 && x < 5 AND y < 3)"


def test_three_bounds_are_two_ranges() -> None:
    assert str(normal_form(And((above("x", 1), above("x", 2), below("x", 5))))) == "(x >= 1 && x < 5 AND x >= 2)"


def test_sets_of_one_column_are_one_set() -> None:
    assert str(normal_form(Or((leaf("x", 1), leaf("y", 2), leaf("x", 3))))) == "(x IN [1,3] OR y = 2)"


def test_not_goes_down_to_the_leaves() -> None:
    tree = Not(And((leaf("x", 1), Not(above("y", 2)), Not(Not(Leaf(("z",), IsNull()))))))
    assert str(normal_form(tree)) == "(NOT(x = 1) OR y >= 2 OR NOT(z IS NULL))"


def test_the_opposite_of_a_range_is_two() -> None:
    both = Leaf(("x",), Between(low=pa.scalar(1), high=pa.scalar(5)))
    assert str(normal_form(Not(both))) == "(x < 1 OR x > 5)"
    assert normal_form(Not(Leaf(("x",), Between()))) == Constant(False)


def test_the_opposite_of_true_is_false() -> None:
    flag = Leaf(("x",), IsIn(pa.array([True])))
    assert str(normal_form(Not(flag))) == "x = False"


def test_constants_vanish() -> None:
    assert str(normal_form(And((leaf("x", 1), Constant(True))))) == "x = 1"
    assert normal_form(And((leaf("x", 1), Constant(None)))) == Constant(False)
    assert normal_form(Or((leaf("x", 1), Constant(True)))) == Constant(True)
    assert str(normal_form(Not(Or((leaf("x", 1), Constant(None)))))) == "False"


def test_a_superset_has_no_opposite() -> None:
    assert normal_form(Not(Leaf(("x",), StartsWith("a"), exact=False))) == Unknown()


def test_leaves_and_texts() -> None:
    labels = pa.array(["a", "b"])
    tree = Or(
        (Leaf(("l",), HasAny(labels)), Not(Leaf(("l",), HasAll(labels))), Leaf(("a", "b"), Contains("c")), Unknown())
    )
    assert len(leaves_of(tree)) == 3
    assert str(tree) == "(array_has_any(l, ['a','b']) OR NOT(array_has_all(l, ['a','b'])) OR contains(a.b, 'c') OR ?)"
    assert str(leaf("x", *range(9))) == "x IN [0,1,2,3,… 9 in all]"
