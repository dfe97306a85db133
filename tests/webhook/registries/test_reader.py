"""Signatures and attestations of an image, in registries with and without the referrers API, valid and hostile."""

import base64
import json

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec

from config.image_references import parse_image
from tests.webhook.registries.conftest import (
    INDEX,
    MANIFEST,
    digest_of,
    endless,
    never_ending_redirect,
    rate_limited,
)
from tests.webhook.registries.signing import BUNDLE, bundle, legacy
from webhook.engine.image_look_ups import SignatureDocument
from webhook.registries.client import NotInRegistryError, RegistryError
from webhook.registries.credentials import RegistryConfigError, read_logins

KEY = ec.generate_private_key(ec.SECP256R1())
DIGEST = f"sha256:{'a' * 64}"
LOGIN = f"Basic {base64.b64encode(b'ann:secret').decode()}"
MANIFESTS = "/v2/team/shop/manifests"


@pytest.mark.parametrize("has_referrers", [True, False])
async def test_bundles_are_found_by_their_own_manifest(registry, reader, has_referrers):
    """They are found by the referrers API or the tag; the type in the descriptor, which is wrong here, is ignored."""
    registry.has_referrers = has_referrers
    signed = bundle(KEY, DIGEST)
    registry.attach(DIGEST, signed)
    attached = await reader.read_signatures(registry.image(DIGEST))
    assert attached.documents == (SignatureDocument(json.dumps(signed).encode()),)


@pytest.mark.parametrize("status", [400, 404, 406, 200])
async def test_a_registry_without_the_referrers_api_has_bundles_by_tag(registry, reader, status):
    """It answers with one of these, or with a page, and cosign falls back to the tag."""

    async def without(request: web.Request) -> web.Response:
        return web.Response(status=status, text="<html>")

    registry.has_referrers = False
    registry.handlers[f"/v2/team/shop/referrers/{DIGEST}"] = without
    registry.attach(DIGEST, bundle(KEY, DIGEST))
    assert len((await reader.read_signatures(registry.image(DIGEST))).documents) == 1


@pytest.mark.parametrize("status", [400, 403, 406, 500])
async def test_a_registry_that_fails_is_an_error(registry, reader, status):
    """An image is not unsigned because its manifest cannot be read."""

    async def failing(request: web.Request) -> web.Response:
        return web.Response(status=status)

    registry.handlers[f"{MANIFESTS}/sha256-{'a' * 64}"] = failing
    with pytest.raises(RegistryError, match=f"answers with {status}$"):
        await reader.read_signatures(registry.image(DIGEST))


async def test_documents_other_than_bundles_of_the_image_are_skipped(registry, reader):
    """These are an SBOM, a manifest with another subject, and a deleted one."""
    registry.attach(DIGEST, {}, artifact_type="application/spdx+json")
    other = {"artifactType": "x", "layers": [{"digest": DIGEST}], "subject": {"digest": DIGEST}}
    wrong = {
        "layers": [
            {"digest": DIGEST, "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}
        ],
        "subject": {"digest": f"sha256:{'b' * 64}"},
    }
    digests = [registry.put(MANIFEST, other), registry.put(MANIFEST, wrong), DIGEST]
    index = {"manifests": [{"digest": each} for each in digests]}
    registry.bodies[f"/v2/team/shop/referrers/{DIGEST}"] = json.dumps(index).encode()
    assert (await reader.read_signatures(registry.image(DIGEST))).documents == ()


async def test_legacy_signatures_are_found(registry, reader):
    """They are in the manifest of the tag sha256-….sig."""
    payload, signature = legacy(KEY, DIGEST)
    registry.attach_legacy(DIGEST, payload, signature)
    attached = await reader.read_signatures(registry.image(DIGEST))
    assert attached.documents == (SignatureDocument(payload.encode(), signature),)


async def test_an_image_without_signatures_has_none(registry, reader):
    """Three requests tell."""
    assert (await reader.read_signatures(registry.image(DIGEST))).documents == ()
    tag = DIGEST.replace(":", "-")
    assert registry.asked == [
        f"GET /v2/team/shop/referrers/{DIGEST}",
        f"GET {MANIFESTS}/{tag}",
        f"GET {MANIFESTS}/{tag}.sig",
    ]


async def test_a_tag_has_the_digest_of_its_manifest(registry, reader):
    """The digest is computed, not taken from the registry."""
    digest = registry.put(INDEX, {"manifests": []}, "1.4")
    assert await reader.digest(registry.image("", "1.4")) == digest


async def test_a_tag_that_does_not_exist_is_an_error(registry, reader):
    """The text names the registry."""
    with pytest.raises(NotInRegistryError, match=r"^registry 127\.0\.0\.1:\d+ has no such image$"):
        await reader.digest(registry.image("", "1.4"))


async def to_plain_http(request: web.Request) -> web.Response:
    """Redirect to a host that is not named insecure."""
    return web.Response(status=307, headers={"Location": "http://metadata.internal/token"})


async def unauthorized(request: web.Request) -> web.Response:
    """Ask for a login, always."""
    return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})


