"""Claims of other tools, recomputed by dptext, and the epsilons of the tools' own packages.

Command, in an environment with dptext, opacus, jax-privacy and opendp: python benchmarks/claims.py [--dpsda CLONE]
"""

from __future__ import annotations

import argparse
import subprocess
import types
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dptext.privacy.claims import read_claim

Row = tuple[str, dict[str, Any], float]


def opacus_rows() -> Iterator[Row]:
    from opacus.accountants import create_accountant

    for history in ([(1.1, 0.01, 10_000)], [(0.8, 0.004, 5_000)], [(1.0, 0.01, 1_000), (1.5, 0.02, 2_000)]):
        for mechanism in ("prv", "rdp", "gdp")[: 3 if len(history) == 1 else 2]:
            accountant: Any = create_accountant(mechanism=mechanism)
            accountant.history = history
            settings = {**accountant.state_dict(), "delta": 1e-5}
            yield f"opacus, {mechanism}", settings, accountant.get_epsilon(delta=1e-5)


def jax_privacy_rows() -> Iterator[Row]:
    from jax_privacy import accounting

    accountant = accounting.DpsgdTrainingAccountant(dp_accountant_config=accounting.PldAccountantConfig())
    known = {"noise_multipliers": 3.0, "num_samples": 1_000, "batch_size": 100, "delta": 1e-6}
    settings = {"noise_multiplier": 3.0, "sampling_prob": 0.1, "iterations": 512, "delta": 1e-6}
    yield "jax_privacy", settings, accountant.compute_epsilon(512, accounting.DpParams(**known))
    expected = accountant.compute_epsilon(512, accounting.DpParams(**known, truncated_batch_size=120))
    yield "jax_privacy, truncated batches", settings | {"num_examples": 1_000, "truncated_batch_size": 120}, expected


def opendp_rows() -> Iterator[Row]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain, scalar = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    for scale, moved in ((2.0, 1.0), (0.7, 3.0)):
        settings = {"scale": scale, "d_in": moved}
        laplace, gaussian = dp.m.make_laplace(domain, scalar, scale), dp.m.make_gaussian(domain, scalar, scale)
        yield "opendp, Laplace", settings | {"measurement": "laplace"}, laplace.map(moved)
        yield "opendp, Gaussian (rho)", settings | {"measurement": "gaussian"}, gaussian.map(moved)


def dpsda_rows(clone: Path) -> Iterator[Row]:
    """The functions of pe/dp/gaussian.py, without the package's models."""
    show = ["git", "-C", str(clone), "show", "HEAD:pe/dp/gaussian.py"]
    source = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    source = "\n".join(
        line for line in source.split("class Gaussian")[0].splitlines() if not line.startswith("from pe")
    )
    module: Any = types.ModuleType("dpsda")
    exec(source, vars(module))  # code that the user named
    settings = {"delta": 1e-6, "num_iterations": 5}
    noise = module.get_noise_multiplier(1.0, 5, 1e-6)
    yield "DPSDA, samples", settings | {"epsilon": 1.0}, module.compute_epsilon(noise, 5, 1e-6)
    client = {"vote_normalization_level": "client", "labels_per_client": 4, "noise_multiplier": noise}
    # four labels: the noise is half of what the sensitivity of 2 needs
    yield "DPSDA, 4 labels, noise / 2", settings | client, module.compute_epsilon(noise / 2, 5, 1e-6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dpsda", type=Path, help="a clone of microsoft/DPSDA")
    clone = parser.parse_args().dpsda
    names = ("opacus", "jax-privacy", "opendp", "dp-accounting")
    print(", ".join(f"{name} {version(name)}" for name in names))
    warnings.simplefilter("ignore")
    for row in (opacus_rows(), jax_privacy_rows(), opendp_rows(), dpsda_rows(clone) if clone else ()):
        for name, settings, expected in row:
            tool = {"DPSDA": "dpsda"}.get(name.split(",")[0], name.split(",")[0])
            guarantee: Any = read_claim(tool, settings).guarantee
            print(
                f"{name:32} tool {expected:9.5f}   dptext {getattr(guarantee, 'rho', None) or guarantee.epsilon:9.5f}"
            )


if __name__ == "__main__":
    main()
