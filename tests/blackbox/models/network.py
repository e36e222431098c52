"""A network of the test's own, on loopback: certificates, a TLS front, a proxy, connections that are dropped."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import anyio
from anyio.abc import ByteStream, SocketAttribute, TaskStatus
from anyio.from_thread import start_blocking_portal
from anyio.streams.tls import TLSListener
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Handle = Callable[[ByteStream], Awaitable[None]]

_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


class Authority:
    """Signs certificates; `path` is what a client has to trust."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of a test")])
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / "authority.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, *names: str) -> ssl.SSLContext:
        """What a server of these names needs."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        alternatives = x509.SubjectAlternativeName([_name(name) for name in names])
        certificate = (
            self._builder(subject, key.public_key())
            .add_extension(alternatives, critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        file = self._folder / f"{names[0]}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


class Front:
    """Passes connections on to a port of this machine, and can drop all that are open."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: list[ByteStream] = []
        self.connections = 0

    async def handle(self, stream: ByteStream) -> None:
        self.connections += 1
        self._open.append(stream)
        await pass_on(stream, self._target)

    async def drop(self) -> None:
        for stream in self._open:
            await anyio.aclose_forcefully(stream)
        self._open.clear()


class Proxy:
    """Knows the way to every name: all lead to one port. `seen` has each request's first line and credentials."""

    def __init__(self, plain: int, tunnelled: int, credentials: str | None = None) -> None:
        self._plain = plain
        self._tunnelled = tunnelled
        self._credentials = credentials
        self.seen: list[tuple[str, str | None]] = []

    async def handle(self, stream: ByteStream) -> None:
        try:
            data = b""
            while b"\r\n\r\n" not in data:
                data += await stream.receive()
        except _GONE:
            return
        head, _, rest = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.seen.append((first, headers.pop("proxy-authorization", None)))
        if self._credentials and self.seen[-1][1] != self._credentials:
            await stream.send(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            return
        method, target, version = first.split(" ")
        if method == "CONNECT":
            await stream.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await pass_on(stream, self._tunnelled)
            return
        path = "/" + target.split("/", 3)[3]
        spelled = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        await pass_on(
            stream,
            self._plain,
            f"{method} {path} {version}\r\n{spelled}connection: close\r\n\r\n".encode("latin-1") + rest,
        )


async def pass_on(stream: ByteStream, port: int, first: bytes = b"") -> None:
    """Carry bytes both ways between a connection and a port of this machine, until either ends."""
    async with await anyio.connect_tcp("127.0.0.1", port) as other, anyio.create_task_group() as tasks:
        if first:
            await other.send(first)

        async def carry(source: ByteStream, target: ByteStream) -> None:
            try:
                while True:
                    await target.send(await source.receive())
            except _GONE:
                tasks.cancel_scope.cancel()

        tasks.start_soon(carry, stream, other)
        await carry(other, stream)


class Listening:
    """Where a server is, and how to call into its thread."""

    def __init__(self, port: int, call: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
        self.port = port
        self.call = call


@contextmanager
def listening(handle: Handle, tls: ssl.SSLContext | None = None) -> Iterator[Listening]:
    """A server on loopback, in a thread of its own."""

    async def closing(stream: ByteStream) -> None:
        try:
            await handle(stream)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(stream)

    async def serve(*, task_status: TaskStatus[tuple[int, anyio.CancelScope]]) -> None:
        async with AsyncExitStack() as stack:
            listener = await stack.enter_async_context(
                await anyio.create_tcp_listener(local_host="127.0.0.1")
            )
            scope = stack.enter_context(anyio.CancelScope())
            task_status.started((listener.extra(SocketAttribute.local_port), scope))
            served = TLSListener(listener, tls, standard_compatible=False) if tls else listener
            await served.serve(closing)

    with start_blocking_portal() as portal:
        _, (port, scope) = portal.start_task(serve)
        try:
            yield Listening(port, portal.call)
        finally:
            portal.call(scope.cancel)


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