async def token_elsewhere(request: web.Request) -> web.Response:
    """Name a token server over plain HTTP."""
    challenge = 'Bearer realm="http://evil.example.com/token",service="x"'
    return web.Response(status=401, headers={"WWW-Authenticate": challenge})


async def compressed(request: web.Request) -> web.Response:
    """Compress a response that was requested without compression."""
    return web.Response(body=b"", headers={"Content-Encoding": "gzip"})


async def garbage(request: web.Request) -> web.Response:
    """Answer with something else."""
    return web.Response(body=b"<html>")


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (endless, "answers with more than 4194304 bytes"),
        (never_ending_redirect, "redirects more than 3 times"),
        (to_plain_http, "redirects to http, not to https"),
        (rate_limited, "limits the rate of requests (429)"),
        (unauthorized, "requires a login; add it to the file of --registry-config"),
        (token_elsewhere, "requires a login; add it to the file of --registry-config"),
        (compressed, "sends a Content-Encoding, which is not supported"),
        (garbage, "answers with something that is no manifest"),
    ],
)
async def test_a_hostile_registry_is_an_error_with_its_reason(registry, reader, handler, reason):
    """Reads are limited in size, stay on the registry's host, and never send credentials of other hosts."""
    registry.handlers["*"] = handler
    with pytest.raises(RegistryError) as raised:
        await reader.read_signatures(registry.image(DIGEST))
    assert str(raised.value).endswith(reason)


