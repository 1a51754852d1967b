"""What a comparison found: tidy frames, a summary with certificates, files that are never half."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite, isinf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandit.arrays import Floats, Ints
from dpbandit.inputs import BadInput, one_of
from dpbandit.privacy.certificate import Certificate
from dpbandit.protocols import AgentConfig

if TYPE_CHECKING:
    import pandas as pd

_FORMATS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class AgentRun:
    """One agent's rows of a comparison."""

    name: str
    config: AgentConfig
    certificate: Certificate
    regret: Floats
    """cumulative, (marks, replicas)"""
    reward: Floats
    """cumulative, (marks, replicas)"""
    seconds: float
    """wall-clock time of all replicas"""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The outcome of `compare`."""

    environment: str
    env_kwargs: Mapping[str, Any]
    seed: int
    reward_unit: str
    marks: Ints
    runs: tuple[AgentRun, ...]

    def frame(self) -> "pd.DataFrame":
        """One row for each agent, replica and mark: cumulative `regret` and `reward` by `round`."""
        import pandas as pd

        parts = []
        for run in self.runs:
            marks, R = run.regret.shape
            columns = {
                "agent": np.full(marks * R, run.name, dtype=object),
                "replica": np.tile(np.arange(R), marks),
                "round": np.repeat(self.marks, R),
                "regret": run.regret.ravel(),
                "reward": run.reward.ravel(),
            }
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def summary(self) -> "pd.DataFrame":
        """One row for each agent: final regret, seconds, notion of privacy, claimed and certified.

        `mean`, `se` (standard error of the mean), `q05`, `q50`, `q95` are over replicas.
        """
        import pandas as pd

        return pd.DataFrame([_summary(run) for run in self.runs])

    def records(self) -> list[dict[str, Any]]:
        """The summary as plain objects, each with its agent's `config`; infinity is "inf"."""
        return [plain({**_summary(run), "config": describe(run.config)}) for run in self.runs]

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Regret curves with 95 % confidence bands, as PNG, SVG or PDF by the path's ending."""
        one_of("suffix of the plot", Path(path).suffix, _FORMATS)
        from dpbandit.plots import Curve, regret_curves

        curves = [Curve(_label(run), run.regret) for run in self.runs]
        replicas = self.runs[0].regret.shape[1]
        title = f"{self.environment}: mean of {replicas} replicas, 95 % bands"
        return write_atomically(
            Path(path),
            lambda p: regret_curves(p, self.marks, curves, title=title, unit=self.reward_unit),
        )

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write frame.parquet, summary.csv, results.json and regret.png into `folder`."""
        folder = Path(folder)
        document = {
            "environment": self.environment,
            "env_kwargs": dict(self.env_kwargs),
            "seed": self.seed,
            "agents": self.records(),
            "certificates": {run.name: run.certificate.as_dict() for run in self.runs},
        }
        frame, summary = self.frame(), self.summary()
        write_atomically(folder / "frame.parquet", lambda p: frame.to_parquet(p, index=False))
        write_atomically(folder / "summary.csv", lambda p: summary.to_csv(p, index=False))
        write_json(folder / "results.json", document)
        self.plot(folder / "regret.png")
        return folder


def _summary(run: AgentRun) -> dict[str, Any]:
    final, proof = run.regret[-1], run.certificate
    q05, q50, q95 = np.quantile(final, [0.05, 0.5, 0.95])
    return {
        "agent": run.name,
        "mean": float(final.mean()),
        "se": standard_error(final),
        "q05": float(q05),
        "q50": float(q50),
        "q95": float(q95),
        "seconds": run.seconds,
        "notion": proof.notion,
        "claimed_epsilon": proof.claimed_epsilon,
        "claimed_delta": proof.claimed_delta,
        "certified_epsilon": proof.epsilon,
        "certified_delta": proof.delta,
    }


def plot_certificate(proof: Certificate, path: Path, *, title: str) -> Path:
    """The certified curve delta(epsilon) beside the claim, as PNG, SVG or PDF."""
    one_of("suffix of the plot", path.suffix, _FORMATS)
    if proof.claimed_delta == 0 or isinf(proof.claimed_epsilon):
        raise BadInput("Expected an agent with a claim (epsilon, delta > 0) to plot a curve of.")
    from dpbandit.plots import delta_curve

    brief = proof.ledger.brief
    draw = partial(
        delta_curve,
        delta_at=proof.ledger.delta,
        title=title,
        claim=(proof.claimed_epsilon, proof.claimed_delta),
        certified=proof.epsilon,
        curve=f"certified curve ({brief})" if brief else "certified curve",
    )
    return write_atomically(path, draw)


def _label(run: AgentRun) -> str:
    proof = run.certificate
    if isinf(proof.epsilon):
        return f"{run.name} (not private)"
    if proof.epsilon == 0:
        return f"{run.name} (no data used)"
    delta = f"{proof.claimed_delta:g}".replace("e-0", "e-")
    brief = f"{proof.ledger.brief}: " if proof.ledger.brief else ""
    return rf"{run.name} ({brief}$\epsilon$ = {proof.epsilon:.3g}, $\delta$ = {delta})"


def standard_error(values: Floats) -> float:
    """The standard error of the mean; NaN for a single value."""
    return float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else float("nan")


def describe(config: AgentConfig) -> dict[str, Any]:
    """A config as plain values, its class under "agent"."""
    return {"agent": type(config).__name__, **asdict(config)}


def plain(value: Any) -> Any:
    """`value` with everything JSON cannot say said otherwise: infinities as "inf", NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return None if value != value else str(value)
    return value


def write_json(path: Path, document: Any) -> Path:
    """Plain JSON, written atomically."""
    text = json.dumps(plain(document), indent=2, allow_nan=False) + "\n"
    return write_atomically(path, lambda partial: partial.write_text(text))


def check_writable(path: Path) -> None:
    """Raise `BadInput` unless a file can be written at `path`: better asked before the work."""
    if path.is_dir():
        raise BadInput(f"Cannot write {path}: it is a folder.")
    probe = path.parent / f".{path.name}.{os.getpid()}.probe"
    try:
        write_atomically(probe, lambda partial: partial.touch())
        probe.unlink()
    except BadInput as mistake:
        raise BadInput(str(mistake).replace(str(probe), str(path))) from None


def write_atomically(path: Path, write: Any) -> Path:
    """Let `write` fill a temporary file beside `path`, then rename it: never half a file."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        partial.replace(path)
    except OSError as error:
        raise BadInput(f"Cannot write {path}: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return path
