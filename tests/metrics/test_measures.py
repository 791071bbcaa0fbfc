import pytest

from coder_ir.errors import InvalidValue
from coder_ir.metrics import DEFAULT, measure_named

GRADES = {"good": 2, "fine": 1, "bad": -1}
RANKED = ["other", "bad", "good"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("V@1", 0),
        ("V@2", 1),
        ("FVR@10", 2),
        ("FVR@1", 2),
        ("Survival@1", 1),
        ("Survival@2", 0),
        ("R@2", 0),
        ("R@3", 1 / 2),
        ("RR@3", 1 / 3),
        ("AP@3", 1 / 6),
        # 2 / log2(4) over 2 / log2(2) + 1 / log2(3)
        ("nDCG@3", 1 / 2.6309297535714573),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_name_is_a_kind_and_a_cut_off(name: str, value: float):
    measure = measure_named(name)
    assert (measure.name, measure.k) == (name, int(name.split("@")[1]))
    assert measure.function(RANKED, GRADES) == pytest.approx(value)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("MAP@10", "AP@10"), ("Recall@5", "R@5"), ("MRR@10", "RR@10"), ("NDCG@3", "nDCG@3")],
)
def test_other_words_of_the_field_mean_the_same(alias: str, name: str):
    assert measure_named(alias).name == name
    assert measure_named(alias).function(RANKED, GRADES) == measure_named(name).function(
        RANKED, GRADES
    )


def test_space_around_a_name_does_not_matter():
    assert measure_named(" V@2 ").name == "V@2"


@pytest.mark.parametrize("name", ["P@5", "V", "V@", "V@0", "V@-1", "V@1.5", "@5", "", "v@1"])
def test_an_unknown_name_is_told_the_known_ones(name: str):
    kinds = "V@k, FVR@k, Survival@k, nDCG@k, AP@k, R@k, RR@k"
    with pytest.raises(InvalidValue, match=f"no measure {name!r}; there are {kinds}"):
        measure_named(name)


@pytest.mark.parametrize("kind", ["V", "FVR", "Survival", "nDCG", "AP", "R", "RR"])
def test_the_direction_is_that_of_a_better_ranking(kind: str):
    measure = measure_named(f"{kind}@2")
    better, worse = (measure.function(r, GRADES) for r in (["good", "fine"], ["bad", "other"]))
    assert (better > worse) == measure.higher_is_better
    assert better != worse


def test_all_but_the_rank_of_the_first_violation_are_rates():
    assert [name for name in DEFAULT if not measure_named(name).rate] == ["FVR@10"]


def test_the_measures_the_specification_promises_are_the_default():
    assert {"V@1", "FVR@10", "nDCG@10", "R@5", "AP@10"} <= set(DEFAULT)
