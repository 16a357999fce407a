"""Apache's JAAS file: where it is, what may stand in it, and who is let in by several modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.access.jaas import LOGIN_MODULE, Jaas, LoginModule, parse
from headgate.access.passwords import UNKNOWN, WRONG
from headgate.api import ConfigError

FILE = r"""
// Of a broker
/* with
   passwords */ KafkaServer { a.b.C required user="x" password="p\"w\101\n" ; };
KafkaConnect {
  x.Module Sufficient / a slash is enough for a comment
     file="/etc/a.properties" ; // here too
  x.Y$Z optional file = "/b\\c" debug=true;
};
other { p.Q requisite; };
"""


def environ(options: str) -> dict[str, str]:
    return {"KAFKA_OPTS": options}


def jaas(folder: Path, *flags: str, file: str = "users") -> Jaas:
    """One module for each flag, with `users0`, `users1`: alice is in all, and each has one of her own."""
    modules = ""
    for number, flag in enumerate(flags):
        path = folder / f"users{number}"
        path.write_text(f"alice=secret\nonly{number}=secret\n")
        path.chmod(0o600)
        modules += f'{LOGIN_MODULE} {flag} file="{folder}/{file}{number}";\n'
    (folder / "jaas.conf").write_text(f"KafkaConnect {{\n{modules}}};")
    return Jaas.of(environ(f"-Djava.security.auth.login.config={folder}/jaas.conf"))


# --- the text ---------------------------------------------------------------------------------------------------------


def test_a_file_is_read_as_java_reads_it() -> None:
    # The same as javax.security.auth.login.Configuration of Java 17 makes of it.
    assert parse(FILE) == {
        "KafkaServer": [LoginModule("a.b.C", "required", {"user": "x", "password": 'p"wA\n'})],
        "KafkaConnect": [
            LoginModule("x.Module", "sufficient", {"file": "/etc/a.properties"}),
            LoginModule("x.Y$Z", "optional", {"file": r"/b\c", "debug": "true"}),
        ],
        "other": [LoginModule("p.Q", "requisite", {})],
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("K\n{ a.B required", "line 2: an option, or ; after the last is missing"),
        ("K {\n a.B\n maybe; };", "line 3: the flag must be one of required, requisite, sufficient, optional"),
        ("K { a.B required x };", "line 1: = is missing"),
        ("K a", "line 1: { is missing"),
        ("K { a required; }", "line 1: ; is missing"),
        ('K { a required\nk="v };\n};', "line 2: .* a quote does not end"),
        ("K { a required k='v'; };", "line 1: this is nothing"),
        ("# comment", "line 1: this is nothing"),
        ("/* comment", "line 1: this is nothing"),
        ("K { a required file=/etc/x; };", "line 1: the value of an option is missing"),
        ("K { a required; };\nK { a required; };", "line 2: there is an entry K already"),
        ("{", "line 1: the name of an entry is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text)


# --- where it is ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        "-Djava.security.auth.login.config={}",
        "-Xmx1g '-Djava.security.auth.login.config={}' -Da=b",
        '-Djava.security.auth.login.config="{}"',
        "-Djava.security.auth.login.config=={}",
        "-Djava.security.auth.login.config=file:{}",
        "-Djava.security.auth.login.config=/nowhere -Djava.security.auth.login.config={}",
        "-Djava.security.auth.login.config={} -Dname=it's",
    ],
)
def test_the_file_is_named_by_kafka_opts(tmp_path: Path, options: str) -> None:
    path = jaas(tmp_path, "required").file
    assert Jaas.of(environ(options.format(path))).problem("alice", "secret") is None


@pytest.mark.parametrize("given", [{}, environ(""), environ("-Xmx1g"), environ("-Djava.security.auth.login.config=")])
def test_without_one_the_worker_says_what_to_set(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"BasicAuthSecurityRestExtension.*rest.extension.classes.*Set KAFKA_OPTS="):
        Jaas.of(given)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"/gone for .*java.security.auth.login.config in KAFKA_OPTS: .*No such file"):
        Jaas.of(environ(f"-Djava.security.auth.login.config={tmp_path}/gone"))
    with pytest.raises(ConfigError, match=r"/gone0 for configuration file in .*jaas.conf: .*No such file"):
        jaas(tmp_path, "required", file="gone")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("KafkaClient { a.B required; };", "no entry KafkaConnect"),
        ("KafkaConnect { };", "no entry KafkaConnect"),
        ("KafkaConnect { com.acme.LdapModule required; };", "com.acme.LdapModule is a Java class.*headgate.login.jwks"),
        (f"KafkaConnect {{ {LOGIN_MODULE} required; }};", 'needs file="'),
        (f'KafkaConnect {{ {LOGIN_MODULE} required file=" "; }};', 'needs file="'),
        (f'KafkaConnect {{ {LOGIN_MODULE} required file="${{user.home}}/x"; }};', "no properties of Java"),
        ("KafkaConnect {", "line 1"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "jaas.conf").write_text(text)
    with pytest.raises(ConfigError, match=reason):
        Jaas.of(environ(f"-Djava.security.auth.login.config={tmp_path}/jaas.conf"))


def test_the_entry_other_stands_in(tmp_path: Path) -> None:
    path = Path(jaas(tmp_path, "required").file)
    path.write_text(path.read_text().replace("KafkaConnect", "other"))
    assert Jaas.of(environ(f"-Djava.security.auth.login.config={path}")).problem("alice", "secret") is None


# --- who is let in ----------------------------------------------------------------------------------------------------


def test_one_module(tmp_path: Path) -> None:
    made = jaas(tmp_path, "required")
    assert made.problem("alice", "secret") is None
    assert made.problem("alice", "wrong") == WRONG
    assert made.problem("bob", "secret") == UNKNOWN
    assert made.files == [str(tmp_path / "jaas.conf"), str(tmp_path / "users0")]


@pytest.mark.parametrize(
    ("flags", "let_in"),
    [
        (["required", "required"], []),
        (["requisite", "required"], []),
        (["required", "requisite"], []),
        (["required", "optional"], ["only0"]),
        (["optional", "required"], ["only1"]),
        (["required", "sufficient"], ["only0"]),
        (["sufficient", "required"], ["only0", "only1"]),
        (["sufficient", "sufficient"], ["only0", "only1"]),
        (["optional", "optional"], ["only0", "only1"]),
        (["optional", "sufficient"], ["only0", "only1"]),
        (["sufficient", "requisite", "required"], ["only0"]),
        (["required", "sufficient", "required"], []),
    ],
)
def test_several_modules_count_by_their_flags(tmp_path: Path, flags: list[str], let_in: list[str]) -> None:
    made = jaas(tmp_path, *flags)
    assert made.problem("alice", "secret") is None
    assert made.problem("alice", "wrong") == WRONG
    users = [f"only{number}" for number in range(len(flags))]
    assert [user for user in users if made.problem(user, "secret") is None] == let_in


def test_the_version_is_that_of_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.access.watched_file._LOOK_S", 0.0)
    monkeypatch.setattr("headgate.access.watched_file._SETTLED_S", 0.0)
    made = jaas(tmp_path, "sufficient", "sufficient")
    before = made.version
    (tmp_path / "users1").write_text("bob=secret")
    assert made.version != before
    assert made.problem("bob", "secret") is None
