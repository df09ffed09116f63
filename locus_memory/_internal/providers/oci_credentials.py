"""The credentials of OCI's SDK: a profile of its configuration file, or a principal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from locus_memory.errors import ConfigurationError

__all__ = ["credentials"]


def credentials(
    oci: Any,
    *,
    authentication: str,
    config_file: str | None,
    profile: str | None,
    region: str | None,
) -> tuple[dict[str, Any], Any]:
    """Return the configuration of a client, and its signer if it is not that of the profile.

    Args:
        oci: The SDK.
        authentication: `"api_key"`, `"security_token"`, `"instance_principal"` or
            `"resource_principal"`.
        config_file: The configuration file; `None`: the SDK's default.
        profile: The profile in it; `None`: the SDK's default.
        region: The region, in place of that of the profile or principal.

    Raises:
        ConfigurationError: There is nothing to sign with.
    """
    try:
        return _credentials(oci, authentication, config_file, profile, region)
    except OSError as error:
        # It is of the network only if it is one of requests; else a file or variable is missing.
        if isinstance(error, oci.base_client.requests.exceptions.RequestException):
            raise
        said = str(error).partition("\n")[0]
        raise ConfigurationError(f"oci: there is nothing to sign with: {said}") from error


def _credentials(
    oci: Any, authentication: str, config_file: str | None, profile: str | None, region: str | None
) -> tuple[dict[str, Any], Any]:
    chosen = {} if region is None else {"region": region}
    if authentication == "instance_principal":
        return chosen, oci.auth.signers.InstancePrincipalsSecurityTokenSigner()
    if authentication == "resource_principal":
        return chosen, oci.auth.signers.get_resource_principals_signer()
    file = config_file or oci.config.DEFAULT_LOCATION
    name = profile or oci.config.DEFAULT_PROFILE
    config: dict[str, Any] = {**oci.config.from_file(file, name), **chosen}
    if authentication == "api_key":
        return config, None
    token_file = config.get("security_token_file")
    if not token_file:
        raise ConfigurationError(
            f"oci: the profile {name!r} has no security_token_file; run 'oci session authenticate'"
        )
    token = Path(token_file).expanduser().read_text("utf-8").strip()
    key = oci.signer.load_private_key_from_file(config["key_file"], config.get("pass_phrase"))
    return config, oci.auth.signers.SecurityTokenSigner(token, key)
