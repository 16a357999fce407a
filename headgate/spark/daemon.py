"""The process that Spark forks its Python workers from, on this machine, with what they all need imported already.

So they begin sooner, and share the memory that it takes.
"""

from __future__ import annotations

import gc

import pyarrow.compute  # noqa: F401 - for workers
from pyspark.daemon import manager

import headgate.kafka.fetch.fetcher
import headgate.pipeline.blob
import headgate.spark.range_part
import headgate.spark.resident  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # else the first collection of each worker would copy all of it
    manager()
