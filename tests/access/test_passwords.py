"""Passwords in files: which lines and hashes are taken, and that nothing tells users apart from strangers."""

from __future__ import annotations

import os
from pathlib import Path

import argon2
import bcrypt
import pytest

from headgate.access import passwords
from headgate.access.passwords import UNKNOWN, WRONG, Htpasswd, PropertyFile
from headgate.api import ConfigError

SMALL = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
SMALL_I = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1, type=argon2.Type.I)


def hashed(password: str, prefix: bytes = b"2b") -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).replace(b"2b", prefix, 1).decode()


HASHES = {
    "a": hashed("secret", b"2a"),
    "b": hashed("secret"),
    "y": hashed("secret", b"2y"),
    "id": SMALL.hash("secret"),
    "i": SMALL_I.hash("secret"),
}


def htpasswd(folder: Path, text: str) -> Htpasswd:
    path = folder / "htpasswd"
    path.write_text(text, "utf-8")
    return Htpasswd("headgate.login.htpasswd", str(path))


def properties(folder: Path, text: str) -> PropertyFile:
    path = folder / "users.properties"
    path.write_text(text, "latin-1")
    path.chmod(0o600)
    return PropertyFile("file in jaas.conf", str(path))


# --- htpasswd ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory: pytest.TempPathFactory) -> Htpasswd:
    lines = [f"{user}:{hash}" for user, hash in HASHES.items()]
    return htpasswd(tmp_path_factory.mktemp("x"), "# users\n\n" + "\r\n".join(lines) + "\n")


@pytest.mark.parametrize("user", HASHES)
def test_hashes_by_bcrypt_and_argon2_are_taken(all_kinds: Htpasswd, user: str) -> None:
    assert all_kinds.problem(user, "secret") is None
    assert all_kinds.problem(user, "Secret") == WRONG
    assert all_kinds.problem(user, "") == WRONG
    assert all_kinds.problem(f"{user}x", "secret") == UNKNOWN


OTHERS = {
    "apr1": "$apr1$HSHeghvj$Wg2zr5DTW7LTi9pLjsQCd.",
    "SHA": "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
    "crypt": "rqXexS6ZhobKA",
    "MD5": "$1$abc$def",
    "plain": "plain-password",
    "cut bcrypt": HASHES["b"][:-1],
    "bcrypt for days": HASHES["b"].replace("$04$", "$31$"),
    "argon2d": HASHES["id"].replace("argon2id", "argon2d"),
    "argon2 with all memory": HASHES["id"].replace("m=8", "m=2000000"),
    "cut argon2": "$argon2id$v=19$m=8",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_hashes_are_refused_with_what_to_do(tmp_path: Path, kind: str) -> None:
    reason = "line 2: hashes are by bcrypt or argon2 here; make this one with htpasswd -B"
    with pytest.raises(ConfigError, match=reason) as error:
        htpasswd(tmp_path, f"#bob:x\nbob:{OTHERS[kind]}\n")
    assert OTHERS[kind] not in str(error.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("bob", "must read <user>:<hash>"),
        (":x", "must read <user>:<hash>"),
        ("bob:", "must read <user>:<hash>"),
        ("b:{hash}", "twice"),
    ],
)
def test_lines_that_are_wrong_are_refused(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"headgate.login.htpasswd: line 2: .*{reason}"):
        htpasswd(tmp_path, f"b:{HASHES['b']}\n{line.format(hash=HASHES['b'])}")


def test_bcrypt_reads_72_bytes_so_no_longer_password_is_right(tmp_path: Path) -> None:
    longest = "x" * 72
    file = htpasswd(tmp_path, f"b:{hashed(longest)}\nid:{SMALL.hash(longest + 'y')}\nshort:{hashed('x')}\n")
    assert file.problem("b", longest) is None
    assert file.problem("b", longest + "y") == WRONG
    assert file.problem("id", longest + "y") is None
    assert file.problem("short", "x\0x") == WRONG  # to bcrypt the same as "x"


def test_passwords_are_utf_8(tmp_path: Path) -> None:
    file = htpasswd(tmp_path, f"zoë:{hashed('pässword')}\n")
    assert file.problem("zoë", "pässword") is None
    assert file.problem("zoë", "password") == WRONG


@pytest.mark.parametrize("password", ["secret", "x" * 100, "a\0b"])
def test_a_stranger_costs_as_much_as_a_user(
    all_kinds: Htpasswd, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    checked: list[str] = []
    real = passwords._is_right

    def counted(hashed: str, given: str) -> bool:
        checked.append(hashed)
        return real(hashed, given)

    monkeypatch.setattr(passwords, "_is_right", counted)
    for user in ("b", "stranger", "stranger", "another", "one more"):
        all_kinds.problem(user, password)
    assert len(checked) == 5
    assert set(checked) <= set(HASHES.values())
    assert checked[1] == checked[2]  # the same one each time, as of a user


def test_a_password_that_is_too_long_is_hashed_nevertheless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed_bytes: list[bytes] = []

    def seems_right(given: bytes, _: bytes) -> bool:
        hashed_bytes.append(given)
        return True

    monkeypatch.setattr(bcrypt, "checkpw", seems_right)
    assert htpasswd(tmp_path, f"b:{HASHES['b']}").problem("b", "x" * 100) == WRONG
    assert hashed_bytes == [b"x" * 72]


def test_no_users_means_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert htpasswd(tmp_path, "# none yet\n").problem("a", "") == UNKNOWN
    assert "nobody can log in" in caplog.text


def test_users_who_are_taken_out_are_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.access.watched_file._LOOK_S", 0.0)
    file = htpasswd(tmp_path, f"a:{HASHES['a']}\nb:{HASHES['b']}\n")
    before = file.version
    (tmp_path / "htpasswd").write_text(f"a:{HASHES['a']}\nb:{HASHES['b'][:20]}")  # half-written
    os.utime(tmp_path / "htpasswd", (1, 1))
    assert (file.problem("b", "secret"), file.version) == (None, before)
    (tmp_path / "htpasswd").write_text(f"a:{HASHES['a']}\n")
    os.utime(tmp_path / "htpasswd", (2, 2))
    assert file.problem("b", "secret") == UNKNOWN
    assert file.problem("a", "secret") is None
    assert file.version != before


# --- Apache's property file -------------------------------------------------------------------------------------------


def test_a_property_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    file = properties(tmp_path, "! users\nalice = p\\u00e4ss\\\n  word\nbob:x=y\ncarol\nzo\xeb=1\n")
    assert file.problem("alice", "pässword") is None
    assert file.problem("alice", "password") == WRONG
    assert file.problem("bob", "x=y") is None
    assert file.problem("carol", "") is None
    assert file.problem("zoë", "1") is None
    assert file.problem("dave", "") == UNKNOWN
    assert file.problem("dave", "x=y") == UNKNOWN


def test_an_empty_property_file_lets_nobody_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert properties(tmp_path, "# nobody\n").problem("alice", "") == UNKNOWN
    assert "nobody can log in with it, while Apache's worker lets everybody in" in caplog.text


def test_a_property_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"for configuration file in jaas.conf: .*escape"):
        properties(tmp_path, "a=\\u12\n")


def test_plain_passwords_are_not_kept(tmp_path: Path) -> None:
    file = properties(tmp_path, "alice=correct-horse\n")
    assert "correct-horse" not in repr(vars(file._file))
    assert file.files == [str(tmp_path / "users.properties")]
