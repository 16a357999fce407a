"""IcebergTable: a table of a catalog as it was when it was loaded, asked and changed with pyiceberg.

The change is one commit, made to what was loaded or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import apply_name_mapping

from headgate.api import ConnectError
from headgate.connectors.durable import unwritable
from headgate.connectors.spark.sink.ddl import type_name
from headgate.connectors.spark.sink.iceberg_files import columns_of

_MAPPING: Final = TableProperties.DEFAULT_NAME_MAPPING
# One manifest for each commit would slow down readers. Others set it by default, pyiceberg does not.
_CREATED: Final = {TableProperties.MANIFEST_MERGE_ENABLED: "true"}


class Outdated(Exception):
    """Somebody has changed the table since it was loaded, and nothing was done."""


class _OneTry(Transaction):
    """Which sees whether it was made after all when it is told that it was not, but is not made to another snapshot."""

    def _rebuild_snapshot_updates(self) -> None:
        raise CommitFailedException("The table was changed")


class IcebergTable:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._changes = _OneTry(table)
        self.io = table.io

    @property
    def metadata(self) -> TableMetadata:
        """With the columns that were added."""
        return self._changes.table_metadata

    @property
    def columns(self) -> pa.Schema:
        """Raises ConnectError."""
        return columns_of(self.metadata.schema())

    @property
    def partitioned_by(self) -> tuple[str, ...]:
        """As Iceberg names the fields: those of columns as they are have the columns' names."""
        return tuple(field.name for field in self._table.spec().fields)

    @property
    def data_folder(self) -> str:
        given = self._table.properties.get(TableProperties.WRITE_DATA_PATH) or f"{self._table.location()}/data"
        return given.rstrip("/")

    def note(self, key: str) -> str | None:
        """The newest that a commit has left under this key, as far as the table's history goes back; beyond that, the
        last one of all."""
        snapshots = {each.snapshot_id: each for each in self._table.metadata.snapshots}
        snapshot = self._table.current_snapshot()
        while snapshot is not None:
            if snapshot.summary is not None and snapshot.summary[key]:
                return str(snapshot.summary[key])
            snapshot = snapshots.get(snapshot.parent_snapshot_id or 0)
        return self._table.properties.get(key)

    def add_columns(self, wanted: pa.Schema) -> None:
        """Those that are not there yet, also within others; none that is there changes."""
        there = {field.name: field for field in self.columns}
        # Rows of an upsert may be null wherever they are no keys, and columns shall not become so.
        asked = [
            each.with_nullable(there[each.name].nullable) if each.name in there else each.with_nullable(True)
            for each in wanted
        ]
        if any(
            type_name(there[each.name].type) != type_name(each.type) if each.name in there else True for each in asked
        ):
            with self._changes.update_schema() as update:
                update.union_by_name(pa.schema(asked))

    def commit(self, added: Sequence[DataFile], replaced: Sequence[DataFile], notes: Mapping[str, str]) -> None:
        """Raises Outdated; and others, after which only the table knows whether it was done."""
        changes = self._changes
        properties = {**self._mapped(), **notes}
        if properties:
            changes.set_properties(properties)
        update = changes.update_snapshot(snapshot_properties=dict(notes))
        with update.overwrite() if replaced else update.merge_append() as snapshot:
            if replaced:
                snapshot.delete_by_predicate(AlwaysTrue())  # in whatever manifests they are
            for file in replaced:
                snapshot.delete_data_file(file)
            for file in added:
                snapshot.append_data_file(file)
        try:
            changes.commit_transaction()
        except CommitFailedException as error:
            raise Outdated from error

    def _mapped(self) -> Mapping[str, str]:
        """What the table still needs, so that readers find columns in files that have no ids. Raises ConnectError."""
        metadata = self.metadata
        mapping, schema = metadata.name_mapping(), metadata.schema()
        if mapping is None:
            return {_MAPPING: schema.name_mapping.model_dump_json()}
        try:
            found = apply_name_mapping(schema, mapping)
        except ValueError as error:
            raise ConnectError(
                f"{_MAPPING} of the table lacks a column, whose values nobody would see: {error}"
            ) from error
        for name in schema.column_names:
            if found.find_field(name).field_id != schema.find_field(name).field_id:
                raise ConnectError(
                    f"{_MAPPING} of the table has another column as {name}, so nobody would see its values"
                )
        return {}


class IcebergCatalog:
    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self._catalog: Catalog = load_catalog(name, **properties)

    def load(self, name: str) -> IcebergTable | None:
        """None: there is none."""
        try:
            return IcebergTable(self._catalog.load_table(name))
        except NoSuchTableError:
            return None

    def create(self, name: str, columns: pa.Schema, partition_by: Iterable[str]) -> None:
        """Unless another has just done so."""
        namespace = name.rpartition(".")[0]
        if not self._catalog.namespace_exists(namespace):
            self._catalog.create_namespace_if_not_exists(namespace)
        try:
            creation = self._catalog.create_table_transaction(name, columns, properties=_CREATED)
            with creation, creation.update_spec() as update:
                for column in partition_by:
                    update.add_identity(column)
        except (TableAlreadyExistsError, CommitFailedException):
            if self._catalog.table_exists(name):
                return
            raise


@contextmanager
def asked(what: str) -> Iterator[None]:
    """What goes wrong with a catalog or its files meanwhile, said so that users understand it."""
    try:
        yield
    except (ConnectError, Outdated):
        raise
    except Exception as error:  # each kind of catalog and store has its own
        reason = next((line for line in str(error).splitlines() if line.strip()), "")
        raise unwritable(what, f"{type(error).__name__}: {reason}".rstrip(": ")) from error
