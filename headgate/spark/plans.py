"""Plans: whether a statement is made of nothing but what is known to do no harm.

Asked twice: of what Spark's parser says, because analysis reads files and evaluates functions already; and of what
analysis made of it, before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from headgate.api.errors import ConnectError
from headgate.api.reach import Reach, ReachKind
from headgate.pipeline.sql import allowed
from headgate.pipeline.sql.statement import TABLE
from headgate.pipeline.transforms.sql import STATEMENT
from headgate.sandbox import Sandbox

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST: Final = 3000
"""Each part takes a few calls of the JVM."""
_WITH_PLAN: Final = "org.apache.spark.sql.catalyst.expressions.PlanExpression"
"""Subqueries, and tables that functions are given."""
_OF_OTHERS: Final = '"type":"udt"'


def check_text(session: SparkSession, text: str, sandbox: Sandbox) -> None:
    """What the parser makes of it; nothing is analysed, and nothing runs. Raises ConnectError."""
    java: Any = session._jsparkSession
    _check(session.sparkContext._gateway, java.sessionState().sqlParser().parsePlan(text), sandbox)


def check_frame(frame: DataFrame, sandbox: Sandbox) -> None:
    """What analysis made of a statement whose text was checked. Raises ConnectError."""
    java: Any = frame._jdf
    _check(frame.sparkSession.sparkContext._gateway, java.queryExecution().analyzed(), sandbox)
    if _OF_OTHERS in java.schema().json():
        raise ConnectError("Its rows have a type whose code is not Spark's own")


def _check(gateway: Any, plan: Any, sandbox: Sandbox) -> None:
    from py4j.java_gateway import is_instance_of

    waiting: list[tuple[Any, frozenset[str]]] = [(plan, frozenset({TABLE}))]
    for _ in range(_MOST):
        if not waiting:
            return
        part, known = waiting.pop()
        name = part.getClass().getName().removesuffix("$")
        if name in allowed.NODES or (name in allowed.SOURCES and sandbox.other_tables):
            waiting += _below_node(part, name, known, sandbox)
        elif name in allowed.UNRESOLVED or (name.startswith(allowed.EXPRESSIONS) and name not in allowed.FOREIGN):
            _check_function(part, name)
            waiting += [(child, known) for child in _each(part.children())]
            if is_instance_of(gateway, part, _WITH_PLAN):
                waiting.append((part.plan(), known))
        else:
            reason = f"{_simple(name)} is none of what is known to do no harm"
            raise ConnectError(f"It must be a query, without any effect: {reason}")
    raise ConnectError(f"It is too long: it has more than {_MOST} parts")


def _below_node(node: Any, name: str, known: frozenset[str], sandbox: Sandbox) -> Iterator[tuple[Any, frozenset[str]]]:
    """What the node is made of, with the names that mean a query of the same statement there."""
    if name == allowed.VIEW:
        return  # `records`, or what the worker file names: the relation was checked, and its inside is not the user's
    if name == allowed.RELATION:
        _check_relation(node, known, sandbox)
    elif name == allowed.TABLE_FUNCTION:
        _require_function(node.name().mkString("."))
    elif name == allowed.WINDOWS:
        yield from ((each, known) for each in _each(node.windowDefinitions().values().toSeq()))
    elif name == allowed.WITH:
        for query in _each(node.innerChildren()):
            yield query, known
            known |= {query.alias().lower()}
    yield from ((expression, known) for expression in _each(node.expressions()))
    yield from ((child, known) for child in _each(node.children()))


def _check_relation(node: Any, known: frozenset[str], sandbox: Sandbox) -> None:
    parts = node.multipartIdentifier()
    name = parts.mkString(".")
    if not node.options().isEmpty() or node.isStreaming():
        raise ConnectError(f"{name} can only be read as it is: without options, and not as a stream")
    if parts.size() > 1 or name.lower() not in known:
        problem = sandbox.problem(Reach(ReachKind.TABLE, name, STATEMENT))
        if problem is not None:
            raise ConnectError(problem)


def _check_function(part: Any, name: str) -> None:
    if name == allowed.FUNCTION:
        function = part.nameParts().mkString(".").lower()
        _require_function(function)
        if function in allowed.TYPED:
            _check_type(function, list(_each(part.arguments())))
    elif name == allowed.GENERATOR:
        _require_function(part.name().unquotedString())


def _check_type(function: str, arguments: list[Any]) -> None:
    """Types may be JSON, too: there one may name a class to be made, or bring its own to be unpickled."""
    for given in arguments[allowed.TYPED[function] :][:1]:
        name = given.getClass().getName()
        plain = name == allowed.LITERAL and "{" not in given.toString()
        found = name == allowed.FUNCTION and given.nameParts().mkString(".").lower() in allowed.TYPES
        if not plain and not found:
            raise ConnectError(f"The type that {function} is given must be a text like 'a INT, b STRING'")


def _require_function(name: str) -> None:
    if name.lower() not in allowed.FUNCTIONS:
        raise ConnectError(f"The function {name} cannot be used here: it is none of those that are known to do no harm")


def _each(found: Any) -> Iterator[Any]:
    """Of a Seq of Scala's."""
    return (found.apply(place) for place in range(found.size()))


def _simple(name: str) -> str:
    return name.rpartition(".")[2]
