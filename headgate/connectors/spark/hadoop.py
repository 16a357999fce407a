"""HadoopFiles: folders that Hadoop's file systems reach, by way of Spark's JVM. It ends with that JVM."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HADOOP: Final = "org.apache.hadoop.fs"
_MISSING: Final = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")
_TAKEN: Final = (f"{_HADOOP}.FileAlreadyExistsException", "java.nio.file.FileAlreadyExistsException")
_STATUS: Final = re.compile(
    r"Status\{path=(.*?); isDirectory=(true|false);(?: length=(\d+);)?.*?modification_time=(\d+);", re.DOTALL
)
"""As Hadoop shows one to people, in all file systems."""
_WITHIN: Final = "; isDirectory="


class ListedFile(NamedTuple):
    name: str
    folder: bool
    size: int
    modified: int
    """Milliseconds since 1970."""


class HadoopFiles:
    """Fits `sink.file_store.FileStore`. Paths are URIs of one file system. Raises OSError; FileExistsError and
    FileNotFoundError among it."""

    def __init__(self, session: SparkSession, uri: str) -> None:
        self._jvm: Any = session._jvm
        self._gateway: Any = session.sparkContext._gateway
        self._settings: Any = session._jsparkSession.sessionState().newHadoopConf()
        with _told():
            self._system = self._path(uri).getFileSystem(self._settings)

    def listed(self, folder: str) -> list[ListedFile]:
        """In one call, however many there are: one for each would take seconds."""
        with _told():
            statuses = self._system.listStatus(self._path(folder))
            found = _parsed(self._jvm.scala.runtime.ScalaRunTime.stringOf(statuses))
            return found if len(found) == len(statuses) else [_asked(each) for each in statuses]

    # --- what a ledger needs ------------------------------------------------------------------------------------------

    def names(self, folder: str) -> list[str]:
        try:
            return [each.name for each in self.listed(folder)]
        except FileNotFoundError:
            return []

    def files(self, folder: str) -> Iterator[str]:
        for each in self.listed(folder):
            if each.folder:
                yield from (f"{each.name}/{below}" for below in self.files(f"{folder}/{each.name}"))
            else:
                yield each.name

    def exists(self, path: str) -> bool:
        with _told():
            return bool(self._system.exists(self._path(path)))

    def read(self, path: str) -> bytes:
        with _told():
            stream = self._system.open(self._path(path))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, path: str, data: bytes) -> None:
        with _told():
            stream = self._system.create(self._path(path), False)
            try:
                stream.write(bytearray(data))
                stream.hsync()
            finally:
                stream.close()

    def rename(self, old: str, new: str) -> None:
        with _told():
            self._system.mkdirs(self._path(new).getParent())
            # FileSystem.rename would move it into a folder of that name.
            rename = getattr(self._jvm, f"{_HADOOP}.Options$Rename")
            ways = self._gateway.new_array(rename, 1)
            ways[0] = rename.NONE
            context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(self._system.getUri(), self._settings)
            context.rename(self._path(old), self._path(new), ways)

    def remove(self, folder: str) -> None:
        with _told():
            self._system.delete(self._path(folder), True)

    def sync(self, folder: str) -> None:
        """What was written and closed is there: the file system sees to that."""

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


def _parsed(text: str) -> list[ListedFile]:
    found = [
        ListedFile(path.rsplit("/", 1)[1], folder == "true", int(size or 0), int(modified))
        for path, folder, size, modified in _STATUS.findall(text)
    ]
    return found if text.count(_WITHIN) == len(found) else []  # a file may have any name


def _asked(status: Any) -> ListedFile:
    return ListedFile(
        status.getPath().getName(), status.isDirectory(), status.getLen(), status.getModificationTime()
    )  # fmt: skip


@contextmanager
def _told() -> Iterator[None]:
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        java = error.java_exception
        kind, said = java.getClass().getName(), java.getMessage() or ""
        first = (said or kind).splitlines()[0]
        if kind in _MISSING:
            raise FileNotFoundError(errno.ENOENT, first) from error
        if kind in _TAKEN:
            raise FileExistsError(errno.EEXIST, first) from error
        raise OSError(errno.EIO, f"{kind.rsplit('.', 1)[-1]}: {first}") from error
