"""Signatures of cosign v3.1.3, in a registry with the referrers API and in one without.

The documents were created by `cosign sign --key` (bundle, and `--new-bundle-format=false`) and `cosign attest --key`,
and are stored here as the reader found them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from config.image_references import ImageReference
from webhook.engine.image_look_ups import Attached, SignatureDocument
from webhook.policies._signatures import SIGN_PREDICATE, statements, verifying_key

WRITTEN: dict[str, Any] = json.loads(Path(__file__).with_name("cosign.json").read_text())
PROVENANCE = "https://slsa.dev/provenance/v1"


def predicates(name: str, digest: str = "") -> set[str]:
    """Return the predicate types that cosign's key signed for the image."""
    documents = tuple(
        SignatureDocument(document[0].encode(), document[1])
        if isinstance(document, list)
        else SignatureDocument(document.encode())
        for document in WRITTEN[name]["documents"]
    )
    host, repository = WRITTEN[name].get("address", "r.example.com"), "team/old"
    image = ImageReference(host, repository, None, digest or WRITTEN[name]["digest"])
    found, _ = statements(Attached(documents), image, (verifying_key(WRITTEN["pub"]),))
    return {each.predicate_type for each in found}


@pytest.mark.parametrize("registry", ["referrers", "tags"])
def test_signatures_of_cosign_are_verified(registry):
    """Bundles, legacy signatures and attestations are verified; those of another digest do not count."""
    assert predicates(registry) == {SIGN_PREDICATE}
    assert predicates(f"{registry}-legacy") == {SIGN_PREDICATE}
    assert predicates(f"{registry}-attest") == {SIGN_PREDICATE, PROVENANCE}
    assert predicates(registry, f"sha256:{'0' * 64}") == set()
