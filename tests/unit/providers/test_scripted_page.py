"""docs/scripted.md, played."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from sidecar.model.failures import ProviderFailed
from sidecar.providers import script_file
from sidecar.providers.base import ToolCall
from sidecar.providers.script_format import Script, ScriptedFault, ScriptedReply, ScriptedStep
from sidecar.providers.scripted import ScriptedProvider

from .conftest import ask, text
from .test_script_progress import answered

PAGE = (Path(__file__).parents[3] / "docs" / "scripted.md").read_text("utf-8")
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
WHOLE, STEPS = EXAMPLES[0], EXAMPLES[1:]


@pytest.fixture
def provider(tmp_path: Path) -> ScriptedProvider:
    (tmp_path / "replies.json").write_text(WHOLE)
    return ScriptedProvider(str(tmp_path / "replies.json"))


async def test_the_example_calls_a_tool_and_goes_on(provider: ScriptedProvider) -> None:
    chunks, first = await ask(provider, "The weather?")
    rest, second = await ask(provider, "The weather?", *answered("scripted-1"))

    assert (chunks[-1], first.stop) == (ToolCall("scripted-1", "look", {"where": "window"}), "tool_calls")
    assert ("".join(getattr(c, "text", "") for c in rest), second.usage.cached) == ("It rains.", 100)


async def test_the_example_works_at_the_second_try(provider: ScriptedProvider) -> None:
    with pytest.raises(ProviderFailed) as caught:
        await ask(provider, "Try it")

    assert (caught.value.reason, caught.value.retryable, caught.value.retry_after_ms) == (
        "overloaded",
        True,
        200,
    )
    assert await text(provider, "Try it") == "Now it worked."


async def test_the_example_is_long_and_cut_short(provider: ScriptedProvider) -> None:
    chunks, completion = await ask(provider, "A long one")

    assert (len(chunks), completion.stop) == (8000, "max_tokens")


async def test_the_example_greets_twice_and_echoes_then(provider: ScriptedProvider) -> None:
    prompts = ["Hi", "Hi", "Hi there"]

    assert [await text(provider, prompt) for prompt in prompts] == [
        "Hello!",
        "Hello again, and good-bye.",
        "Hi there",
    ]


@pytest.mark.parametrize("example", STEPS)
def test_every_step_on_the_page_can_be_played(example: str) -> None:
    msgspec.convert(json.loads(example), ScriptedStep)


def test_the_page_has_an_example_of_every_kind_of_step() -> None:
    shown = {key for example in STEPS for key in json.loads(example)}

    assert shown | {"thought"} == set(ScriptedStep.__struct_encode_fields__)


def test_the_page_names_every_field() -> None:
    names = {
        field for part in (Script, ScriptedReply, ScriptedFault) for field in part.__struct_encode_fields__
    }

    assert [name for name in sorted(names) if f"`{name}`" not in PAGE and f'"{name}"' not in PAGE] == []


def test_the_toml_on_the_page_is_a_script(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(PAGE.split("```toml\n")[1].split("```")[0])

    script = script_file.load(str(tmp_path / "s.toml"))

    assert ([reply.match for reply in script.replies], script.on_exhausted) == (["weather", None], "repeat")
