"""Reliability of `hit.risk`: of the passages given a risk, how many break the constraint?"""

from dataclasses import asdict
from pathlib import Path

from coder_ir.encoders import load_encoder
from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.encoders.registry import load_calibration
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from coder_ir.training.calibrate import Curve, cross_fitted_risks


def measure_risk(setup: Setup, report: Report) -> Table:
    """Risks of development passages, each from a fit on the other topics; table and picture."""
    encoder, calibration = load_encoder(setup.model), load_calibration(setup.model)
    if not isinstance(encoder, OnnxEncoder) or calibration is None:
        raise InvalidValue(f"risk needs a calibrated model folder, got {setup.model!r}")
    report("risk: scoring the development topics")
    found = cross_fitted_risks(encoder, setup.written, calibration.detector)
    draw(found, setup.out / "risk.png")
    return Table(
        name="risk",
        title="Calibration of risk",
        columns=("mean risk", "share that violates", "passages"),
        rows=tuple((f"{p.risk:.2f}", f"{p.share:.2f}", str(p.passages)) for p in found.points),
        notes=(
            f"{found.judgements} judgements of development queries that state a constraint, each "
            f"predicted by a fit on the other topics; expected calibration error "
            f"{found.error:.3f}. ![Reliability](risk.png)",
        ),
        figures={"risk_error": found.error, **asdict(found)},
    )


def draw(curve: Curve, path: Path) -> None:
    """A reliability plot as PNG."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingExtra("The reliability plot", extra="bench") from error
    figure, axes = plt.subplots(figsize=(4.5, 4.5), dpi=150)
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="perfect")
    risks, shares = [p.risk for p in curve.points], [p.share for p in curve.points]
    axes.plot(risks, shares, marker="o", color="#b5402a", label=f"risk (error {curve.error:.3f})")
    for point in curve.points:
        axes.annotate(
            str(point.passages),
            (point.risk, point.share),
            textcoords="offset points",
            xytext=(6, -10),
            fontsize=7,
            color="0.4",
        )
    axes.set(
        xlabel="predicted risk", ylabel="share that breaks the constraint", xlim=(0, 1), ylim=(0, 1)
    )
    axes.legend(frameon=False, loc="upper left")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
