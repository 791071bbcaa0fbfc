"""Reliability of `hit.risk`: of the passages given a risk, how many break the constraint?"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from coder_ir.encoders import load_encoder
from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.encoders.registry import built_in_folder
from coder_ir.errors import InvalidValue
from coder_ir.experiments.figures import pyplot, style
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.training.calibrate import Curve, cross_fitted_risks
from coder_ir.verifier import OnnxVerifier
from coder_ir.verifier.registry import FOLDER

_SIDES = ((6, -10), (-14, 6))  # where a curve's counts stand, in points


def measure_risk(setup: Setup, report: Report) -> Table:
    """Risks of development passages, each from a fit on the other topics; table and picture."""
    encoder = load_encoder(setup.model)
    if not isinstance(encoder, OnnxEncoder):
        raise InvalidValue(f"risk needs a model folder, got {setup.model!r}")
    report("risk: scoring the development topics")
    verifier = OnnxVerifier(built_in_folder() / FOLDER)
    found, read = cross_fitted_risks(encoder, verifier, setup.written)
    curves = {"read by the verifier": read, "not read": found}
    draw(curves, setup.out / "risk.png")
    errors = "; ".join(f"{n} {c.error:.3f} and {c.area:.3f}" for n, c in curves.items())
    return Table(
        name="risk",
        title="Calibration of risk",
        columns=("", "mean risk", "share that violates", "passages"),
        rows=tuple(
            (name, f"{p.risk:.2f}", f"{p.share:.2f}", str(p.passages))
            for name, curve in curves.items()
            for p in curve.points
        ),
        notes=(
            f"{found.judgements} judgements of development queries that state a constraint, each "
            f"predicted by a fit on the other topics. Expected calibration error and "
            f"area under the ROC curve: {errors}. "
            "![Reliability](risk.png)",
        ),
        figures={
            "risk_error": read.error,
            "risk_area": read.area,
            "curves": {name: asdict(curve) for name, curve in curves.items()},
        },
    )


def draw(curves: Mapping[str, Curve], path: Path) -> None:
    """A reliability plot as PNG; each curve has a mark of its own, so that grey prints tell too."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(4.5, 4.5), dpi=150)
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="perfect")
    for number, ((name, curve), side) in enumerate(zip(curves.items(), _SIDES, strict=False)):
        risks, shares = [p.risk for p in curve.points], [p.share for p in curve.points]
        look = style(number)
        axes.plot(risks, shares, label=f"{name} (error {curve.error:.3f})", **look)
        for point in curve.points:
            axes.annotate(
                str(point.passages),
                (point.risk, point.share),
                textcoords="offset points",
                xytext=side,
                fontsize=7,
                color=look["color"],
            )
    axes.set(
        xlabel="predicted risk", ylabel="share that breaks the constraint", xlim=(0, 1), ylim=(0, 1)
    )
    axes.legend(frameon=False, loc="upper left")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
