// The executor of the client, and small parts of asynchronous code that several files share.
import Foundation

/// Where the client keeps its state: one step at a time, off the main thread, so events keep their order.
@globalActor
public actor SidecarActor {
    public static let shared = SidecarActor()
}

/// A value that comes later. Waiting for it does not end with the task that waits: whoever can abort settles it.
@SidecarActor
final class Deferred<Value: Sendable> {
    private var outcome: Result<Value, any Error>?
    private var waiters: [CheckedContinuation<Value, any Error>] = []

    var value: Value {
        get async throws {
            if let outcome { return try outcome.get() }
            return try await withCheckedThrowingContinuation { waiters.append($0) }
        }
    }

    /// The first outcome counts.
    func settle(_ result: Result<Value, any Error>) {
        guard outcome == nil else { return }
        outcome = result
        let resumed = waiters
        waiters = []
        for waiter in resumed { waiter.resume(with: result) }
    }
}

extension Deferred where Value == Void {
    func settle() {
        settle(.success(()))
    }
}

/// Whether `work` ended within `limit`. It continues if it did not; its failure is not raised.
@SidecarActor
func endsWithin(_ limit: Duration, _ work: @escaping @SidecarActor @Sendable () async throws -> Void) async -> Bool {
    let first = Deferred<Bool>()
    Task { @SidecarActor in
        try? await work()
        first.settle(.success(true))
    }
    let timer = Task { @SidecarActor in
        try await Task.sleep(for: limit)
        first.settle(.success(false))
    }
    defer { timer.cancel() }
    return (try? await first.value) ?? false
}
