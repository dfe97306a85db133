"""Image references are parsed as the container runtimes parse them, and compared by their parts."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config.image_references import ImageReference, ImageReferenceError, parse_image
from tests.characters import CHARACTERS
from webhook.policies._images import Registry, parse_registry

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nginx", ("docker.io", "library/nginx", None, None)),
        ("nginx:1.21", ("docker.io", "library/nginx", "1.21", None)),
        ("team/app", ("docker.io", "team/app", None, None)),
        ("docker.io/nginx", ("docker.io", "library/nginx", None, None)),
        ("index.docker.io/library/nginx", ("docker.io", "library/nginx", None, None)),
        ("registry-1.docker.io/nginx", ("docker.io", "library/nginx", None, None)),
        ("registry.hub.docker.com/library/nginx", ("docker.io", "library/nginx", None, None)),
        ("DOCKER.IO/nginx", ("docker.io", "library/nginx", None, None)),
        ("registry.company.com/shop:1.4", ("registry.company.com", "shop", "1.4", None)),
        ("Registry.Company.COM/a/b/c", ("registry.company.com", "a/b/c", None, None)),
        ("registry.company.com:5000/shop", ("registry.company.com:5000", "shop", None, None)),
        ("registry.company.com:443/shop", ("registry.company.com", "shop", None, None)),
        ("ghcr.io:0443/shop", ("ghcr.io", "shop", None, None)),
        ("ghcr.io:05000/shop", ("ghcr.io:5000", "shop", None, None)),
        ("ghcr.io:0/shop", ("ghcr.io:0", "shop", None, None)),
        ("docker.io:443/nginx", ("docker.io", "library/nginx", None, None)),
        ("localhost/app", ("localhost", "app", None, None)),
        ("localhost:5000/app:x", ("localhost:5000", "app", "x", None)),
        ("LOCAL/app", ("local", "app", None, None)),
        ("host:5000", ("docker.io", "library/host", "5000", None)),
        ("10.0.0.1/app", ("10.0.0.1", "app", None, None)),
        ("[2001:db8::1]/app", ("[2001:db8::1]", "app", None, None)),
        ("[2001:DB8::1]:5000/app:1", ("[2001:db8::1]:5000", "app", "1", None)),
        (f"nginx@{DIGEST}", ("docker.io", "library/nginx", None, DIGEST)),
        (f"ghcr.io/a/b:1@{DIGEST}", ("ghcr.io", "a/b", "1", DIGEST)),
        ("a__b/c-d.e---f:T_a.g-1", ("docker.io", "a__b/c-d.e---f", "T_a.g-1", None)),
    ],
)
def test_a_reference_has_parts(text, parts):
    """Registry, repository, tag and digest are separated, with Docker Hub's defaults filled in."""
    assert parse_image(text) == ImageReference(*parts)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "its repository is malformed; it must be lower case"),
        (" nginx", "it contains whitespace"),
        ("nginx ", "it contains whitespace"),
        ("nginx\n", "it contains whitespace"),
        ("Nginx", "its repository is malformed; it must be lower case"),
        ("registry.company.com/UPPER", "its repository is malformed; it must be lower case"),
        ("registry.company.com/", "its repository is malformed; it must be lower case"),
        ("registry.company.com//x", "its repository is malformed; it must be lower case"),
        ("a/../b", "its repository is malformed; it must be lower case"),
        ("a..b", "its repository is malformed; it must be lower case"),
        ("a___b", "its repository is malformed; it must be lower case"),
        (f"b/{'a' * 254}", "its repository is malformed; it must be lower case"),
        (f"{'A' * 1024}/x", "it has more than 1024 characters"),
        (
            f"sha256:{'f' * 64}",
            "it is the id of an image that a node has, whatever registry that came from",
        ),
        ("0" * 64, "it is the id of an image that a node has, whatever registry that came from"),
        (f"x@sha256:{'f' * 1024}", "it has more than 1024 characters"),
        ("https://registry.company.com/x", "its registry is malformed"),
        ("registry.company.com@evil.io/x", "its digest is malformed"),
        ("nginx:", "its tag is malformed"),
        ("nginx:-1", "its tag is malformed"),
        ("nginx:1:2", "its tag is malformed"),
        ("nginx:\u0661", "its tag is malformed"),
        (f"nginx:{'x' * 129}", "its tag is malformed"),
        ("nginx@", "its digest is malformed"),
        ("nginx@sha256:abc", "its digest is malformed"),
        (f"nginx@md5:{'a' * 32}", "its digest is malformed"),
        (f"nginx@sha256:{'a' * 63}", "its digest is malformed"),
        (f"nginx@sha256:{'A' * 64}", "its digest is malformed"),
        (f"nginx@sha512:{'a' * 64}", "its digest is malformed"),
        (f"nginx@{DIGEST}@{DIGEST}", "its digest is malformed"),
        (f"nginx@{DIGEST}\n", "it contains whitespace"),
        ("registry.company.com:99999999/x", "its registry is malformed"),
        ("registry_.company.com/x", "its registry is malformed"),
        ("-a.company.com/x", "its registry is malformed"),
        ("régistry.company.com/x", "its registry is malformed"),
        ("[::1/x", "its registry is malformed"),
    ],
)
def test_an_invalid_reference_is_rejected(text, fault):
    """The error names the invalid part."""
    with pytest.raises(ImageReferenceError) as told:
        parse_image(text)
    assert str(told.value) == fault


