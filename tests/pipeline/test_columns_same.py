"""By columns or record by record: a sink gets the same, whatever the chain and the batch."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from sink_strategies import COLUMNS, GUARDED, POLICIES, RETRIES, THE_THREE, batches, run, sink

from headgate.api import Form
from headgate.model import StepSpec
from headgate.pipeline.tolerance import Retry


@settings(deadline=None, max_examples=2 * settings().max_examples)
@given(batches(), st.lists(THE_THREE, max_size=3), st.sampled_from(Form), COLUMNS, POLICIES)
def test_the_three_give_the_same_by_columns(
    batch: pa.Table, steps: list[StepSpec], form: Form, columns: Sequence[str], errors: dict[str, str]
) -> None:
    chain = sink(*steps, form=form, columns=columns, errors=errors)
    assert chain._plan is not None
    assert run(chain, batch, by_columns=True) == run(chain, batch, by_columns=False)


@settings(deadline=None, max_examples=2 * settings().max_examples)
@given(batches(), st.lists(GUARDED, max_size=3), st.sampled_from(Form), COLUMNS, POLICIES, RETRIES)
def test_every_chain_gives_the_same_by_columns(
    batch: pa.Table,
    steps: list[StepSpec],
    form: Form,
    columns: Sequence[str],
    errors: dict[str, str],
    retry: Retry | None,
) -> None:
    chain = sink(*steps, form=form, columns=columns, errors=errors)
    assert run(chain, batch, by_columns=True, retry=retry) == run(chain, batch, by_columns=False, retry=retry)
