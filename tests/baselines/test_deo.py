from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from coder_ir.baselines import DEO
from coder_ir.baselines.by_vector import Indexed
from coder_ir.baselines.decompose import Intents
from coder_ir.baselines.deo import Descent, descend, gradient
from coder_ir.errors import InvalidValue
from coder_ir.retriever import Retriever
from coder_ir.types import Document, Floats
from coder_ir.vectors import unit_rows


def rows(n: int, seed: int) -> Floats:
    return unit_rows(np.random.default_rng(seed).normal(size=(n, 24)))


def objective(u: np.ndarray, query: Floats, wanted: Floats, unwanted: Floats, how: Descent):
    def away(group: Floats) -> float:
        return float(np.linalg.norm(u - group, axis=1).mean()) if len(group) else 0.0

    return (
        how.positive * away(wanted)
        + how.stay * float(np.linalg.norm(u - query))
        - how.negative * away(unwanted)
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", [(1, 1), (3, 2), (2, 0)], ids=str)
def test_the_gradient_is_the_slope_of_the_objective(seed, sizes):
    query, u = rows(2, seed).astype(np.float64)
    wanted, unwanted = rows(sizes[0], seed + 50), rows(sizes[1], seed + 90)
    how = Descent(positive=0.7, stay=0.3, negative=1.2)
    found = gradient(u, query, wanted, unwanted, how)
    for axis in range(0, 24, 5):
        step = np.zeros(24)
        step[axis] = 1e-6
        up, down = (objective(u + s, query, wanted, unwanted, how) for s in (step, -step))
        assert found[axis] == pytest.approx((up - down) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 2), (2, 0)], ids=str)
def test_the_descent_equals_autograd_with_adam(sizes):
    torch = pytest.importorskip("torch", reason="needs the extra train")
    query, wanted, unwanted = rows(1, 1)[0], rows(sizes[0], 2), rows(sizes[1], 3)
    u = torch.tensor(query, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([u], lr=0.001)
    p, n, q = (torch.tensor(np.asarray(g, dtype=np.float64)) for g in (wanted, unwanted, query))
    for _ in range(20):
        adam.zero_grad()
        loss = torch.linalg.vector_norm(u - p, dim=1).mean()
        loss = loss + 0.2 * torch.linalg.vector_norm(u - q)
        if len(n):
            loss = loss - torch.linalg.vector_norm(u - n, dim=1).mean()
        loss.backward()
        adam.step()
        with torch.no_grad():
            u /= u.norm()
    assert descend(query, wanted, unwanted, Descent()) == pytest.approx(
        u.detach().numpy(), abs=1e-6
    )


def test_the_vector_ends_nearer_to_what_is_wanted_and_further_from_what_is_not():
    query, wanted, unwanted = rows(1, 4)[0], rows(1, 5), rows(1, 6)
    moved = descend(query, wanted, unwanted, Descent())
    assert moved @ wanted[0] > query @ wanted[0]
    assert moved @ unwanted[0] < query @ unwanted[0]
    assert np.linalg.norm(moved) == pytest.approx(1, abs=1e-6)


def test_without_intents_the_vector_stays():
    query, none = rows(1, 7)[0], rows(0, 8)
    assert descend(query, none, none, Descent()) == pytest.approx(query, abs=1e-6)


class Says:
    """A decomposer that always gives the same intents."""

    name = "says"

    def __init__(self, positive: tuple[str, ...], negative: tuple[str, ...]) -> None:
        self.found = Intents(positive, negative)

    def intents(self, query: str) -> Intents:
        return self.found

    def passages(self, query: str, n: int) -> list[str]:
        return list(self.found.positive)

    def formula(self, query: str) -> str:
        return query

    def formulas(self, documents: Sequence[str]) -> list[str]:
        return list(documents)


def test_what_is_ruled_out_falls_behind(retriever: Retriever, tmp_path: Path):
    retriever.add([Document("noisy", "hotel noisy club"), Document("quiet", "hotel quiet sea")])
    base = Indexed(retriever.encoder, retriever.store)
    plain = DEO(base, Says(("hotel noisy",), ()))
    assert plain.search("hotel noisy", 2)[0].doc_id == "noisy"
    moved = DEO(base, Says(("hotel",), ("noisy", "club")), descent=Descent(rate=0.05))
    assert moved.search("hotel noisy", 2)[0].doc_id == "quiet"


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"steps": 0}, {"negative": -1}], ids=str)
def test_a_descent_that_cannot_run_is_refused(wrong):
    with pytest.raises(InvalidValue, match="must be positive"):
        Descent(**wrong)
