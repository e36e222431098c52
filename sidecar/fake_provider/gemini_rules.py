"""The rules of Gemini's generateContent: fields, alternating roles, parts, calls and responses, signatures."""

from __future__ import annotations

import re
from typing import Any

from .base import Vendor, as_list, as_object
from .names import names
from .rules import image_bytes
from .signing import unseal
from .values import Json, Model, Rejected

PARAMETERS = names(
    "model contents tools toolConfig safetySettings systemInstruction generationConfig cachedContent store",
    "serviceTier",
)
GENERATION = names(
    "stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount",
    "maxOutputTokens",
    "temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs",
    "enableEnhancedCivicAnswers speechConfig thinkingConfig imageConfig mediaResolution",
)
SCHEMA = names(
    "type format title description nullable enum maxItems minItems properties required minProperties maxProperties",
    "minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum",
)
_DATA = names(
    "text inlineData functionCall functionResponse fileData executableCode codeExecutionResult",
)
_ASIDE = frozenset({"thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution"})
_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$")
_MEDIA_IN_RESULTS = re.compile(r"^gemini-(?:[3-9]|\d\d)")
SKIPPERS = ("context_engineering_is_the_way_to_go", "skip_thought_signature_validator")
"""What Google accepts in place of a signature, for history that came from elsewhere."""


def check_body(body: Json, name: str, vendor: Vendor) -> Model:
    """Check everything but the size. Returns the model."""
    model = vendor.model(name)
    if model is None:
        raise Rejected(
            f"models/{name} is not found for API version v1beta, or is not supported for generateContent. Call"
            " ListModels to see the list of available models and their supported methods.",
            status=404,
            reason="model",
        )
    _check_fields(body, PARAMETERS, "")
    _check_fields(as_object(body.get("generationConfig")), GENERATION, " at 'generation_config'")
    _check_tools(body)
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Rejected("* GenerateContentRequest.contents: contents is not specified\n")
    for at, content in enumerate(contents):
        _check_content(content, at, _MEDIA_IN_RESULTS.match(model.id) is not None)
    _check_order(contents)
    _check_signatures(contents)
    return model