@pytest.mark.parametrize("host", ["[bad", "a..b", "a" * 64])
async def test_a_redirect_to_an_invalid_host_is_an_error(registry, reader, host):
    """Python raises different errors for each."""

    async def redirecting(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": f"https://{host}/"})

    registry.handlers["*"] = redirecting
    with pytest.raises(RegistryError, match=r"has an invalid name, redirect or login$"):
        await reader.digest(registry.image("", "1.4"))


async def test_an_image_of_an_impossible_host_is_an_error(reader):
    """Users name the host, where a policy has a wildcard."""
    image = parse_image(f"{'a' * 64}.example.com/shop:1.4")
    with pytest.raises(RegistryError, match=r"has an invalid name, redirect or login$"):
        await reader.digest(image)


@pytest.mark.parametrize(
    ("realm", "token", "reason"),
    [
        ("", "[" * 60_000, "issued no token"),
        ("", '{"token": "a\\r\\nX: y"}', "has an invalid name, redirect or login"),
        ("https://[bad", "", "has an invalid name, redirect or login"),
    ],
    ids=["deep", "control characters", "realm"],
)
async def test_a_hostile_login_is_an_error(registry, reader, realm, token, reason):
    """No response of a registry raises anything other than RegistryError."""

    async def with_login(request: web.Request) -> web.Response:
        if request.path == "/token":
            return web.Response(text=token)
        challenge = f'Bearer realm="{realm or f"http://{request.host}/token"}"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    registry.handlers["*"] = with_login
    with pytest.raises(RegistryError, match=f"{reason}$"):
        await reader.digest(registry.image("", "1.4"))


@pytest.mark.parametrize("body", ["<html>", "", "{}", "[" * 5000])
async def test_a_tag_has_no_digest_where_the_registry_answers_with_no_manifest(
    registry, reader, body
):
    """Otherwise the digest of a login page would be written into the pod."""

    async def other(request: web.Request) -> web.Response:
        return web.Response(text=body)

    registry.handlers["*"] = other
    with pytest.raises(RegistryError, match=r"answers with something that is no manifest$"):
        await reader.digest(registry.image("", "1.4"))


async def test_an_absent_registry_is_an_error_with_its_reason(reader):
    """The reason is the system's error, not the HTTP client's."""
    with pytest.raises(RegistryError) as raised:
        await reader.digest(parse_image("127.0.0.1:1/team/shop:1"))
    assert str(raised.value) == "registry 127.0.0.1:1 cannot be reached: connection refused"


async def test_ten_thousand_referrers_are_refused(registry, reader):
    """At most 50 candidates are read."""
    index = {"manifests": [{"digest": DIGEST}] * 10_000}
    registry.bodies[f"/v2/team/shop/referrers/{DIGEST}"] = json.dumps(index).encode()
    with pytest.raises(RegistryError, match="more than 50 candidates for signatures"):
        await reader.read_signatures(registry.image(DIGEST))
    assert len(registry.asked) == 1


async def test_signatures_have_a_limit_in_all(registry, reader):
    """Fifty of a megabyte each would fill the memory of a webhook."""
    registry.attach(DIGEST, *({"number": number, "a": "x" * 900_000} for number in range(5)))
    with pytest.raises(RegistryError, match="has signatures of more than 4194304 bytes"):
        await reader.read_signatures(registry.image(DIGEST))


async def test_a_candidate_that_is_too_large_or_malformed_hides_no_other(registry, reader):
    """A large SBOM and a manifest of another type are attached together with the signature."""
    signed = bundle(KEY, DIGEST)
    registry.attach(DIGEST, signed)
    about = {"subject": {"digest": DIGEST}, "artifactType": BUNDLE}
    large = about | {"layers": [{"digest": DIGEST, "mediaType": BUNDLE, "size": 2_000_000}]}
    digests = [registry.put(MANIFEST, each) for each in (large, about | {"layers": [7]})]
    listed = f"/v2/team/shop/referrers/{DIGEST}"
    index = json.loads(registry.bodies[listed])
    index["manifests"] += [{"digest": each} for each in digests]
    registry.bodies[listed] = json.dumps(index).encode()
    attached = await reader.read_signatures(registry.image(DIGEST))
    assert attached.documents == (SignatureDocument(json.dumps(signed).encode()),)


async def test_another_manifest_than_the_named_one_is_refused(registry, client):
    """The digest of a manifest and of a blob is computed."""
    registry.bodies[f"{MANIFESTS}/{DIGEST}"] = b"{}"
    registry.bodies[f"/v2/team/shop/blobs/{DIGEST}"] = b"{}"
    with pytest.raises(RegistryError, match="returned other content than that of sha256:a"):
        await client.read(registry.image(DIGEST), "manifests", DIGEST)
    with pytest.raises(RegistryError, match="returned other content than that of sha256:a"):
        await client.read(registry.image(DIGEST), "blobs", DIGEST)


async def test_blobs_are_read_elsewhere_without_credentials(registry, client):
    """A redirect gets no Authorization header."""
    body = b"payload"
    digest = digest_of(body)
    seen = list[str | None]()

    async def store(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response(body=body)

    async def redirect(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        if len(seen) == 1:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})
        return web.Response(status=307, headers={"Location": f"http://{registry.address}/store"})

    client.logins = {registry.address: LOGIN}
    registry.handlers |= {f"/v2/team/shop/blobs/{digest}": redirect, "/store": store}
    assert await client.read(registry.image(DIGEST), "blobs", digest) == body
    assert seen == [None, LOGIN, None]


async def test_a_token_is_fetched_once_with_the_login(registry, client):
    """The token authentication of the distribution project."""
    asked = list[tuple[str, str | None]]()

    async def token(request: web.Request) -> web.Response:
        asked.append((request.query_string, request.headers.get("Authorization")))
        return web.json_response({"token": "t"})

    async def manifest(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") == "Bearer t":
            return web.Response(body=b"{}")
        challenge = f'Bearer realm="http://{registry.address}/token",service="registry"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    client.logins = {registry.address: LOGIN}
    registry.handlers |= {"/token": token, f"{MANIFESTS}/1": manifest}
    for _ in range(2):
        await client.read(registry.image(""), "manifests", "1")
    scope = "scope=repository:team/shop:pull&service=registry"
    assert asked == [(scope, LOGIN)]


async def test_tokens_in_memory_are_bounded(registry, client, monkeypatch):
    """Users name any number of repositories; a token that was dropped is fetched again."""
    monkeypatch.setattr("webhook.registries.client.MAX_TOKENS", 1)
    scopes = list[str]()

    async def token(request: web.Request) -> web.Response:
        scopes.append(request.query["scope"])
        return web.json_response({"token": "t"})

    async def manifest(request: web.Request) -> web.Response:
        if "Authorization" in request.headers:
            return web.Response(body=b"{}")
        challenge = f'Bearer realm="http://{registry.address}/token"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    registry.handlers |= {"*": manifest, "/token": token}
    for repository in ("a", "a", "b", "a"):
        await client.read(parse_image(f"{registry.address}/{repository}:1"), "manifests", "1")
    assert scopes == [f"repository:{each}:pull" for each in ("a", "b", "a")]


def test_logins_are_read_from_a_docker_config_file(tmp_path):
    """Credentials are found by host, in the format of docker and podman."""
    file = tmp_path / "config.json"
    both = base64.b64encode(b"ann:secret").decode()
    hub = {"https://index.docker.io/v1/": {"username": "hub", "password": "p"}}
    file.write_text(json.dumps({"auths": {"Registry.company.com": {"auth": both}, **hub}}))
    assert read_logins(file) == {
        "registry.company.com": LOGIN,
        "docker.io": f"Basic {base64.b64encode(b'hub:p').decode()}",
    }


@pytest.mark.parametrize(
    "text", ["", "[]", '{"auths": {"a": {"auth": "%"}}}', '{"auths": {"a": {"x": 1}}}']
)
def test_another_file_is_an_error(tmp_path, text):
    """It names the file, and no secret."""
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(RegistryConfigError, match=r"config\.json: not a docker config file"):
        read_logins(file)
    with pytest.raises(
        RegistryConfigError, match=r"nothing: No such file or directory \(--registry-config\)$"
    ):
        read_logins(tmp_path / "nothing")
