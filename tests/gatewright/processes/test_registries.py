"""Files and hosts of registries that cannot be used are errors, which name the setting."""

import pytest

from config.settings import Settings
from gatewright.processes.registries import image_look_ups
from webhook.registries.credentials import RegistryConfigError


@pytest.mark.parametrize(
    ("setting", "text", "error"),
    [
        ("registry_ca", "no certificate", "{file}: has no certificate in PEM (--registry-ca)"),
        ("registry_ca", None, "{file}: No such file or directory (--registry-ca)"),
        ("registry_config", None, "{file}: No such file or directory (--registry-config)"),
        (
            "registry_config",
            '{"credsStore": "desktop"}',
            '{file}: has no logins; expected {{"auths": {{"HOST": {{"auth": "base64 of '
            'USER:PASSWORD"}}}}}}. Credential helpers are not run',
        ),
    ],
)
async def test_a_file_that_cannot_be_used(tmp_path, setting, text, error):
    """It is no silent lack of a login or of an authority."""
    file = tmp_path / "file"
    if text is not None:
        file.write_text(text)
    with pytest.raises(RegistryConfigError) as raised:
        async with image_look_ups(Settings(**{setting: file})):
            pass
    assert str(raised.value) == error.format(file=file)


async def test_an_insecure_registry_has_no_scheme():
    """No image would match it."""
    with pytest.raises(RegistryConfigError) as raised:
        async with image_look_ups(Settings(insecure_registries=["http://localhost:5000"])):
            pass
    assert str(raised.value) == (
        "--insecure-registries http://localhost:5000: expected HOST:PORT, without a scheme or path"
    )
