"""The plan: arithmetic by hand, sizes against a real server, the page against the command."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.experiments.footprint import Footprint, measure_footprint
from coder_ir.experiments.plan import Speed, Wanted, as_markdown, plan
from tests.conftest import Command

ROOT = Path(__file__).parents[2]
SPEED = Speed(documents_per_second=100, cores=4)
SIZES = Footprint(1000, 10, 50, table_bytes=500, index_bytes=200)


def test_everything_follows_from_speed_and_sizes():
    wanted = Wanted(9_000_000, 2, 5, 10, memory=1, core_hour=0.5, memory_hour=0.01)
    found = plan(wanted, SPEED, SIZES)
    # 18 million passages, 180,000 s on 4 cores; 3.6 GB of indexes in shards of .8 GB.
    assert found.core_hours == pytest.approx(200)
    assert found.hours == pytest.approx(4)
    assert (found.index_gb, found.table_gb, found.shards) == pytest.approx((3.6, 9, 5))
    assert found.encoding_price == pytest.approx(100)
    assert found.serving_price == pytest.approx(5 * 730 * 0.01)


def test_prices_are_told_only_where_they_were_given():
    wanted = Wanted(1_000_000, core_hour=0.5)
    assert "price of encoding, once | 6 at 0.5 a core-hour" in as_markdown(wanted, SPEED, SIZES)
    assert "price" not in as_markdown(replace(wanted, core_hour=0.0), SPEED, SIZES)


@pytest.mark.parametrize("name", ["documents", "passages", "machines", "cores", "memory"])
def test_nothing_is_planned_for_nothing(name):
    with pytest.raises(InvalidValue, match=f"{name} must be positive, got 0"):
        replace(Wanted(1), **{name: 0})
    with pytest.raises(InvalidValue, match="core_hour must not be negative"):
        replace(Wanted(1), core_hour=-1)


def test_the_speed_is_the_median_of_both_vectors(tmp_path):
    path = tmp_path / "encoding.json"
    rates = {"coder-ir, both vectors": [30, 10, 20], "other": [99]}
    path.write_text(json.dumps({"threads": 3, "documents_per_second": rates}), encoding="utf-8")
    assert Speed.load(path) == Speed(20, 3)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidFile, match="holds no speed of 'coder-ir, both vectors'"):
        Speed.load(path)
    with pytest.raises(NotFound, match="coder-ir bench encoding"):
        Speed.load(tmp_path / "nowhere")


def test_a_footprint_is_what_postgresql_says_and_leaves_no_table(postgres, tmp_path):
    count = "SELECT count(*) FROM pg_class WHERE relname LIKE 'footprint%'"
    found = measure_footprint(postgres.address("unused"), passages=1000, dimensions=100)
    # An index entry holds the vector, 400 bytes, and its neighbours: m = 16, 2m at the bottom.
    assert 2 * (400 + 32 * 6) < found.index_bytes < 2 * (400 + 32 * 6) * 2
    assert 2 * 400 + found.characters < found.table_bytes < 2 * (2 * 400 + found.characters)
    assert postgres.execute(count) == [(0,)]
    found.save(tmp_path / "f.json")
    assert Footprint.load(tmp_path / "f.json") == found
    (tmp_path / "f.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidFile, match="holds no footprint"):
        Footprint.load(tmp_path / "f.json")


def test_half_vectors_take_half_the_index(postgres):
    whole = measure_footprint(postgres.address("t"), passages=1000, dimensions=300)
    half = measure_footprint(postgres.address("t", halfvec="true"), passages=1000, dimensions=300)
    assert half.index_bytes < 0.7 * whole.index_bytes


def test_the_page_holds_what_the_command_prints(cli: Command, monkeypatch):
    monkeypatch.chdir(ROOT)
    done = cli("plan", 1_000_000_000)
    assert done.code == 0
    page = (ROOT / "docs" / "scale-out.md").read_text(encoding="utf-8")
    assert done.out in page, "put this into docs/scale-out.md:\n" + done.out


def test_the_command_tells_what_is_missing(cli: Command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli("plan", 1000)
    assert (done.code, done.out) == (1, "")
    assert "there is no docs/results/encoding.json" in done.err
    done = cli("plan", 1000, "--encoding", ROOT / "docs/results/encoding.json")
    assert "there is no docs/results/footprint.json; make it with --measure ADDRESS" in done.err
    assert cli("plan", 0).code == 2