TEXT = st.text(alphabet="aZ09.-_/:@[]\n \u0661é", max_size=40) | st.text(CHARACTERS, max_size=40)
# With a dot it could be a registry.
COMPONENT = st.from_regex(
    r"[a-z0-9]{1,4}(-{1,2}[a-z0-9]{1,4})?", alphabet=CHARACTERS, fullmatch=True
)
REFERENCE = st.builds(
    lambda registry, path, tag, digest: "".join((registry, "/".join(path), tag, digest)),
    st.sampled_from(
        ["", "docker.io/", "Ghcr.IO/", "localhost:5000/", "[::1]:80/", "registry.company.com/"]
    ),
    st.lists(COMPONENT, min_size=1, max_size=3),
    st.just("")
    | st.from_regex(r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,9}", alphabet=CHARACTERS, fullmatch=True),
    st.just("") | st.just(f"@{DIGEST}"),
)


@given(TEXT)
@example("a" * 10_000)
@example("-" * 10_000 + "/x.y/z")
def test_any_text_is_a_reference_or_is_refused(text):
    """Invalid text raises one type of error, and a parsed reference has complete parts."""
    try:
        image = parse_image(text)
    except ImageReferenceError:
        return
    assert image.registry == image.registry.lower() != ""
    assert image.repository == image.repository.lower() != ""


@given(REFERENCE)
def test_a_formatted_reference_parses_to_the_same_parts(text):
    """Formatting and parsing are inverse."""
    image = parse_image(text)
    tag, digest = f":{image.tag}" if image.tag else "", f"@{image.digest}" if image.digest else ""
    assert parse_image(f"{image.registry}/{image.repository}{tag}{digest}") == image


@pytest.mark.parametrize(
    "text",
    [
        "registry.company.com.evil.io/x",
        "registry.company.community/x",
        "evil.io/registry.company.com/x",
        "registry-company.com/x",
        "xregistry.company.com/x",
        "registry.company.com:5000/x",
        "registry.company.com",
        "registry.company.com:x",
    ],
)
def test_a_registry_is_not_its_look_alike(text):
    """Only the whole host counts, its port included; a name without a slash is Docker Hub's."""
    assert not parse_registry("registry.company.com").holds(parse_image(text))


@given(
    REFERENCE,
    st.sampled_from(["ghcr.io", "docker.io", "registry.company.com", "localhost:5000", "[::1]:80"]),
)
def test_an_image_belongs_to_its_registry_only(text, host):
    """A registry matches an image exactly if it is the image's."""
    image = parse_image(text)
    assert parse_registry(host).holds(image) is (image.registry == host)


