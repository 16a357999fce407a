from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import javaproperties
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.cli.files import ConnectorFile, FileError, read_connector, read_properties
from headgate.model import TargetState

FLAT = "Can use JSON files containing connector key-value configurations with standalone mode"
REQUEST = (
    "Can use JSON files containing a JSON object similar to the request body format for the POST /connectors endpoint"
    " with standalone mode"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "connector"  # no extension: none is looked at


def read(file: Path, content: str | bytes) -> ConnectorFile:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_connector(file)


def error(file: Path, content: str | bytes) -> str:
    with pytest.raises(FileError) as caught:
        read(file, content)
    assert f"'{file}'" in str(caught.value)
    return str(caught.value).replace(str(file), "<file>")


class TestFlatJson:
    @pytest.mark.kip(980, FLAT)
    def test_a_flat_object_is_the_configuration(self, file: Path) -> None:
        found = read(file, '{"name": "a", "connector.class": "FileStreamSource", "topic": "ö"}')
        assert found == ConnectorFile("a", {"name": "a", "connector.class": "FileStreamSource", "topic": "ö"}, None)

    @pytest.mark.kip(980, FLAT)
    def test_numbers_and_booleans_become_text_as_they_are_written(self, file: Path) -> None:
        found = read(
            file, '{"name": "a", "i": 1, "f": 1.10, "e": 1e3, "big": 12345678901234567890123, "t": true, "n": false}'
        )
        assert found.config == {
            "name": "a",
            "i": "1",
            "f": "1.10",
            "e": "1e3",
            "big": "12345678901234567890123",
            "t": "true",
            "n": "false",
        }
        assert {type(value) for value in found.config.values()} == {str}

    def test_a_flat_object_may_have_keys_called_like_fields_of_a_request(self, file: Path) -> None:
        found = read(file, '{"name": "a", "config": "x", "initial_state": "STOPPED"}')
        assert found == ConnectorFile("a", {"name": "a", "config": "x", "initial_state": "STOPPED"}, None)

    def test_a_flat_object_without_name_says_so(self, file: Path) -> None:
        missing = "Connector configuration at '<file>' is missing the mandatory 'name' configuration"
        assert error(file, '{"topic": "t"}') == missing
        assert error(file, "{}") == missing

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("null", "The value of \"k\" at '<file>' is null: leave the key out, or give it a text"),
            ("[]", "The value of \"k\" at '<file>' is an array: it must be text, a number or a boolean"),
            ("{}", "The value of \"k\" at '<file>' is an object: it must be text, a number or a boolean"),
        ],
    )
    def test_a_value_that_is_no_text_is_an_error_that_names_its_key(self, file: Path, value: str, message: str) -> None:
        hint = "" if value == "null" else "; a create request has the fields name, config, initial_state"
        assert error(file, f'{{"name": "a", "k": {value}}}') == message + hint
        assert error(file, f'{{"name": "a", "config": {{"k": {value}}}}}') == message


class TestCreateRequest:
    @pytest.mark.kip(980, REQUEST)
    @pytest.mark.parametrize(
        ("text", "state"),
        [
            ('"RUNNING"', TargetState.STARTED),
            ('"PAUSED"', TargetState.PAUSED),
            ('"STOPPED"', TargetState.STOPPED),
            ('"stopped"', TargetState.STOPPED),
            ('"Paused"', TargetState.PAUSED),
            ("null", None),
        ],
    )
    def test_a_request_may_say_the_initial_state_in_any_case(
        self, file: Path, text: str, state: TargetState | None
    ) -> None:
        found = read(file, f'{{"name": "a", "config": {{"name": "a", "n": 1}}, "initial_state": {text}}}')
        assert found == ConnectorFile("a", {"name": "a", "n": "1"}, state)

    @pytest.mark.kip(980, REQUEST)
    def test_the_example_of_the_proposal(self, file: Path) -> None:
        found = read(
            file,
            """{
  "name": "file-sink-test",
  "config": {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "file": "test.txt",
    "topics": "test-topic",
    "tasks.max": "1"
  },
  "initial_state": "STOPPED"
}""",
        )
        assert found.name == "file-sink-test"
        assert found.initial_state is TargetState.STOPPED
        assert found.config == {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "file": "test.txt",
            "topics": "test-topic",
            "tasks.max": "1",
            "name": "file-sink-test",
        }

    @pytest.mark.kip(980, "Creating a connector with no explicit state specified results in a RUNNING state connector")
    def test_without_initial_state_none_is_asked_for(self, file: Path) -> None:
        assert read(file, '{"name": "a", "config": {}}') == ConnectorFile("a", {"name": "a"}, None)

    @pytest.mark.parametrize("state", ['"started"', '""', '" PAUSED"', "1", "true", "[]", '"UNASSIGNED"'])
    def test_any_other_initial_state_is_an_error_that_lists_the_valid_ones(self, file: Path, state: str) -> None:
        message = error(file, f'{{"name": "a", "config": {{}}, "initial_state": {state}}}')
        assert message.startswith("Invalid initial_state ")
        assert message.endswith(" at '<file>': valid values are RUNNING, PAUSED, STOPPED")

    def test_two_names_that_differ_are_an_error(self, file: Path) -> None:
        assert (
            error(file, '{"name": "a", "config": {"name": "b"}}')
            == "Connector name configuration in 'config' doesn't match the one specified in 'name' at '<file>'"
        )

    @pytest.mark.parametrize("name", ["", '"name": null, '])
    def test_a_request_without_name_says_so(self, file: Path, name: str) -> None:
        message = error(file, f'{{{name}"config": {{"name": "a"}}}}')
        assert message == "Connector configuration at '<file>' is missing the mandatory 'name' configuration"

    def test_an_unknown_field_is_an_error_that_names_it(self, file: Path) -> None:
        message = error(file, '{"name": "a", "config": {}, "initial-state": "PAUSED"}')
        assert message == "Unrecognized field \"initial-state\" at '<file>': the fields are name, config, initial_state"

    def test_a_misspelt_config_field_is_named(self, file: Path) -> None:
        assert '"confg"' in error(file, '{"name": "a", "confg": {"topic": "t"}}')

    @pytest.mark.parametrize("config", ["null", "[]", '["a"]'])
    def test_the_config_of_a_request_must_be_an_object(self, file: Path, config: str) -> None:
        message = error(file, f'{{"name": "a", "config": {config}}}')
        assert message == "The field \"config\" at '<file>' must be a JSON object"


