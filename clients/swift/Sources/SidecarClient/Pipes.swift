// The three pipes of a child process, each with a thread of its own. Knows no process and no message.
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// How often a thread looks whether it is still needed, where a grandchild holds the other end open.
private let pollMilliseconds: Int32 = 200

private let chunkBytes = 64 * 1024

/// Both ends of a pipe, which no other child inherits.
struct PipeEnds {
    let reading: Int32
    let writing: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SidecarDied("No pipe to a sidecar: \(String(cString: strerror(errno)))") }
        (reading, writing) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }
}

/// Reads a pipe to its end, or until `stop`.
final class PipeReader: @unchecked Sendable {
    private let lock = NSLock()
    private var stopped = false
    private let window: DispatchSemaphore?

    /// With a `window`, so many chunks are read ahead at most: call `consumed` for each.
    init(_ descriptor: Int32, window: Int? = nil, take: @escaping @Sendable (Data) -> Void, end: @escaping @Sendable () -> Void) {
        // Counted up from 0: a semaphore that is released below its first value ends the app.
        self.window = window.map { size in
            let semaphore = DispatchSemaphore(value: 0)
            for _ in 0..<size { semaphore.signal() }
            return semaphore
        }
        Thread.detachNewThread { [self] in
            while let chunk = next(descriptor) { take(chunk) }
            Self.closeEnd(descriptor)
            end()
        }
    }

    func consumed() {
        window?.signal()
    }

    func stop() {
        lock.withLock { stopped = true }
    }

    private func next(_ descriptor: Int32) -> Data? {
        while !lock.withLock({ stopped }) {
            if let window, window.wait(timeout: .now() + .milliseconds(Int(pollMilliseconds))) == .timedOut { continue }
            guard isReady(descriptor, Int16(POLLIN)) else {
                window?.signal()
                continue
            }
            var bytes = [UInt8](repeating: 0, count: chunkBytes)
            let count = read(descriptor, &bytes, chunkBytes)
            if count > 0 { return Data(bytes[0..<count]) }
            if count == 0 || (errno != EINTR && errno != EAGAIN) { return nil }
            window?.signal()
        }
        return nil
    }

    fileprivate static func closeEnd(_ descriptor: Int32) {
        _ = close(descriptor)
    }
}

/// Writes to a pipe in the order of `send`, without making the caller wait.
final class PipeWriter: @unchecked Sendable {
    private let condition = NSCondition()
    private var queue: [Data] = []
    private var ended = false
    private var stopped = false

    init(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        Thread.detachNewThread { [self] in
            ignoreBrokenPipe(descriptor)
            while let data = next(), write(data, descriptor) {}
            PipeReader.closeEnd(descriptor)
        }
    }

    func send(_ data: Data) {
        condition.withLock {
            if !ended { queue.append(data) }
            condition.signal()
        }
    }

    /// Close the pipe when everything is written.
    func end() {
        condition.withLock {
            ended = true
            condition.signal()
        }
    }

    /// Close it now.
    func stop() {
        condition.withLock {
            (ended, stopped) = (true, true)
            condition.signal()
        }
    }

    private func next() -> Data? {
        condition.withLock {
            while queue.isEmpty, !ended { condition.wait() }
            return stopped || queue.isEmpty ? nil : queue.removeFirst()
        }
    }

    private func write(_ data: Data, _ descriptor: Int32) -> Bool {
        var sent = 0
        while sent < data.count {
            if condition.withLock({ stopped }) { return false }
            guard isReady(descriptor, Int16(POLLOUT)) else { continue }
            let count = data.withUnsafeBytes { bytes in
                writeBytes(descriptor, bytes.baseAddress! + sent, bytes.count - sent)
            }
            if count > 0 {
                sent += count
            } else if errno != EINTR && errno != EAGAIN {
                return false
            }
        }
        return true
    }
}

private func writeBytes(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}

private func isReady(_ descriptor: Int32, _ events: Int16) -> Bool {
    var one = pollfd(fd: descriptor, events: events, revents: 0)
    return poll(&one, 1, pollMilliseconds) > 0
}

/// Writing to a process that died must be an error of `write`, not the signal that ends the app.
private func ignoreBrokenPipe(_ descriptor: Int32) {
    #if canImport(Darwin)
    _ = fcntl(descriptor, F_SETNOSIGPIPE, 1)
    #else
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)  // of this thread, which writes and does nothing else
    #endif
}