@pytest.mark.parametrize(
    ("registry", "image", "held"),
    [
        ("registry.company.com/team", "registry.company.com/team/app", True),
        ("registry.company.com/team/", "registry.company.com/team/a/b", True),
        ("registry.company.com/team", "registry.company.com/team", True),
        ("registry.company.com/team", "registry.company.com/team-evil/app", False),
        ("registry.company.com/team", "registry.company.com/app", False),
        ("registry.company.com/a/b", "registry.company.com/a", False),
        ("docker.io", "nginx", True),
        ("index.docker.io/library", "nginx", True),
        ("docker.io/library", "team/nginx", False),
        ("REGISTRY.company.com", "registry.company.com/x", True),
        ("*.Corp.io", "eu.corp.io/x", True),
        ("*.corp.io", "corp.io/x", False),
        ("*.corp.io", "a.eu.corp.io/x", False),
        ("*.corp.io", "eu.corp.io.evil.io/x", False),
        ("*.corp.io", "eu.corp.io:5000/x", False),
        ("*.corp.io:5000", "eu.corp.io:5000/x", True),
        ("*.corp.io:5000", "eu.corp.io:05000/x", True),
        ("*.corp.io:443", "eu.corp.io/x", True),
        ("*.corp.io:443", "eu.corp.io:443/x", True),
        ("docker.io/nginx:1.*", "nginx:1.2", True),
        ("docker.io/nginx:1.*", "evil/nginx:1.2", False),
        ("*.dkr.ecr.*.amazonaws.com", "123.dkr.ecr.eu-west-1.amazonaws.com/x", True),
        ("ghcr.io/*/approved", "ghcr.io/team/approved/x", True),
        ("ghcr.io/*/approved", "ghcr.io/team/x/approved", False),
        ("ghcr.io/*/approved", "ghcr.io/team", False),
        ("ghcr.io/team/base:1.*", "ghcr.io/team/base:1.4", True),
        ("ghcr.io/team/base:1.*", f"ghcr.io/team/base:1.4@sha256:{'a' * 64}", True),
        ("ghcr.io/team/base:1.*", f"ghcr.io/team/base@sha256:{'a' * 64}", False),
        ("ghcr.io/team/base:1.*", "ghcr.io/team/base:2.1", False),
        ("ghcr.io/team/base:1.*", "ghcr.io/team/base/app:1.4", False),
        ("ghcr.io/*/base:latest", "ghcr.io/team/base", True),
    ],
)
def test_a_path_prefix_matches_whole_components(registry, image, held):
    """A glob in a registry matches one component of the path or the host."""
    assert parse_registry(registry).holds(parse_image(image)) is held


def test_a_registry_is_kept_by_its_parts():
    """Host, port and path are separated."""
    assert parse_registry("Registry.Company.com:5000/a/b/") == Registry(
        "registry.company.com:5000", ("a", "b")
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "its registry is malformed"),
        ("*", "its registry is malformed"),
        ("https://registry.company.com", "it has a scheme: remove https://"),
        ("registry.company.com/Team", "its path is malformed"),
        ("registry.company.com/team:", "its tag is malformed"),
        ("registry.company.com/team:1/app", "its tag is malformed"),
        ("registry.company.com/Team:1", "its path is malformed"),
        ("registry.company.com/team:1@sha256", "its tag is malformed"),
        ("registry.company.com/*", "its path is malformed"),
        ("registry.company.com/team-*/x", "its path is malformed"),
        ("eu-*.company.com", "its registry is malformed"),
        ("registry.company.com:*", "its registry is malformed"),
        ("*.*", "its registry is malformed"),
    ],
)
def test_an_invalid_registry_is_rejected(text, fault):
    """A pattern or a URL is an error, not a registry without images."""
    with pytest.raises(ImageReferenceError) as told:
        parse_registry(text)
    assert str(told.value) == fault
