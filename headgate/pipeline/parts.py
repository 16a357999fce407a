"""Parts: a chain cut at its statements. What one part gives, the statement at its end gets, and then the next part."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headgate.api import ConnectError
from headgate.model import ChainSpec, StepSpec
from headgate.pipeline.chain import load
from headgate.pipeline.transforms.sql import Sql


@dataclass(frozen=True, slots=True)
class Part:
    spec: ChainSpec
    """Its steps, the last of which is the statement, if it ends in one."""
    alias: str = ""
    statement: Sql | None = None


def parts(spec: ChainSpec) -> list[Part]:
    """At least one; the last has no statement. Raises ConnectError for a statement that cannot be one."""
    found: list[Part] = []
    steps: list[StepSpec] = []
    for step in spec.steps:
        steps.append(step)
        statement = _statement(step)
        if statement is not None:
            found.append(Part(replace(spec, steps=tuple(steps)), step.alias, statement))
            steps = []
    return [*found, Part(replace(spec, steps=tuple(steps)))]


def _statement(step: StepSpec) -> Sql | None:
    cls = load(step.transform.ref)
    if not (isinstance(cls, type) and issubclass(cls, Sql)):
        return None
    if step.predicate is not None:
        raise ConnectError(f"Transform {step.alias} is a statement over batches: no predicate can decide about it")
    made = cls()
    made.configure(step.transform.config)
    return made