def _check_fields(value: Json, allowed: frozenset[str], where: str) -> None:
    for name in value:
        if name not in allowed:
            raise Rejected(f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')


def _check_tools(body: Json) -> None:
    for at, tool in enumerate(as_list(body.get("tools"))):
        for index, function in enumerate(as_list(as_object(tool).get("functionDeclarations"))):
            where = f"tools[{at}].function_declarations[{index}]"
            name = as_object(function).get("name")
            if not isinstance(name, str) or not _NAME.match(name):
                raise Rejected(
                    f"* GenerateContentRequest.{where}.name: Invalid function name. Must start with a letter or an"
                    " underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or"
                    " dashes (-), with a maximum length of 64.\n"
                )
            schema = function.get("parameters")
            if schema is not None:
                _check_schema(schema, f"{where}.parameters")
                if str(as_object(schema).get("type")).lower() != "object":
                    raise Rejected(
                        f"* GenerateContentRequest.{where}.parameters: schema type must be OBJECT\n"
                    )


def _check_schema(schema: Any, where: str) -> None:
    """Gemini's `parameters` support a subset of JSON Schema; `parametersJsonSchema` accepts all of it."""
    schema = as_object(schema)
    _check_fields(schema, SCHEMA, f" at '{where}'")
    for name, each in as_object(schema.get("properties")).items():
        _check_schema(each, f"{where}.properties[{name}].value")
    if "items" in schema:
        _check_schema(schema["items"], f"{where}.items")
    for at, each in enumerate(as_list(schema.get("anyOf"))):
        _check_schema(each, f"{where}.any_of[{at}]")


def _check_content(content: Any, at: int, media_in_results: bool) -> None:
    where = f"contents[{at}]"
    _check_fields(as_object(content), frozenset({"role", "parts"}), f" at '{where}'")
    if as_object(content).get("role") not in ("user", "model"):
        raise Rejected("Please use a valid role: user, model.")
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        raise Rejected(f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.\n")
    for index, part in enumerate(parts):
        _check_part(part, f"{where}.parts[{index}]", media_in_results)


def _check_part(part: Any, where: str, media_in_results: bool) -> None:
    part = as_object(part)
    _check_fields(part, _DATA | _ASIDE, f" at '{where}'")
    filled = [name for name in _DATA if name in part and part[name] not in ("", None)]
    if len(filled) != 1:
        raise Rejected(
            f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field\n"
        )
    if filled == ["inlineData"]:
        _check_data(as_object(part["inlineData"]), where)
    for name in ("functionCall", "functionResponse"):
        if filled == [name] and not as_object(part[name]).get("name"):
            raise Rejected(f"* GenerateContentRequest.{where}.{_snake(name)}.name: Name cannot be empty.\n")
    if filled == ["functionResponse"] and not isinstance(part["functionResponse"].get("response"), dict):
        raise Rejected(
            f"Invalid value at '{where}.function_response.response' (type.googleapis.com/google.protobuf.Struct)"
        )
    if filled == ["functionResponse"]:
        _check_response_parts(part["functionResponse"], where, media_in_results)
    if filled == ["functionCall"] and not isinstance(part["functionCall"].get("args", {}), dict):
        raise Rejected(
            f"Invalid value at '{where}.function_call.args' (type.googleapis.com/google.protobuf.Struct)"
        )


def _check_data(blob: Json, where: str) -> None:
    kind = str(blob.get("mimeType", ""))
    if kind == "image/gif":
        raise Rejected(f"Unsupported MIME type: {kind}")
    if not kind.startswith("audio/"):
        try:
            image_bytes(str(blob.get("data", "")), kind)
        except ValueError:
            raise Rejected("Unable to process input image. Please retry or report in the forum.") from None
    if not kind:
        raise Rejected(f"* GenerateContentRequest.{where}.inline_data.mime_type: must not be empty\n")


def _check_response_parts(response: Json, where: str, media_in_results: bool) -> None:
    """Models since Gemini 3 take images, but no audio, within a function response."""
    parts = as_list(response.get("parts"))
    if parts and not media_in_results:
        raise Rejected("Multimodal function responses are not supported for this model.")
    for index, part in enumerate(parts):
        inner = f"{where}.function_response.parts[{index}]"
        _check_fields(as_object(part), frozenset({"inlineData", "fileData"}), f" at '{inner}'")
        blob = as_object(as_object(part).get("inlineData"))
        if str(blob.get("mimeType", "")).startswith("audio/"):
            raise Rejected(f"Unsupported MIME type: {blob['mimeType']}")
        _check_data(blob, inner)


def _check_order(contents: list[Json]) -> None:
    """User and model alternate, the user first and last; calls are answered in the very next content."""
    if contents[0]["role"] != "user":
        raise Rejected("Please ensure that multiturn requests begin with a user turn.")
    if contents[-1]["role"] != "user":
        raise Rejected("Please ensure that multiturn requests end with a user turn or a function response.")
    calls: list[Json] = []
    for at, content in enumerate(contents):
        if at and contents[at - 1]["role"] == content["role"]:
            raise Rejected("Please ensure that multiturn requests alternate between user and model.")
        responses = [part["functionResponse"] for part in content["parts"] if part.get("functionResponse")]
        if len(responses) != len(calls):
            raise Rejected(
                "Please ensure that the number of function response parts is equal to the number of function call parts"
                " of the function call turn."
            )
        for call, response in zip(calls, responses, strict=True):
            same_id = not (call.get("id") and response.get("id")) or call["id"] == response["id"]
            if call["name"] != response["name"] or not same_id:
                raise Rejected(
                    "Please ensure that function response turn comes immediately after a function call turn, and that"
                    f" the response for `{response['name']}` matches its call."
                )
        calls = [part["functionCall"] for part in content["parts"] if part.get("functionCall")]


def _check_signatures(contents: list[Json]) -> None:
    """In the current turn, the first call of each step must bring its signature back."""
    asked = max((at for at, each in enumerate(contents) if _is_prompt(each)), default=0)
    for at in range(asked + 1, len(contents)):
        calls = [part for part in contents[at]["parts"] if part.get("functionCall")]
        if not calls:
            continue
        signature = calls[0].get("thoughtSignature")
        if not signature:
            raise Rejected(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work"
                " correctly, and missing thought_signature may lead to degraded model performance. Additional data,"
                f" function call `default_api:{calls[0]['functionCall']['name']}`, position {at + 1}. Please refer to"
                " https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )
        if signature not in SKIPPERS and unseal(str(signature)) is None:
            raise Rejected("Thought signature is not valid.")


def _is_prompt(content: Json) -> bool:
    return content["role"] == "user" and not any(part.get("functionResponse") for part in content["parts"])


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)