class TestProperties:
    def test_java_properties_still_work(self, file: Path) -> None:
        found = read(file, "# a comment\nname=a\n! another\ntopic : t\\\n  u\nempty\npath=c\\:\\\\d\\u00f6\n")
        assert found == ConnectorFile("a", {"name": "a", "topic": "tu", "empty": "", "path": "c:\\dö"}, None)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1"])
    def test_text_may_be_utf8_or_what_java_takes_it_for(self, file: Path, encoding: str) -> None:
        assert read(file, "name=größe\n".encode(encoding)).name == "größe"

    def test_without_name_it_is_an_error(self, file: Path) -> None:
        missing = "Connector configuration at '<file>' is missing the mandatory 'name' configuration"
        for content in ("topic=t", "# only a comment", "123", '"name"', "true"):
            assert error(file, content) == missing

    def test_of_a_key_given_twice_the_last_counts_and_a_warning_says_so(self, file: Path) -> None:
        found = read(file, "name=a\nname=b\n")
        assert found.name == "b"
        assert found.warnings == (f"'{file}' gives name more than once: the last value counts",)

    def test_a_broken_escape_is_an_error(self, file: Path) -> None:
        assert error(file, "name=a\\u12").startswith("The file '<file>' is not valid as Java properties: Invalid \\u")


class TestBrokenJson:
    def test_it_is_reported_with_line_and_column(self, file: Path) -> None:
        message = error(file, '{\n  "name": "a"\n  "topic": "t"\n}')
        assert message == "The connector file '<file>' is not valid JSON: line 3, column 3: Expecting ',' delimiter"

    def test_also_when_it_is_no_valid_properties_file_either(self, file: Path) -> None:
        assert "is not valid JSON: line 1, column" in error(file, '{"name": "\\u12"')

    @pytest.mark.kip(980, "parse it into Java Properties if the JSON parsing is unsuccessful")
    def test_what_begins_like_json_but_has_a_name_as_properties_is_properties(self, file: Path) -> None:
        assert read(file, "{odd}=1\nname=a\n").config == {"{odd}": "1", "name": "a"}

    def test_an_array_is_an_error(self, file: Path) -> None:
        assert error(file, '[{"name": "a"}]').endswith("holds a JSON array: it must hold one JSON object")

    def test_a_key_given_twice_is_an_error_that_names_it(self, file: Path) -> None:
        assert error(file, '{"name": "a", "name": "b"}') == (
            "The connector file '<file>' has \"name\" twice in one JSON object"
        )
        assert '"k" twice' in error(file, '{"name": "a", "config": {"k": "1", "k": "1"}}')

    def test_what_only_javascript_calls_a_number_is_an_error(self, file: Path) -> None:
        assert "holds NaN, which is not a JSON value" in error(file, '{"name": "a", "k": NaN}')

    def test_half_a_surrogate_pair_is_an_error(self, file: Path) -> None:
        assert "half of a surrogate pair" in error(file, '{"name": "a", "k": "\\ud800"}')
        assert "half of a surrogate pair" in error(file, "name=\\udfff")

    def test_deep_nesting_is_an_error(self, file: Path) -> None:
        assert "nested too deeply" in error(file, '{"a":' * 100_000)

    def test_a_byte_order_mark_does_not_matter(self, file: Path) -> None:
        assert read(file, b'\xef\xbb\xbf{"name": "a"}').name == "a"

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_utf16_is_an_error_that_says_what_to_do(self, file: Path, encoding: str) -> None:
        message = error(file, "\ufeffname=a".encode(encoding))
        assert message == "The file '<file>' is encoded as UTF-16: save it as UTF-8"


