"""The model card: what an encoder was made from, written by the run itself."""

from pathlib import Path
from typing import Any


def write_model_card(folder: Path, record: dict[str, Any]) -> None:
    """README.md beside the weights, from a run's own record."""
    (folder / "README.md").write_text(model_card(record), encoding="utf-8")


def model_card(record: dict[str, Any]) -> str:
    """Markdown: recipe, data with hashes, development figures, limits."""
    config = record["config"]
    lines = [
        *_encoder(config),
        f"{config['max_length']} tokens in training, query prefix `{config['query_prefix']}`, "
        f"{config['frozen_layers']} lower layers frozen, seed {config['seed']}.",
        f"Trained with {record['software']}.",
        "",
        "| stage | epochs | batch | learning rate | further terms | triplet file | sha256 |",
        "|---|---|---|---|---|---|---|",
    ]
    for stage in config["stages"]:
        name = Path(stage["triplets"]).name
        digest = record["data"][f"{stage['name']} triplets"][:16]
        lines.append(
            f"| {stage['name']} | {stage['epochs']} | {stage['batch_size']} "
            f"| {stage['learning_rate']} | {_terms(stage)} | {name} | {digest} |"
        )
    lines += ["", "| source | licence | triplets |", "|---|---|---|"]
    lines += [f"| {s['source']} | {s['licence']} | {s['triplets']} |" for s in record["sources"]]
    lines += ["", "Held-out triplets (split by topic, never trained on):", ""]
    lines += [
        "| stage | triplets | satisfying first | whole group right | mean margin |",
        "|---|---|---|---|---|",
    ]
    for stage, scores in record["development"].items():
        if scores:
            lines.append(
                f"| {stage} | {scores['triplets']} | {100 * scores['accuracy']:.1f}% "
                f"| {100 * scores['paired']:.1f}% | {scores['margin']:.3f} |"
            )
    lines += [
        "",
        "English only; passages past the token limit are cut. The score orders passages on the "
        "query's topic; it is not a probability.",
    ]
    return "\n".join(lines) + "\n"


def _encoder(config: dict[str, Any]) -> list[str]:
    return [
        "# Compatibility encoder",
        "",
        f"Fine-tuned from `{Path(config['base']).name}` with coder-ir: a bi-encoder whose cosine "
        "says how well a passage keeps to the constraint a query states.",
        "",
        f"Mean pooling, multiple negatives ranking loss with scale {config['scale']},",
    ]


def _terms(stage: dict[str, Any]) -> str:
    names = ("symmetric", "pairwise", "anchor")
    terms = [f"{name} {stage[name]:g}" for name in names if stage.get(name)]
    return ", ".join([*terms, *(["rounded"] if stage.get("rounded") else [])]) or "none"
