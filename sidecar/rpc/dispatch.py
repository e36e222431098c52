"""From a call to its handler and back. The one place where an exception becomes an error object.

jsonrpcserver finds the method and calls it; messages were checked before (`sidecar_protocol.jsonrpc`), so its own
parsing and validation are not used. Its package's initialiser imports jsonschema and http.server, and its helper
oslash a dozen monads, a tenth of a second for what we do not use: only the dispatcher is loaded.
"""

from __future__ import annotations

import importlib.util
import logging
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from sidecar_protocol.catalog import METHODS, Method
from sidecar_protocol.errors import CODES, RpcError
from sidecar_protocol.peer import Call

from ..model.failures import Failure, no_memory

logger = logging.getLogger(__name__)

Handler = Callable[[Call, Any], Awaitable[Any]]
Context = Callable[[Any], dict[str, Any]]


class Dispatcher:
    """Serves the methods of the catalog with the handlers it is given.

    `admit` may refuse a call before its handler; `context` says what an error's data carries beside the failure.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], admit: Callable[[Method], None], context: Context
    ) -> None:
        self._library = _load_dispatcher()
        self._admit = admit
        self._context = context
        self._methods = {name: self._method(METHODS[name], handler) for name, handler in handlers.items()}

    async def serve(self, call: Call) -> Any:
        """Answer a call: returns its result or raises RpcError."""
        if call.method not in self._methods:
            raise unknown_method(call.method, self._methods)
        request = self._library.create_request({"method": call.method, "params": call.params, "id": call.id})
        _, outcome = await self._library.dispatch_request(self._methods, call, request)
        if isinstance(outcome, self._library.Left):
            error = outcome._error
            raise RpcError(error.code, error.message, error.data if isinstance(error.data, dict) else None)
        return outcome._value.result

    def _method(self, method: Method, handler: Handler) -> Callable[..., Awaitable[Any]]:
        library = self._library

        async def called(call: Call, /, **params: Any) -> Any:
            decoded: Any = None
            try:
                self._admit(method)
                decoded = decode_params(method, params)
                result = await handler(call, decoded)
            except RpcError as error:
                raise library.JsonRpcError(error.code, error.message, error.data) from error
            except (Failure, MemoryError) as error:
                failure = error if isinstance(error, Failure) else no_memory()
                described = to_error(failure, **self._context(decoded))
                raise library.JsonRpcError(described.code, described.message, described.data) from error
            except Exception as error:
                ref = secrets.token_hex(4)
                logger.exception("a call failed", extra={"method": method.name, "ref": ref})
                data = {"name": "internal_error", "retryable": False, "ref": ref}
                message = "The sidecar failed; its log has the details under `ref`"
                raise library.JsonRpcError(CODES["internal_error"], message, data) from error
            return library.SuccessResult(result)

        return called


def decode_params(method: Method, params: dict[str, Any]) -> Any:
    """The parameters as the method's type; what does not fit is named, with what was expected."""
    try:
        return msgspec.convert(params, method.params)
    except msgspec.ValidationError as error:
        raise _mistyped(method, str(error)) from error


def to_error(failure: Failure, **more: Any) -> RpcError:
    """A failure as an error of the wire."""
    return RpcError(CODES[failure.name], failure.message, {**failure.details(), **more})


def unknown_method(name: str, known: Mapping[str, Any]) -> RpcError:
    from difflib import get_close_matches

    near = get_close_matches(name[:80], known, n=1)
    remedy = f"; did you mean {near[0]}?" if near else "; rpc.discover lists the methods"
    return RpcError.named(
        "method_not_found", f"There is no method {name[:80]!r}{remedy}", params={"method": name[:80]}
    )


def _mistyped(method: Method, complaint: str) -> RpcError:
    expected, _, path = complaint.partition(" - at `$.")
    field = path.rstrip("`")
    if "unknown field" in expected or "missing required field" in expected:
        name = expected.rpartition("field `")[2].rstrip("`")
        field = f"{field}.{name}" if field else name
    message = f"`{field}`: {expected}" if field else expected
    if "unknown field" in expected:
        message += _nearest(method, field)
    return RpcError.named("invalid_params", message, params={"field": field, "expected": expected})


def _nearest(method: Method, field: str) -> str:
    names = [known.encode_name for known in msgspec.structs.fields(method.params)]
    from difflib import get_close_matches

    near = get_close_matches(field, names, n=1)
    return f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(names) or 'none'}"


class _Library:
    """What is used of jsonrpcserver."""

    def __init__(self) -> None:
        from jsonrpcserver import async_dispatcher, dispatcher, exceptions, result
        from oslash.either import Left, Right

        self.create_request = dispatcher.create_request
        self.dispatch_request = async_dispatcher.dispatch_request
        self.JsonRpcError = exceptions.JsonRpcError
        self.Left = Left
        self.SuccessResult: Callable[[Any], Any] = lambda value: Right(result.SuccessResult(value))


def _load_dispatcher() -> _Library:
    """Load the submodules under unexecuted packages, then let importing those packages mean the whole again."""
    bare = [name for name in ("jsonrpcserver", "oslash") if name not in sys.modules]
    for name in bare:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        return _Library()
    finally:
        for name in bare:
            del sys.modules[name]
