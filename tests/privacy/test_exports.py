"""Data set cards and registry entries of statements: valid YAML with the fields of their formats."""

import json
import math

import pytest
import yaml

from dptext import ZCDP, ApproxDP, MetricDP, PureDP
from dptext.errors import ParameterError
from dptext.privacy.claims import read_claim
from dptext.privacy.guarantee import NoGuarantee, Unit
from statements import statement, statement_of_texts

GUARANTEES = [
    PureDP(1.5),
    PureDP(math.inf),
    ApproxDP(2.0, 1e-6),
    ApproxDP(1e-5, 1e-15),
    ZCDP(0.25),
    ZCDP(math.inf),
    MetricDP(2.0, "euclidean", 3.0),
    MetricDP(2.0, "euclidean"),
    NoGuarantee("no noise: none"),
]
AWKWARD = "a: \"b\" {c} [d] - # é\u2028 & *e | \x1b[1m\n> 100%: 'f' \\ \ud800"
VOTES = {"epsilon": 1.0, "delta": 1e-6, "num_iterations": 5, "vote_normalization_level": "client"}


def card_of(result):
    front, _, body = result.explain("dataset-card").removeprefix("---\n").partition("\n---\n")
    return yaml.safe_load(front), body


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda guarantee: guarantee.kind)
def test_a_card_has_the_numbers_of_the_statement(guarantee):
    result = statement(guarantee=guarantee, unit=Unit.USER, mechanism=AWKWARD, exposed=(AWKWARD,), seeded=True)
    data, body = card_of(result)
    assert (data["license"], data["tags"]) == ("unknown", ["differential-privacy", "dptext"])
    private = data["differential_privacy"]
    assert (private["unit"], private["relation"], private["seeded"]) == ("user", "substitution", True)
    assert private["guarantee"] == guarantee.kind
    assert private.get("epsilon") == (result.epsilon if math.isfinite(result.epsilon) else None)
    assert private.get("delta") == (result.delta or None)
    assert all(isinstance(private.get(name, 0), int | float) for name in ("epsilon", "delta", "rho", "mu"))
    assert "A seed was used" in body
    assert "\x1b" not in body
    assert "&amp;" not in body


def test_the_hub_reads_the_card():
    hub = pytest.importorskip("huggingface_hub")
    result = statement_of_texts(release_id="0" * 32, data_sha256="1" * 64)
    card = hub.DatasetCard(result.explain("dataset-card"))
    assert card.data.license == "unknown"
    assert card.data.to_dict()["differential_privacy"]["epsilon"] == 1.0
    known = set(vars(hub.DatasetCardData()))
    assert set(card.data.to_dict()) - known == {"differential_privacy", "tags"}  # tags are free
    assert "Release " + "0" * 32 + ", SHA-256 of the data " + "1" * 64 in card.content  # as `dptext explain` finds it


# The fields of schemas/deployments-schema.yaml in opendp/deployments-registry-data (July 2026) that an entry uses
FIELDS = {
    "basic": "name data_curators description intended_use data_product_type data_product_region publication_date",
    "dp_variant": "variant_name unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name release_type data_source_type access_type",
    "implementation": "mechanisms justification",
    "administrative": "notes registry_authors",
}
VARIANTS = {"pure": "Pure DP", "approximate": "Approximate DP", "zero-concentrated": "Zero-concentrated DP"}


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda guarantee: guarantee.kind)
def test_a_registry_entry_has_the_fields_of_the_schema(guarantee):
    result = statement(guarantee=guarantee, mechanism=AWKWARD, exposed=(AWKWARD, AWKWARD), assumptions=(AWKWARD,))
    entry = yaml.safe_load(result.explain("registry"))
    assert (set(entry), entry["status"], entry["tier"]) == ({"url_slug", "status", "tier", "deployment"}, "Draft", 3)
    assert {name: set(fields) for name, fields in entry["deployment"].items()} == {
        name: set(fields.split()) for name, fields in FIELDS.items()
    }
    deployment = entry["deployment"]
    assert deployment["dp_variant"]["variant_name"] == VARIANTS.get(guarantee.kind, "Custom")
    assert deployment["deployment_model"]["model_name"] == "Local"
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    finite = {"epsilon": result.epsilon, "delta": result.delta, "rho": getattr(guarantee, "rho", 0)}
    assert parameters == {name: value for name, value in finite.items() if 0 < value < math.inf}
    assert all(isinstance(value, float) for value in parameters.values())


def test_a_claim_and_its_flaw_are_in_every_form():
    result = read_claim("dpsda", VOTES | {"labels_per_client": 4})
    for form in ("text", "dataset-card", "registry"):
        text = " ".join(result.explain(form).split())
        assert "as claimed by DPSDA: dptext recomputed the guarantee" in text
    assert "Known flaw" in result.explain("dataset-card")
    entry = yaml.safe_load(result.explain("registry"))
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == result.epsilon
    assert "mu = 0.473" in entry["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert json.loads(result.to_json())["parameters"]["claimed_by"] == "DPSDA"


def test_an_unknown_form_is_refused():
    with pytest.raises(ParameterError, match="form must be one of 'text', 'dataset-card', 'registry'"):
        statement().explain("html")
