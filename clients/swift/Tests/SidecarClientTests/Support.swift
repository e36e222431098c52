// What the tests share: the real sidecar in a folder of its own, and models that follow a script.
import Foundation
import XCTest

@testable import SidecarClient

let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
let python = root.appendingPathComponent(".venv/bin/python")

/// One sidecar at a time in a fresh folder, closed at the end of the test.
class SidecarTestCase: XCTestCase {
    private(set) var folder: URL!
    private var apps: [Sidecar] = []

    override func setUp() async throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("sidecar-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    override func tearDown() async throws {
        for app in apps { await app.close() }
        try FileManager.default.removeItem(at: folder)
    }

    func spawned(_ change: (inout SidecarOptions) -> Void = { _ in }) async throws -> Sidecar {
        var options = options()
        change(&options)
        let app = try await Sidecar.spawn(options)
        keep(app)
        return app
    }

    /// Closed at the end of the test.
    func keep(_ app: Sidecar) {
        apps.append(app)
    }

    func options() -> SidecarOptions {
        SidecarOptions(
            executable: python, arguments: ["-m", "sidecar", "serve"],
            dataFolder: folder.appendingPathComponent("data"), model: "echo:",
            environment: ["HOME": folder.path], workingFolder: folder)
    }

    /// The name of a model that takes these steps when the prompt says `go`.
    func scripted(_ steps: String) throws -> String {
        let path = folder.appendingPathComponent("script.json")
        try Data(#"{"replies": [{"match": "go", "steps": \#(steps)}]}"#.utf8).write(to: path)
        return "scripted:\(path.path)"
    }
}

/// Values that closures on several threads add.
final class Collected<Value: Sendable>: @unchecked Sendable {
    private let lock = NSLock()
    private var kept: [Value] = []

    var values: [Value] { lock.withLock { kept } }

    func add(_ value: Value) {
        lock.withLock { kept.append(value) }
    }
}

func text(of events: [Event]) -> String {
    events.compactMap { if case .messageDelta(let delta) = $0 { delta.data.text } else { nil } }.joined()
}

/// All events up to the end of a turn.
func turn(of events: AsyncThrowingStream<Event, any Error>) async throws -> [Event] {
    var found: [Event] = []
    for try await event in events {
        found.append(event)
        if case .turnEnded = event { break }
    }
    return found
}

func seqs(of events: [Event]) -> [Int] {
    events.flatMap { Array($0.firstSeq...$0.seq) }
}

func assertThrows<Failure: Error>(
    _ type: Failure.Type, _ work: () async throws -> Void, _ check: (Failure) -> Void = { _ in }
) async {
    do {
        try await work()
        XCTFail("nothing was thrown")
    } catch let error as Failure {
        check(error)
    } catch {
        XCTFail("\(error)")
    }
}
