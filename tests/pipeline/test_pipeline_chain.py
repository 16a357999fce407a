"""Chain: plugins found by name, configured, and closed."""

from __future__ import annotations

import pytest
from pipeline_plugins import TEXT, Append, Starts, chain_spec, plugin, step

from headgate.api import ConfigError, ConnectError
from headgate.model import ChainSpec, PluginRef, PluginSpec
from headgate.pipeline.chain import Chain, load


class Outer:
    class Inner:
        pass


def test_a_class_is_found_by_module_and_qualified_name() -> None:
    assert load(PluginRef(__name__, "Outer.Inner")) is Outer.Inner


@pytest.mark.parametrize("ref", [PluginRef("no.such.module", "X"), PluginRef("headgate.pipeline.chain", "NoSuchClass")])
def test_a_class_that_is_not_here_is_named(ref: PluginRef) -> None:
    with pytest.raises(ConnectError, match=f"Plugin {ref} cannot be imported here"):
        load(ref)


def test_a_class_of_another_kind_is_refused() -> None:
    with pytest.raises(ConnectError, match=r"pipeline_plugins\.Append is not a Converter"):
        Chain.build(chain_spec(value=plugin(Append)))


@pytest.mark.parametrize(
    "spec",
    [
        chain_spec(step(Append)),
        chain_spec(step(Append, {"suffix": "x"}, only_if=plugin(Starts))),
        chain_spec(key=PluginSpec(TEXT.ref, {"converter.encoding": "zz"})),
    ],
)
def test_a_wrong_configuration_is_found_when_the_chain_is_built(spec: ChainSpec) -> None:
    with pytest.raises(ConfigError):
        Chain.build(spec)


def test_closing_the_chain_closes_its_transforms() -> None:
    Append.closed.clear()
    Chain.build(chain_spec(step(Append, {"suffix": "1"}), step(Append, {"suffix": "2"}))).close()
    assert Append.closed == ["1", "2"]
