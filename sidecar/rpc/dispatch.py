"""Dispatches a call to its handler and returns the result. The one place where an exception becomes an error object.

jsonrpcserver finds the method and calls it. Messages were validated before (`sidecar_protocol.jsonrpc`), so its own
parsing and validation are not used. Its package initialiser imports jsonschema and http.server, and its dependency
oslash a dozen monads: a tenth of a second for code that is not used here. So only the dispatcher is loaded.
"""

from __future__ import annotations

import importlib.util
import logging
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import anyio
import msgspec
from sidecar_protocol.errors import CODES, RpcError
from sidecar_protocol.peer import Call

from ..model.failures import Failure, out_of_memory
from ..model.limits import check_text
from ..system.lazy import lazy_module
from ..text.suggest import did_you_mean

if TYPE_CHECKING:
    from ..text import expected
else:
    expected = lazy_module("sidecar.text.expected")

logger = logging.getLogger(__name__)

MAX_LOGGED = 80
"""Characters of a name from the client in a line of the log."""

_ADDRESS = {"chat": "chatId", "session": "sessionId", "turn": "turnId"}
"""Fields of the log, and the parameters they come from."""

Handler = Callable[[Call, Any], Awaitable[Any]]
ErrorContext = Callable[[Any], Mapping[str, object]]
Recover = Callable[[Failure], Awaitable[bool]]

T = TypeVar("T")

ATTEMPTS = 3
"""How often a call is served at most: several processes may repair one database one after the other."""


class MethodRow(Protocol):
    """A method of a dialect, as far as dispatch must know it."""

    @property
    def name(self) -> str: ...
    @property
    def params(self) -> type[msgspec.Struct]: ...


Row = TypeVar("Row", bound=MethodRow)


async def run_to_end(work: Awaitable[T]) -> T:
    """Run what changes something: a cancelled call is answered as such, but the change is whole or was never begun."""
    with anyio.CancelScope(shield=True):
        result = await work
    return result  # noqa: RET504  to mypy, the scope might swallow a return in it


class Dispatcher(Generic[Row]):
    """Serves the methods of a table with the given handlers.

    `admit` may refuse a call before its handler; `context` returns what an error's data carries besides the failure.
    `recover` waits until a failure is mended that wrote nothing, and returns whether to serve the call again.
    """

    def __init__(
        self,
        table: Mapping[str, Row],
        handlers: Mapping[str, Handler],
        admit: Callable[[Row], None],
        context: ErrorContext,
        recover: Recover | None = None,
    ) -> None:
        self._library = _load_dispatcher()
        self._check_allowed = admit
        self._context = context
        self._recover = recover
        self._methods = {name: self._method(table[name], handler) for name, handler in handlers.items()}

    async def serve(self, call: Call) -> Any:
        """Serve a call: return its result or raise RpcError."""
        began = time.monotonic()
        try:
            result = await self._run(call)
        except RpcError as error:
            _log_request(call, began, (error.data or {}).get("name") or error.code)
            raise
        _log_request(call, began, None)
        return result

    async def _run(self, call: Call) -> Any:
        if call.method not in self._methods:
            raise unknown_method(call.method, self._methods)
        # By this and not by its `dispatch`, which parses and encodes the frame once more, and puts the text
        # of an unexpected exception on the wire.
        request = self._library.create_request({"method": call.method, "params": call.params, "id": call.id})
        _, outcome = await self._library.dispatch_request(self._methods, call, request)
        if isinstance(outcome, self._library.Left):
            error = outcome._error
            raise RpcError(error.code, error.message, error.data if isinstance(error.data, dict) else None)
        return outcome._value.result

    def _method(self, method: Row, handler: Handler) -> Callable[..., Awaitable[Any]]:
        library = self._library

        async def run_handler(call: Call, /, **params: Any) -> Any:
            decoded: Any = None
            try:
                self._check_allowed(method)
                decoded = decode_params(method, params)
                result = await self._attempt(handler, call, decoded)
            except RpcError as error:
                raise library.JsonRpcError(error.code, error.message, error.data) from error
            except (Failure, MemoryError) as error:
                failure = error if isinstance(error, Failure) else out_of_memory()
                described = to_error(failure, **self._context(decoded))
                raise library.JsonRpcError(described.code, described.message, described.data) from error
            # The one boundary: a bug in a handler is an answer with a reference to the log. Cancellation is a
            # BaseException and passes.
            except Exception as error:
                # Random, and the only thing of the exception that leaves the process: its text may contain a
                # path or a key.
                ref = secrets.token_hex(4)
                logger.exception("a call failed", extra={"method": method.name, "ref": ref})
                data = {"name": "internal_error", "retryable": False, "ref": ref}
                message = "The sidecar failed; its log has the details under `ref`"
                raise library.JsonRpcError(CODES["internal_error"], message, data) from error
            return library.SuccessResult(result)

        return run_handler

    async def _attempt(self, handler: Handler, call: Call, params: Any) -> Any:
        for _ in range(ATTEMPTS - 1):
            try:
                return await handler(call, params)
            except Failure as failure:
                if not (self._recover and await self._recover(failure)):
                    raise
        return await handler(call, params)


