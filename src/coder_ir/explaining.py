"""Which sentence of a hit decided how compatible it is."""

from dataclasses import replace

import numpy as np

from coder_ir.text import split_sentences
from coder_ir.types import Encoder, Floats, Ranking
from coder_ir.vectors import cosine


def explained(ranking: Ranking, query: Floats, encoder: Encoder) -> Ranking:
    """Each hit with the sentence that decided it.

    Where no verifier has named one, it is that without which the compatibility would differ most;
    `query` is the query's compatibility vector.
    """
    hits = []
    for hit in ranking:
        if hit.decisive:
            hits.append(hit)
            continue
        sentences = split_sentences(hit.passage_text)
        rest = [" ".join(sentences[:i] + sentences[i + 1 :]) for i in range(len(sentences))]
        if len(sentences) > 1:
            vectors = encoder.encode([hit.passage_text, *rest], kind="document")
            whole, *without = cosine(vectors.compatibility, query)
            decisive = int(np.argmax(np.abs(np.array(without) - whole)))
        else:
            decisive = 0
        hits.append(replace(hit, decisive=sentences[decisive] if sentences else ""))
    return replace(ranking, hits=tuple(hits))
