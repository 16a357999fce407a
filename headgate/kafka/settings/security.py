"""TLS and logins: Java's stores and JAAS texts as librdkafka takes them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import Final

from headgate.kafka.settings.errors import ClientConfigError

Settings = dict[str, str]

# Keys that only count together, read by `tls_settings` and `login_settings`.
TLS: Final = re.compile(r"ssl\.(truststore|keystore)\.|ssl\.key\.password$")
LOGIN: Final = re.compile(r"sasl\.jaas\.config$|sasl\..*\.callback\.handler\.class$")


def over_tls(config: Mapping[str, str]) -> bool:
    return config.get("security.protocol", "").strip().upper().endswith("SSL")


def with_login(config: Mapping[str, str]) -> bool:
    return config.get("security.protocol", "").strip().upper().startswith("SASL")


def tls_settings(config: Mapping[str, str]) -> Settings:
    made: Settings = {}
    if path := config.get("ssl.truststore.location"):
        if _format("ssl.truststore.location", path, config.get("ssl.truststore.type")) != "PEM":
            raise ClientConfigError(
                f"ssl.truststore.location names {path}, a Java trust store, which cannot be read here: convert it with"
                f" `keytool -list -rfc -keystore {path} > ca.pem`, set ssl.truststore.location to ca.pem and"
                " ssl.truststore.type to PEM."
            )
        made["ssl.ca.location"] = path
    if certificates := config.get("ssl.truststore.certificates"):
        made["ssl.ca.pem"] = _pem("ssl.truststore.certificates", certificates)
    if path := config.get("ssl.keystore.location"):
        made |= _key_store(path, config)
    if chain := config.get("ssl.keystore.certificate.chain"):
        made["ssl.certificate.pem"] = _pem("ssl.keystore.certificate.chain", chain)
    if key := config.get("ssl.keystore.key"):
        made["ssl.key.pem"] = _pem("ssl.keystore.key", key)
    if password := config.get("ssl.key.password"):
        made["ssl.key.password"] = password
    return made


def _key_store(path: str, config: Mapping[str, str]) -> Settings:
    match _format("ssl.keystore.location", path, config.get("ssl.keystore.type")):
        case "PEM":  # the certificates and the key, in one file
            return {"ssl.certificate.location": path, "ssl.key.location": path}
        case "PKCS12":
            return {"ssl.keystore.location": path, "ssl.keystore.password": config.get("ssl.keystore.password", "")}
        case _:
            raise ClientConfigError(
                f"ssl.keystore.location names {path}, a JKS key store, which cannot be read here: convert it with"
                f" `keytool -importkeystore -srckeystore {path} -destkeystore client.p12 -deststoretype PKCS12`, set"
                " ssl.keystore.location to client.p12 and ssl.keystore.type to PKCS12."
            )


def _format(key: str, path: str, declared: str | None) -> str:
    """PEM, PKCS12 or JKS. The file is asked first: since Java 9, keytool makes PKCS12 files that are called JKS."""
    try:
        with open(path, "rb") as file:
            head = file.read(65536)
    except OSError as error:
        stated = (declared or "").strip().upper()
        if stated in ("PEM", "PKCS12"):
            return stated
        raise ClientConfigError(f"{key} names {path}, which cannot be read: {error.strerror}.") from error
    if b"-----BEGIN " in head:
        return "PEM"
    return "PKCS12" if head.startswith(b"\x30") else "JKS"


def _pem(key: str, text: str) -> str:
    """OpenSSL wants the line breaks that Java can do without."""
    blocks = re.findall(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", text, re.DOTALL)
    if not blocks:
        raise ClientConfigError(f"{key} must be PEM text, from -----BEGIN to -----END.")
    lines: list[str] = []
    for label, body in blocks:
        wrapped = body.strip().splitlines() if ":" in body else textwrap.wrap("".join(body.split()), 64)
        lines += [f"-----BEGIN {label}-----", *wrapped, f"-----END {label}-----"]
    return "\n".join(lines) + "\n"


# --- SASL -------------------------------------------------------------------------------------------------------------


def login_settings(config: Mapping[str, str]) -> Settings:
    for key in ("sasl.login.callback.handler.class", "sasl.client.callback.handler.class"):
        handler = config.get(key, "").rpartition(".")[2]
        if handler not in ("", "OAuthBearerLoginCallbackHandler", "OAuthBearerSaslClientCallbackHandler"):
            raise ClientConfigError(
                f"{key} names {config[key]}, a Java class, which cannot run here: use sasl.mechanism PLAIN,"
                " SCRAM-SHA-256, SCRAM-SHA-512, or OAUTHBEARER with sasl.oauthbearer.token.endpoint.url."
            )
    made: Settings = {}
    if config.get("sasl.oauthbearer.token.endpoint.url"):
        made["sasl.oauthbearer.method"] = config.get("sasl.oauthbearer.method", "oidc")
    if text := config.get("sasl.jaas.config", "").strip():
        made |= _login(*_jaas(text))
    return made


_OPTIONS: Final = {
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
    "Krb5LoginModule": {
        "keyTab": "sasl.kerberos.keytab",
        "principal": "sasl.kerberos.principal",
        "serviceName": "sasl.kerberos.service.name",
    },
}


def _login(module: str, options: Mapping[str, str]) -> Settings:
    match module.rpartition(".")[2]:
        case "PlainLoginModule" | "ScramLoginModule":
            if options.get("tokenauth", "false").lower() == "true":
                raise ClientConfigError(
                    "sasl.jaas.config asks for a delegation token (tokenauth), which cannot be done here: use a user's"
                    " name and password."
                )
            if "username" not in options or "password" not in options:
                raise ClientConfigError("sasl.jaas.config must give username and password.")
            return {"sasl.username": options["username"], "sasl.password": options["password"]}
        case "OAuthBearerLoginModule" | "Krb5LoginModule" as known:
            return {target: options[name] for name, target in _OPTIONS[known].items() if name in options}
        case _:
            raise ClientConfigError(
                f"sasl.jaas.config names {module}, a Java class, which cannot run here: use PlainLoginModule,"
                " ScramLoginModule or OAuthBearerLoginModule of org.apache.kafka.common.security."
            )


_TOKEN: Final = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([=;])|([^\s=;"\']+))', re.DOTALL)


def _jaas(text: str) -> tuple[str, dict[str, str]]:
    """Module and options of `module flag key="value" ...;`. Errors do not repeat the text: it holds passwords."""
    wrong = ClientConfigError(
        'sasl.jaas.config must read `<login module> required <key>="<value>" ...;`, with one login module.'
    )
    tokens: list[str] = []
    signs: list[bool] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            raise wrong
        quoted = token[1] if token[1] is not None else token[2]
        tokens.append(_unescape(quoted) if quoted is not None else token[3] or token[4])
        signs.append(token[3] is not None)
        position = token.end()
    shape = "".join(token if sign else "w" for token, sign in zip(tokens, signs, strict=True))
    flags = ("required", "requisite", "sufficient", "optional")
    if not re.fullmatch(r"ww(w=w)*;", shape) or tokens[1].lower() not in flags:
        raise wrong
    return tokens[0], dict(zip(tokens[2:-1:3], tokens[4:-1:3], strict=True))


def _unescape(text: str) -> str:
    letters = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}
    return re.sub(r"\\(.)", lambda match: letters.get(match[1], match[1]), text, flags=re.DOTALL)