Reader = Callable[[str | Path], object]


@pytest.mark.parametrize("reader", [read_connector, read_properties])
class TestFilesThatCannotBeRead:
    def test_a_missing_file(self, file: Path, reader: Reader) -> None:
        with pytest.raises(FileError, match=f"^The file '{file}' does not exist$"):
            reader(file)

    def test_a_relative_name_is_shown_absolute(
        self, tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(FileError, match=f"^The file '{tmp_path}/none' does not exist$"):
            reader("none")

    def test_a_folder(self, tmp_path: Path, reader: Reader) -> None:
        with pytest.raises(FileError, match=f"^'{tmp_path}' is a folder, not a file$"):
            reader(tmp_path)

    def test_a_file_below_a_file(self, file: Path, reader: Reader) -> None:
        file.touch()
        with pytest.raises(FileError, match=r"cannot be read: Not a directory$"):
            reader(file / "x")

    def test_a_name_that_no_file_can_have(self, reader: Reader) -> None:
        with pytest.raises(FileError, match="cannot be read"):
            reader("a\0b")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_without_permission(self, file: Path, reader: Reader) -> None:
        file.touch(mode=0)
        with pytest.raises(FileError, match=r"cannot be read: Permission denied$"):
            reader(file)


@pytest.mark.parametrize("content", [b"", b" \n\t", b"\xef\xbb\xbf"])
def test_an_empty_connector_file_is_an_error(file: Path, content: bytes) -> None:
    assert error(file, content) == "The connector file '<file>' is empty"


class TestWorkerFile:
    def test_it_is_java_properties(self, file: Path) -> None:
        file.write_text("bootstrap.servers=localhost:9092\nplugin.path=/a,\\\n  /b\nöl=ü\n")
        assert read_properties(file) == {"bootstrap.servers": "localhost:9092", "plugin.path": "/a,/b", "öl": "ü"}

    def test_it_may_be_empty(self, file: Path) -> None:
        file.touch()
        assert read_properties(file) == {}

    def test_keys_given_twice_are_named_once_each(self, file: Path) -> None:
        file.write_text("a=1\nb=1\na=2\na=3\n")
        warnings: list[str] = []
        assert read_properties(file, warnings) == {"a": "3", "b": "1"}
        assert warnings == [f"'{file}' gives a more than once: the last value counts"]


# Whatever a configuration holds, each format carries it unchanged.
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
CONFIGS = st.builds(lambda config, name: {**config, "name": name}, st.dictionaries(TEXT, TEXT, max_size=6), TEXT)


def read_text(text: str, encoding: str = "utf-8") -> ConnectorFile:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "connector")
        path.write_bytes(text.encode(encoding))
        return read_connector(path)


@pytest.mark.kip(980, FLAT)
@settings(deadline=None)
@given(CONFIGS, st.booleans())
def test_any_configuration_survives_flat_json(config: dict[str, str], ascii_only: bool) -> None:
    assert read_text(json.dumps(config, ensure_ascii=ascii_only)) == ConnectorFile(config["name"], config)


@pytest.mark.kip(980, REQUEST)
@settings(deadline=None)
@given(CONFIGS, st.booleans(), st.sampled_from(["RUNNING", "PAUSED", "STOPPED"]))
def test_any_configuration_survives_a_create_request(config: dict[str, str], repeat_name: bool, state: str) -> None:
    inner = config if repeat_name else {key: value for key, value in config.items() if key != "name"}
    found = read_text(json.dumps({"initial_state": state, "config": inner, "name": config["name"]}))
    assert (found.name, found.config) == (config["name"], config)
    assert found.initial_state is not None


@settings(deadline=None)
@given(CONFIGS, st.booleans())
def test_any_configuration_survives_java_properties(config: dict[str, str], ascii_only: bool) -> None:
    text = javaproperties.dumps(config, timestamp=False, ensure_ascii=ascii_only)
    assert read_text("#\n" + text) == ConnectorFile(config["name"], config)


@settings(deadline=None, max_examples=3 * settings().max_examples)
@given(st.binary(max_size=60) | TEXT.map(str.encode) | TEXT.map(lambda text: ('{"name":' + text).encode()))
@example(b"[" * 50_000)
@example(b'{"name": ' + b"9" * 10_000 + b"}")
def test_arbitrary_bytes_give_a_connector_or_a_file_error_and_nothing_else(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "connector")
        path.write_bytes(data)
        for reader in (read_connector, read_properties):
            with suppress(FileError):
                reader(path)
