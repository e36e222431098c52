// The sidecar's process. Starts it and makes sure that it is gone; knows no JSON-RPC.
//
// Its stderr is always read, so that a long log cannot fill the pipe.
import Foundation

/// How much of stderr an error quotes: a traceback, not a log.
private let tailBytes = 8 * 1024

/// How long the process may take for each step of its end: by itself, after SIGTERM, after SIGKILL.
private let stepLimit: Duration = .seconds(2)

/// A grandchild may hold a pipe open for ever; what the process itself wrote is there at once.
private let drainLimit: Duration = .milliseconds(500)

/// Chunks of stdout that are read ahead of the client: 1 MiB.
private let readAhead = 16

/// Bytes to a sidecar and back. Tests put one in memory in the place of a process.
public protocol Transport: AnyObject, Sendable {
    var processId: Int32? { get }
    /// What it writes, until it is gone.
    var chunks: AsyncStream<Data> { get }
    /// Called for each chunk when it is handled.
    func consumed()
    func send(_ data: Data)
    func endInput()
    /// Make sure that it is gone after `grace`, and say how it went.
    func finish(grace: Duration) async -> SidecarDied
}

/// A sidecar as a child process.
final class ServerProcess: Transport, @unchecked Sendable {
    let chunks: AsyncStream<Data>
    private let process = Process()
    private let writer: PipeWriter
    private let output: PipeReader
    private let errors: PipeReader
    private let tail: ErrorTail
    private let ended = Flag()
    private let drained: Flag

    /// Start a program by its absolute path; throws `SidecarDied` if it cannot be started.
    init(
        executable: URL, arguments: [String], environment: [String: String], folder: URL?,
        log: (@Sendable (String) -> Void)?
    ) throws {
        let (input, out, err) = (try PipeEnds(), try PipeEnds(), try PipeEnds())
        process.executableURL = executable
        process.arguments = arguments
        process.environment = environment
        if let folder { process.currentDirectoryURL = folder }
        process.standardInput = FileHandle(fileDescriptor: input.reading, closeOnDealloc: false)
        process.standardOutput = FileHandle(fileDescriptor: out.writing, closeOnDealloc: false)
        process.standardError = FileHandle(fileDescriptor: err.writing, closeOnDealloc: false)
        process.terminationHandler = { [ended] _ in ended.set() }
        defer { for end in [input.reading, out.writing, err.writing] { close(end) } }
        do {
            try process.run()
        } catch {
            for end in [input.writing, out.reading, err.reading] { close(end) }
            throw SidecarDied("Could not start \(executable.path): \(error.localizedDescription)")
        }
        let (stream, source) = AsyncStream.makeStream(of: Data.self)
        let (tail, drained) = (ErrorTail(log), Flag())
        (chunks, self.tail, self.drained) = (stream, tail, drained)
        writer = PipeWriter(input.writing)
        output = PipeReader(out.reading, window: readAhead, take: { source.yield($0) }, end: { source.finish() })
        errors = PipeReader(err.reading, take: { tail.add($0) }, end: { drained.set() })
        Task { [ended, output] in
            _ = await ended.isSet(within: nil)
            try? await Task.sleep(for: drainLimit)
            output.stop()
        }
    }

    var processId: Int32? { process.processIdentifier }

    func consumed() { output.consumed() }

    func send(_ data: Data) { writer.send(data) }

    func endInput() { writer.end() }

    func finish(grace: Duration) async -> SidecarDied {
        endInput()
        let steps: [(Duration, Int32?)] = [(grace, nil), (stepLimit, SIGTERM), (stepLimit, SIGKILL)]
        for (limit, signal) in steps {
            if let signal { send(signal: signal) }
            if await ended.isSet(within: limit) { break }
        }
        _ = await drained.isSet(within: drainLimit)
        writer.stop()
        output.stop()
        errors.stop()
        return SidecarDied("The sidecar \(ending)", exitCode: exitCode, stderr: tail.text)
    }

    /// To the whole group, where it has one: the program may be a wrapper that does not pass signals on.
    private func send(signal: Int32) {
        let child = process.processIdentifier
        guard process.isRunning else { return }
        kill(getpgid(child) == child ? -child : child, signal)
    }

    private var exitCode: Int32? {
        if process.isRunning { return nil }
        return process.terminationReason == .uncaughtSignal ? -process.terminationStatus : process.terminationStatus
    }

    private var ending: String {
        guard let exitCode else { return "does not end" }
        return exitCode < 0 ? "was killed by signal \(-exitCode)" : "ended with exit code \(exitCode)"
    }
}

/// Something that happens once, on any thread.
private final class Flag: @unchecked Sendable {
    private let lock = NSLock()
    private var waiters: [CheckedContinuation<Bool, Never>] = []
    private var happened = false

    func set() {
        let resumed = lock.withLock {
            happened = true
            defer { waiters = [] }
            return waiters
        }
        for waiter in resumed { waiter.resume(returning: true) }
    }

    /// Whether it happens within `limit`; without one, waits until it does.
    func isSet(within limit: Duration?) async -> Bool {
        guard let limit else { return await wait() }
        return await endsWithin(limit) { _ = await self.wait() }
    }

    private func wait() async -> Bool {
        await withCheckedContinuation { waiter in
            let now = lock.withLock {
                if !happened { waiters.append(waiter) }
                return happened
            }
            if now { waiter.resume(returning: true) }
        }
    }
}

/// The end of what a process wrote to stderr; each line also goes to `log`.
private final class ErrorTail: @unchecked Sendable {
    private let log: (@Sendable (String) -> Void)?
    private let lock = NSLock()
    private var kept = Data()
    private var unfinished = Data()

    init(_ log: (@Sendable (String) -> Void)?) {
        self.log = log
    }

    var text: String { lock.withLock { String(decoding: kept, as: UTF8.self) } }

    func add(_ chunk: Data) {
        lock.withLock { kept = Data((kept + chunk).suffix(tailBytes)) }
        guard let log else { return }
        var lines = (unfinished + chunk).split(separator: 0x0a, omittingEmptySubsequences: false)
        unfinished = Data(lines.removeLast().suffix(tailBytes))
        for line in lines { log(String(decoding: line.suffix(tailBytes), as: UTF8.self)) }
    }
}
