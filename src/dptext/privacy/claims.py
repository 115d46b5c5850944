"""Claims of other tools, recomputed from the settings that they record (docs/howto/coming-from.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dptext.errors import ParameterError, extra
from dptext.privacy.gaussian import GaussianRelease, SampledGaussian, gaussian_sigma
from dptext.privacy.guarantee import ZCDP, ApproxDP, NoGuarantee, PureDP, Relation, Trust, Unit, product_upwards
from dptext.privacy.guarantee import substitution_from_add_remove as substituted
from dptext.privacy.neighbours import ANY_TWO
from dptext.privacy.statement import PrivacyStatement, new_release_id, software
from dptext.privacy.wording import sections
from dptext.validation import check_choice, check_float, check_int, format_names

_NAMES = {"opacus": "Opacus", "jax_privacy": "jax_privacy", "opendp": "OpenDP", "dpsda": "DPSDA"}
_LISTS = {
    "opacus": "noise_multiplier sample_rate steps history mechanism poisson_sampling max_grad_norm secure_mode unit",
    "jax_privacy": "noise_multiplier sampling_prob iterations num_examples truncated_batch_size batch_size train_size "
    "train_steps gradient_accumulation_steps poisson_sampling_in_fit clipping_norm rescale_to_unit_norm "
    "microbatch_size seed unit",
    "opendp": "measurement scale d_in input_metric unit",
    "dpsda": "noise_multiplier num_iterations vote_normalization_level labels_per_client fraction_per_label_id",
}
SETTINGS = {tool: ("epsilon", "delta", *names.split()) for tool, names in _LISTS.items()}
"""Settings of a claim by tool, as the tool names them (`unit` and `labels_per_client`: no tool records them)."""
_SUBSTITUTION: dict[str, Any] = {"relation": Relation.SUBSTITUTION}


def read_claim(tool: str, settings: Mapping[str, Any]) -> PrivacyStatement:
    """Return the statement of a run of another tool, recomputed from the settings that the tool records.

    Args:
        tool: ``"opacus"``, ``"jax_privacy"``, ``"opendp"`` or ``"dpsda"``.
        settings: settings by name: for example ``accountant.state_dict()`` of Opacus and a ``delta``; ``epsilon``, if
            the tool states one; ``unit="user"``, if one example holds all texts of a user (otherwise a document).

    **Guarantee** (unit and relation of the tool; trust: central): recomputed, not verified, as dptext did not see the
    run. Without a proof it is `NoGuarantee` with the reason. ``parameters["flaws"]`` names known flaws of the tool.

    Raises:
        ParameterError: an unknown tool or setting, a missing one, a value out of range.

    >>> votes = {"epsilon": 1.0, "delta": 1e-6, "num_iterations": 5, "vote_normalization_level": "client"}
    >>> print(read_claim("dpsda", votes | {"labels_per_client": 4}).guarantee)
    (2.123, 1e-06)-differential privacy
    """
    name = _NAMES[check_choice("tool", tool, _NAMES)]
    if unknown := sorted(map(str, settings.keys() - set(SETTINGS[tool]))):
        raise ParameterError(f"a claim of {name} has no {unknown[0]!r}, it takes {format_names(SETTINGS[tool])}")
    values = {key: value for key, value in settings.items() if value is not None}
    unit = Unit(check_choice("unit", values.get("unit", "document"), ("document", "user")))
    fields = {"unit": unit, "relation": Relation.ADD_REMOVE, **_READERS[tool](values)}
    facts = {"tool": name, "unit": fields["unit"], "settings": values, "passes": 0, "labels": 1}
    texts = dict(sections("privacy/templates/claim.txt", **(facts | fields.pop("facts", {}))))
    recorded = {key: value if isinstance(value, str | int | float) else str(value) for key, value in values.items()}
    noted: dict[str, Any] = {"claimed_by": name, **fields.pop("noise", {}), "flaws": "; ".join(texts["flaws"]) or None}
    return PrivacyStatement(
        **fields | {"mechanism": f"{fields['mechanism']} (as claimed by {name})"},
        condition=ANY_TWO,
        trust=Trust.CENTRAL,
        parameters=recorded | noted,
        claimed_epsilon=values.get("epsilon"),
        assumptions=tuple(texts["assumptions"]),
        exposed=tuple(texts["exposed"]),
        release_id=new_release_id(),
        software=software(),
    )


def _opacus(settings: Mapping[str, Any]) -> dict[str, Any]:
    run = [settings.get(name) for name in ("noise_multiplier", "sample_rate", "steps")]
    poisson = str(settings.get("poisson_sampling", True)).lower() == "true"
    return _trained(settings, settings.get("history", [run]), poisson=poisson)


def _jax_privacy(settings: Mapping[str, Any]) -> dict[str, Any]:
    noise = check_float("noise_multiplier", settings.get("noise_multiplier"), above=0)
    if "train_steps" not in settings:
        return _trained(settings, [[noise, settings.get("sampling_prob"), settings.get("iterations")]])
    values = {"gradient_accumulation_steps": 1, **settings}  # DPKerasConfig
    names = ("batch_size", "train_size", "train_steps", "gradient_accumulation_steps")
    batch, size, steps, micro = (check_int(name, values.get(name), minimum=1) for name in names)
    poisson = str(settings.get("poisson_sampling_in_fit", False)).lower() == "true"
    rate = min(1.0, batch / size if poisson else 1 / max(1, size // batch))
    # each micro-batch of an optimizer step is a sample of its own, with its own noise: it counts as a step
    return _trained(settings, [[noise / math.sqrt(micro), rate, steps * micro]], poisson=poisson)


def _trained(settings: Mapping[str, Any], runs: Any, *, poisson: bool = True) -> dict[str, Any]:
    """Return the fields of DP-SGD in several runs of (noise multiplier, sampling rate, steps)."""
    if not isinstance(runs, list) or {len(run) if isinstance(run, list | tuple) else 0 for run in runs} != {3}:
        raise ParameterError("history must be a list of (noise_multiplier, sample_rate, steps)")
    fields: dict[str, Any] = {"mechanism": "DP-SGD", "seeded": "seed" in settings}
    accounts = [SampledGaussian(noise_multiplier=z, sampling_rate=q, steps=t) for z, q, t in runs]
    delta, truncated = check_float("delta", settings.get("delta"), above=0, below=1), "truncated_batch_size" in settings
    if not poisson:  # a replaced example moves one batch per pass, by two clipping norms
        passes = [math.ceil(run.sampling_rate * run.steps - 1e-9) for run in accounts]
        mu = math.hypot(*(2 * math.sqrt(n) / run.noise_multiplier for n, run in zip(passes, accounts, strict=True)))
        noise = {"sigma": 1.0, "sensitivity": mu * (1 + 1e-15)}
        guarantee = GaussianRelease(**noise).guarantee(delta=delta)  # type: ignore[arg-type]
        return fields | _SUBSTITUTION | {"guarantee": guarantee, "noise": noise, "facts": {"passes": sum(passes)}}
    if len(accounts) == 1 and not truncated:
        return fields | {"guarantee": accounts[0].guarantee(delta=delta)}
    library = extra("dp_accounting", "accounting", "accounting of Poisson samples")
    relations = library.NeighboringRelation  # special: one example is zeroed out
    accountant = library.pld.PLDAccountant(relations.REPLACE_SPECIAL if truncated else relations.ADD_OR_REMOVE_ONE)
    for z, q, t in runs:
        event = library.PoissonSampledDpEvent(q, library.GaussianDpEvent(z))
        if truncated:
            size, limit = (check_int(n, settings.get(n), minimum=1) for n in ("num_examples", "truncated_batch_size"))
            event = library.TruncatedSubsampledGaussianDpEvent(size, q, limit, z)
        accountant.compose(event, t)
    left = check_float("delta", delta - 1e-15 * sum(run.steps for run in accounts), above=0)  # for rounding
    total = ApproxDP(float(accountant.get_epsilon(left)), delta)
    return fields | ({"guarantee": substituted(total), **_SUBSTITUTION} if truncated else {"guarantee": total})


def _opendp(settings: Mapping[str, Any]) -> dict[str, Any]:
    kind: str = check_choice("measurement", settings.get("measurement", ""), ("laplace", "geometric", "gaussian"))
    names = ("SymmetricDistance", "InsertDeleteDistance", "ChangeOneDistance", "HammingDistance")
    metric = check_choice("input_metric", settings.get("input_metric", names[0]), names)
    moved, scale = (check_float(name, {"d_in": 1, **settings}.get(name), above=0) for name in ("d_in", "scale"))
    ratio = product_upwards(Fraction(moved) / Fraction(scale))  # type: ignore[arg-type]
    guarantee = ZCDP(product_upwards(ratio, ratio, 0.5)) if kind == "gaussian" else PureDP(ratio)
    noise = f"{kind.title()} noise"
    return {"mechanism": noise, "guarantee": guarantee} | (_SUBSTITUTION if metric in names[2:] else {})


def _dpsda(settings: Mapping[str, Any]) -> dict[str, Any]:
    level = settings.get("vote_normalization_level", "sample")
    is_client = check_choice("vote_normalization_level", level, ("sample", "client")) == "client"
    fields: dict[str, Any] = {"mechanism": "Private Evolution", "unit": Unit.USER if is_client else Unit.DOCUMENT}
    if is_client and "labels_per_client" not in settings:
        reason = "the votes of a client are normalised label by label, and labels_per_client was not given"
        return fields | {"guarantee": NoGuarantee(reason), "facts": {"labels": "k"}}
    labels = check_int("labels_per_client", settings["labels_per_client"], minimum=1) if is_client else 1
    rounds = check_int("num_iterations", settings.get("num_iterations"), minimum=1)
    delta, sigma = check_float("delta", settings.get("delta"), above=0, below=1), settings.get("noise_multiplier")
    if sigma is None:  # DPSDA adds the noise at which votes of norm 1 have its epsilon; gaussian_sigma rounds up
        epsilon = check_float("epsilon", settings.get("epsilon"), above=0)
        sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=math.sqrt(rounds)) * (1 - 2e-5)
    noise = {"sigma": check_float("noise_multiplier", sigma, above=0), "sensitivity": math.sqrt(rounds * labels)}
    guarantee = GaussianRelease(**noise).guarantee(delta=delta)  # type: ignore[arg-type]
    return fields | {"guarantee": guarantee, "noise": noise, "facts": {"labels": labels}}


_READERS = {"opacus": _opacus, "jax_privacy": _jax_privacy, "opendp": _opendp, "dpsda": _dpsda}
