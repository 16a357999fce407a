"""Iceberg for the worker of the tests: a catalog in SQLite, its tables in a folder."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog

CATALOG = "lake"
TABLE = "shop.orders"
"""The one that connectors of that worker may write to."""


def iceberg_settings(folder: Path) -> dict[str, str]:
    """For the worker file."""
    return {
        "headgate.tables": f"{CATALOG}.{TABLE}",
        **{f"spark.sql.catalog.{CATALOG}.{key}": value for key, value in properties(folder).items()},
    }


def properties(folder: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/ware house"}


def catalog_in(folder: Path) -> Catalog:
    return load_catalog(CATALOG, **properties(folder))
