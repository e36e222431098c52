// One life of a sidecar: a peer over a transport, from `initialize` to its death. Knows no chats.
import Foundation

/// `initialize` is answered before the database is opened: what takes this long is no sidecar.
private let greetingLimit: Duration = .seconds(30)

/// The contract's bound on shutting down; after it the process is terminated.
private let leaveLimit: Duration = .seconds(2)

/// Requests to one sidecar process. `over` has a value once it is gone: how it went.
@SidecarActor
final class Connection {
    private let transport: any Transport
    private var peer: Peer!
    private let ended = Deferred<SidecarDied>()
    private let stopped = Deferred<Void>()
    private(set) var death: SidecarDied?

    init(_ transport: any Transport, serve: @escaping Peer.Serve, hear: @escaping Peer.Hear) {
        self.transport = transport
        peer = Peer(write: { transport.send($0) }, serve: serve, hear: hear)
        Task { await run() }
    }

    var processId: Int32? { transport.processId }

    var over: SidecarDied {
        get async { (try? await ended.value) ?? SidecarDied("The sidecar is gone") }
    }

    func initialize(_ hello: InitializeParams) async throws -> InitializeResult {
        let answer = Deferred<InitializeResult>()
        Task {
            do {
                answer.settle(.success(try await request(Methods.Initialize.self, hello)))
            } catch {
                answer.settle(.failure(error))
            }
        }
        let timer = Task {
            try await Task.sleep(for: greetingLimit)
            answer.settle(.failure(SidecarDied("The program does not answer `initialize` within 30 seconds")))
        }
        defer { timer.cancel() }
        return try await answer.value
    }

    /// Throws `RpcError` for an error, `SidecarDied` when the process goes instead.
    func request<Method: Call>(_ method: Method.Type, _ params: Method.Params) async throws -> Method.Result {
        let frame: Data
        do {
            frame = try await peer.request(Method.name, params)
        } catch is Gone {
            throw await over
        }
        return try JSONDecoder().decode(WithResult<Method.Result>.self, from: frame).result
    }

    /// `shutdown`, `exit`, and whatever it takes; done when the process is gone.
    func close() async {
        _ = await endsWithin(leaveLimit) { await self.sayGoodbye() }
        stopped.settle()
        _ = await over
    }

    private func sayGoodbye() async {
        _ = try? await request(Methods.Shutdown.self, ShutdownParams())
        peer.notify("exit", Empty())
        transport.endInput()
        _ = await over
    }

    /// Read until the process is gone.
    private func run() async {
        let read = Deferred<Void>()
        let reading = Task {
            do {
                try await readAll()
                read.settle()
            } catch {
                read.settle(.failure(error))
            }
        }
        let stopping = Task {
            try await stopped.value
            read.settle(.failure(CancellationError()))
        }
        var grace = leaveLimit
        do {
            try await read.value
        } catch {
            grace = .zero  // asked to stop, or a frame of no sidecar
        }
        peer.close(Gone())
        let death = await transport.finish(grace: grace)
        self.death = death
        ended.settle(.success(death))
        stopped.settle()
        reading.cancel()
        stopping.cancel()
    }

    private func readAll() async throws {
        var splitter = LineSplitter()
        for await chunk in transport.chunks {
            for line in try splitter.feed(chunk) { peer.receive(line) }
            transport.consumed()
        }
    }
}

/// What the peer fails waiting requests with; replaced by the process's own end.
private struct Gone: Error {}
