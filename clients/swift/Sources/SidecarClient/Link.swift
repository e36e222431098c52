// A link to a sidecar that may die: starts it again, and repeats what may be repeated. Knows no chat.
//
// Whoever uses the link attaches again (`reattach`) before any other request goes to a new process.
import Foundation

/// The first restart is at once, as most deaths are single; one delay for each of the tries in a row.
let restartDelays: [Duration] = [.zero, .milliseconds(100), .milliseconds(500), .seconds(1), .seconds(2)]

/// A process that lived this long did not die of starting: the tries count from the first again.
private let stableAfter: Duration = .seconds(10)

/// A request that outlives two processes is likely what kills them.
private let maxSends = 3

/// Methods whose repetition changes something, so that they fail when the process dies with them.
private let notRepeatable: Set<String> = [
    "initialize", "chat/fork", "chat/import", "input/answer", "patches/apply", "patches/revert",
    "permission/answer", "prompt/edit", "prompt/remove", "settings/write", "shutdown",
]

/// What the app can show of its sidecar.
public enum SidecarState: Sendable, Equatable {
    /// The first process starts.
    case starting
    /// It answers. `restarts` says how often it was started again.
    case ready(processId: Int32, restarts: Int)
    /// It died; it is started again after `delay`. `attempt` counts from 1.
    case restarting(attempt: Int, delay: Duration, after: SidecarDied)
    /// It cannot be started; `SidecarDied.stderr` has its last lines.
    case failed(SidecarDied)
    /// The app closed it.
    case closed
}

typealias Launch = @Sendable () async throws -> any Transport

/// Requests that survive the process. `start` it, use it, `stop` it.
@SidecarActor
final class Link {
    struct Uses {
        let launch: Launch
        let serve: Peer.Serve
        let hear: Peer.Hear
        let reattach: @SidecarActor (Connection) async throws -> Void
        /// There will be no other process.
        let ended: @SidecarActor (SidecarDied) -> Void
        let changed: @SidecarActor (SidecarState) -> Void
    }

    var hello: InitializeParams
    private(set) var restarts = 0
    private(set) var server: InitializeResult?
    private let uses: Uses
    private var failures = 0
    private var born = ContinuousClock.now
    private var change = Deferred<Void>()
    private var connection: Connection?
    private var end: SidecarDied?

    init(_ hello: InitializeParams, _ uses: Uses) {
        self.hello = hello
        self.uses = uses
    }

    var processId: Int32? { connection?.processId }

    /// The first life. What fails here is thrown: a program that never ran is not started again.
    func start() async throws {
        uses.changed(.starting)
        do {
            connection = try await connect()
        } catch {
            uses.changed(.failed((error as? SidecarDied) ?? SidecarDied("The sidecar refused to start: \(error)")))
            throw error
        }
        uses.changed(.ready(processId: processId ?? 0, restarts: 0))
        Task { await supervise() }
    }

    func stop() async {
        if end == nil {
            giveUp(SidecarDied("The connection to the sidecar is closed"), .closed)
        }
        await connection?.close()
    }

    /// The result, from this process or, for what may be repeated, from a later one.
    func ask<Method: Call>(_ method: Method.Type, _ params: Method.Params) async throws -> Method.Result {
        var left = maxSends
        while true {
            let connection = try await live()
            left -= 1
            do {
                return try await connection.request(method, params)
            } catch let death as SidecarDied {
                if left == 0 || notRepeatable.contains(Method.name) { throw death }
            }
        }
    }

    private func live() async throws -> Connection {
        while end == nil {
            if let connection, connection.death == nil { return connection }
            try Task.checkCancellation()
            let change = change
            try await withTaskCancellationHandler {
                try await change.value
            } onCancel: {
                Task { @SidecarActor in self.tell() }
            }
        }
        throw end ?? SidecarDied("The sidecar was never started")
    }

    private func connect() async throws -> Connection {
        let connection = Connection(try await uses.launch(), serve: uses.serve, hear: uses.hear)
        do {
            server = try await connection.initialize(hello)
        } catch {
            await connection.close()
            throw error
        }
        born = .now
        return connection
    }

    private func supervise() async {
        while end == nil, let connection {
            let death = await connection.over
            if end == nil { await revive(death) }
        }
    }

    /// A new process with every chat attached, or the end of the link.
    private func revive(_ first: SidecarDied) async {
        var death = first
        if ContinuousClock.now - born > stableAfter { failures = 0 }
        while failures < restartDelays.count, end == nil {
            let delay = restartDelays[failures]
            failures += 1
            uses.changed(.restarting(attempt: failures, delay: delay, after: death))
            try? await Task.sleep(for: delay)
            if end != nil { return }
            do {
                return try await beginNewLife()
            } catch let error as SidecarDied {
                death = error
            } catch {
                death = SidecarDied("A new sidecar refused to start: \(error)", stderr: death.stderr)
                break
            }
        }
        giveUp(death, .failed(death))
    }

    private func beginNewLife() async throws {
        let connection = try await connect()
        if end != nil { return await connection.close() }
        do {
            try await uses.reattach(connection)
        } catch {
            await connection.close()
            throw error
        }
        self.connection = connection
        restarts += 1
        uses.changed(.ready(processId: processId ?? 0, restarts: restarts))
        tell()
    }

    private func giveUp(_ death: SidecarDied, _ state: SidecarState) {
        if end == nil {
            end = death
            uses.changed(state)
            uses.ended(death)
        }
        tell()
    }

    private func tell() {
        let told = change
        change = Deferred()
        told.settle()
    }
}
