"""Names from certificates: subjects as Java writes them, and the rules of brokers."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.access.certificates import CertificateRules, subject_of
from headgate.api import ConfigError

KEY = "headgate.login.certificate.rules"
SUBJECT = "CN=kafka-client,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=DE"


def certificate(*attributes: tuple[str, str] | tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """As `getpeercert` gives it; several attributes may be on one level."""
    return {"subject": tuple((each,) if isinstance(each[0], str) else each for each in attributes), "version": 3}


BY_NUMBERS = (
    "1.2.3.4=#0c036f776e,2.5.4.46=#130171,2.5.4.12=#0c0154,2.5.4.5=#13023132,1.2.840.113549.1.9.1=#16056140622e63,"
    "STREET=s,L=l,ST=st"
)
# Certificates made with these subjects, and what X509Certificate.getSubjectX500Principal().getName() of Java 17 says.
JAVA: list[tuple[dict[str, Any], str]] = [
    (
        certificate(
            ("countryName", "DE"),
            ("organizationName", 'Ex, "Co" <a>; =b+c\\d'),
            ("organizationalUnitName", "#b# "),
            ("commonName", "  a é 中 "),
        ),
        r"CN=\ \ a é 中\ ,OU=\#b\#\ ,O=Ex\, \"Co\" \<a\>\; \=b\+c\\d,C=DE",
    ),
    (
        certificate(("domainComponent", "com"), ("domainComponent", "ex"), (("commonName", "x"), ("userId", "u1"))),
        "CN=x+UID=u1,DC=ex,DC=com",
    ),
    (
        certificate(
            ("stateOrProvinceName", "st"),
            ("localityName", "l"),
            ("streetAddress", "s"),
            ("emailAddress", "a@b.c"),
            ("serialNumber", "12"),
            ("title", "T"),
            ("dnQualifier", "q"),
            ("1.2.3.4", "own"),
        ),
        BY_NUMBERS,
    ),
    (certificate(("surname", "é" * 70)), f"2.5.4.4=#0c818c{'c3a9' * 70}"),
    (certificate(("commonName", "a\0b")), r"CN=a\00b"),
    (certificate(), ""),
]


@pytest.mark.parametrize(("given", "subject"), JAVA)
def test_a_subject_reads_as_in_java(given: dict[str, Any], subject: str) -> None:
    assert subject_of(given) == subject


def test_no_value_looks_like_another_attribute() -> None:
    assert subject_of(certificate(("commonName", "a,OU=admins"))) == r"CN=a\,OU\=admins"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", SUBJECT),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "kafka-client"),
        ("RULE:^CN=(.*?),OU=Others.*$/$1/,DEFAULT", SUBJECT),
        ("RULE:^CN=(.*?),OU=Others.*$/$1/", None),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L , DEFAULT", "kafka-client@serviceusers"),
        ("RULE:^CN=(.*?),OU=(.*?),O=.*$/$1@$2/U", "KAFKA-CLIENT@SERVICEUSERS"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.-]*).*$/$1/L", "kafka-client"),
        (r"RULE:^CN=(\w+)-(?<kind>\w+),.*$/a\/${kind}\$/", "a/client$"),
        ("RULE:CN=x/one/, RULE:CN=kafka.*/two/,DEFAULT", "two"),
        ("RULE:CN=kafka-client/x/,", None),  # all of the subject must match
        ("RULE:CN=kafka.*//", None),
        (",,DEFAULT,", SUBJECT),
    ],
)
def test_the_first_rule_that_matches_gives_the_name(rules: str, name: str | None) -> None:
    assert CertificateRules.parse(KEY, rules).name(SUBJECT) == name


def test_no_subject_is_nobodys() -> None:
    assert CertificateRules.parse(KEY, "DEFAULT").name("") is None
    assert CertificateRules.parse(KEY, "RULE:.*/x/").name("") is None


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("", "There must be a rule"),
        (" , ", "There must be a rule"),
        ("default", "From 'default' on"),
        ("DEFAULT, CN=x", "From ' CN=x' on"),
        ("RULE:^CN=(.*?)$/$1", "From 'RULE:"),
        ("RULE:^CN=(.*?)$/$1/X", "From 'RULE:"),
        ("RULE:^CN=(.*?$/$1/", "is no rule: missing"),
        ("RULE:^CN=(.*?)$/$2/", "is no rule: No group 2"),
    ],
)
def test_what_is_no_rule_is_refused(rules: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"for configuration {KEY}: .*") as error:
        CertificateRules.parse(KEY, rules)
    assert reason in str(error.value)
