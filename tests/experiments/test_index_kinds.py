"""`bench kinds`: every kind of index, tried until it finds enough."""

import numpy as np
import pytest

from coder_ir.experiments import index_kinds
from coder_ir.experiments.index_kinds import Vectors, measure_index_kinds
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.tables import Table
from coder_ir.vectors import unit_rows


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Table:
    out = tmp_path_factory.mktemp("out")
    draw = np.random.default_rng(0)
    rows, queries = (unit_rows(draw.normal(size=(count, 32))) for count in (3000, 5))
    vectors = Vectors("drawn", rows, queries)
    return measure_index_kinds(Setup(out, out, "", "built-in"), lambda _: None, [vectors])


def test_every_kind_is_measured_at_the_recall_asked_for(table):
    kinds = table.figures["kinds"]
    assert [each["kind"] for each in kinds] == [kind.name for kind in index_kinds._KINDS]
    assert all(each["recall"] >= 0.99 for each in kinds)
    assert all(each["milliseconds"] > 0 < each["build seconds"] for each in kinds)


def test_codes_of_two_bits_take_less_room_than_eight_bits(table):
    codes, lists, graph = (each["bytes a vector"] for each in table.figures["kinds"])
    assert codes < lists < graph
    assert graph > 32 + 4 * 32  # a byte a number, and the links


def test_an_index_tries_no_harder_than_it_has_to(table):
    lists = table.figures["kinds"][1]
    assert lists["step"] != "1 of 110 lists"
    assert lists["step"].endswith(" of 110 lists")


def test_recall_falls_short_where_nothing_is_enough(monkeypatch):
    draw = np.random.default_rng(0)
    vectors = Vectors("drawn", *(unit_rows(draw.normal(size=(n, 32))) for n in (3000, 5)))
    monkeypatch.setattr(index_kinds, "_AIM", 2.0)
    _, true = index_kinds._exact(vectors)
    [*_, last] = index_kinds._KINDS[0].steps(None)
    assert index_kinds._measured(index_kinds._KINDS[0], vectors, true)["step"] == last.label
