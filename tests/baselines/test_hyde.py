import numpy as np
import pytest

from coder_ir.baselines import HyDE
from coder_ir.baselines.by_vector import Indexed
from coder_ir.errors import InvalidValue
from coder_ir.types import Document
from tests.baselines.test_deo import Says


def test_hits_are_nearest_to_the_mean_of_query_and_passages(retriever):
    retriever.add([Document("club", "club noisy"), Document("garden", "garden sea quiet")])
    base = Indexed(retriever.encoder, retriever.store)
    found = HyDE(base, Says(("garden sea", "garden quiet"), ())).search("club", 2)
    texts = retriever.encoder.encode(["garden sea", "garden quiet"], kind="document").topical
    own = retriever.encoder.encode(["club"], kind="query").topical
    mean = np.concatenate([own, texts]).mean(axis=0)
    mean /= np.linalg.norm(mean)
    held = retriever.encoder.encode(["garden sea quiet"], kind="document").topical[0]
    assert [hit.doc_id for hit in found] == ["garden", "club"]
    assert found[0].score == pytest.approx(float(held @ mean), abs=1e-5)
    assert found.policy == "hyde"


def test_no_passage_at_all_is_refused(retriever):
    with pytest.raises(InvalidValue, match="at least 1 passage, got 0"):
        HyDE(Indexed(retriever.encoder, retriever.store), Says((), ()), n=0)