def _log_request(call: Call, began: float, error: str | int | None) -> None:
    """Log which method was called in which chat, how long it took, and the name of its error: never its texts."""
    if not logger.isEnabledFor(logging.INFO):
        return
    params = call.params if isinstance(call.params, dict) else {}
    address = {
        field: value[:MAX_LOGGED]
        for field, name in _ADDRESS.items()
        if isinstance(value := params.get(name), str)
    }
    failed = {} if error is None else {"error": error}
    ms = round((time.monotonic() - began) * 1000, 1)
    logger.info("request", extra={"method": call.method[:MAX_LOGGED], **address, "ms": ms, **failed})


def decode_params(method: MethodRow, params: dict[str, Any]) -> Any:
    """Decode the parameters as the method's type; an error names what does not fit and what was expected."""
    try:
        decoded = msgspec.convert(params, method.params)
    except msgspec.ValidationError as error:
        raise _type_error(method, str(error)) from error
    check_texts(method.name, params)
    return decoded


WHOLE_SOURCES = {("chat/import", "data"), ("blob/put", "data")}
"""Parameters that are not text of a chat: an import has its own limits, and a blob that of the frame."""


def check_texts(method: str, params: dict[str, Any]) -> None:
    """Refuse a text that is longer than any text of a chat may be, anywhere in the parameters."""
    waiting: list[tuple[str, Any]] = [
        (name, value) for name, value in params.items() if (method, name) not in WHOLE_SOURCES
    ]
    while waiting:
        field, value = waiting.pop()
        if isinstance(value, str):
            check_text(field, value)
        elif isinstance(value, dict):
            waiting += [
                (f"{field}.{name[:80]}", part) for name, part in value.items() if not _is_medium(value, name)
            ]
        elif isinstance(value, list):
            waiting += [(f"{field}[{place}]", part) for place, part in enumerate(value)]


def _is_medium(value: Mapping[str, Any], name: str) -> bool:
    """Whether a member holds the bytes of an image or audio, which have limits of their own."""
    return (name == "data" and value.get("type") in ("image", "audio")) or (name == "blob" and "uri" in value)


def to_error(failure: Failure, **more: Any) -> RpcError:
    """Convert a failure to an error of the wire."""
    return RpcError(CODES[failure.name], failure.message, {**failure.details(), **more})


def unknown_method(name: str, known: Mapping[str, Any]) -> RpcError:
    near = did_you_mean(name, known)
    remedy = f"; did you mean {near[0]}?" if near else "; rpc.discover lists the methods"
    return RpcError.named(
        "method_not_found", f"There is no method {name[:80]!r}{remedy}", params={"method": name[:80]}
    )


def _type_error(method: MethodRow, complaint: str) -> RpcError:
    wrong = expected.explain_mismatch(method.params, complaint)
    message = f"`{wrong.field}`: {wrong.words}" if wrong.field else wrong.words
    return RpcError.named("invalid_params", message, params={"field": wrong.field, "expected": wrong.allowed})


class _JsonRpcServer:
    """The parts of jsonrpcserver that are used."""

    def __init__(self) -> None:
        from jsonrpcserver import async_dispatcher, dispatcher, exceptions, result
        from oslash.either import Left, Right

        self.create_request = dispatcher.create_request
        self.dispatch_request = async_dispatcher.dispatch_request
        self.JsonRpcError = exceptions.JsonRpcError
        self.Left = Left
        self.SuccessResult: Callable[[Any], Any] = lambda value: Right(result.SuccessResult(value))


def _load_dispatcher() -> _JsonRpcServer:
    """Load the submodules under package objects that were not executed, then remove those, so that a later import of
    the packages loads them normally.
    """
    bare = [name for name in ("jsonrpcserver", "oslash") if name not in sys.modules]
    for name in bare:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        return _JsonRpcServer()
    finally:
        for name in bare:
            del sys.modules[name]
