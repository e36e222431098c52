// The client with the real sidecar: streaming, restarts, handlers, cancelling, back-pressure.
import Foundation
import XCTest

@testable import SidecarClient

final class SidecarTests: SidecarTestCase {
    private let long = (0..<400).map { "word\($0)" }.joined(separator: " ")

    func testAnAnswerStreamsAndIsStored() async throws {
        let chat = try await spawned().chat("tab-7")
        let answer = chat.prompt(long)
        var events: [Event] = []
        for try await event in answer { events.append(event) }
        XCTAssertEqual(text(of: events), long)
        let reason = await answer.reason
        XCTAssertEqual(reason, .endTurn)
        let turns = try await chat.history().turns
        XCTAssertEqual(turns.map(\.status), [.completed])
    }

    func testAKilledSidecarIsStartedAgainAndEveryEventComesOnce() async throws {
        let model = try scripted(#"[{"text": "half of it"}, {"hang": true}]"#)
        let app = try await spawned { $0.model = model }
        let chat = try await app.chat("tab-7")
        let followed = try await chat.events()
        let answer = chat.prompt("go")
        for try await event in answer {
            if case .messageDelta = event, await app.restarts == 0 { kill(await app.processId!, SIGKILL) }
        }
        let (reason, restarts) = (await answer.reason, await app.restarts)
        XCTAssertEqual(reason, .interrupted)
        XCTAssertEqual(restarts, 1)
        let seen = seqs(of: try await turn(of: followed))
        XCTAssertEqual(seen, Array(1...seen.last!))
    }

    func testStatesTellOfARestart() async throws {
        let states = Collected<SidecarState>()
        let app = try await spawned { $0.onState = { states.add($0) } }
        let first = await app.processId!
        kill(first, SIGKILL)
        for await state in await app.states {
            if case .ready(_, restarts: 1) = state { break }
        }
        let second = await app.processId!
        await app.close()
        guard states.values.count == 5, case .restarting(let attempt, .zero, let death) = states.values[2] else {
            return XCTFail("\(states.values)")
        }
        XCTAssertEqual(attempt, 1)
        XCTAssertEqual(death.exitCode, -9)
        XCTAssertEqual(states.values[0], .starting)
        XCTAssertEqual(states.values[1], .ready(processId: first, restarts: 0))
        XCTAssertEqual(states.values[3], .ready(processId: second, restarts: 1))
        XCTAssertEqual(states.values[4], .closed)
        XCTAssertEqual(kill(second, 0), -1)
    }

    func testAProgramThatEndsFailsWithWhatItSaid() async throws {
        let states = Collected<SidecarState>()
        var options = options()
        options.executable = URL(fileURLWithPath: "/bin/sh")
        options.arguments = ["-c", "echo no such table >&2; exit 3"]
        options.onState = { states.add($0) }
        await assertThrows(SidecarDied.self) { _ = try await Sidecar.spawn(options) } _: { died in
            XCTAssertEqual(died.exitCode, 3)
            XCTAssertTrue(died.stderr.contains("no such table"))
            XCTAssertEqual(states.values, [.starting, .failed(died)])
        }
        options.executable = URL(fileURLWithPath: "/no/such/program")
        await assertThrows(SidecarDied.self) { _ = try await Sidecar.spawn(options) } _: { died in
            XCTAssertTrue(died.summary.contains("/no/such/program"))
        }
    }

    func testASidecarThatKeepsDyingFailsAfterFiveTries() async throws {
        let folder = folder!
        let wrapper = folder.appendingPathComponent("once.sh")
        let script = """
            #!/bin/sh
            [ -e started ] && { echo the disk is gone >&2; exit 4; }
            touch started
            exec \(python.path) -m sidecar serve
            """
        try Data(script.utf8).write(to: wrapper)
        let app = try await spawned {
            $0.executable = URL(fileURLWithPath: "/bin/sh")
            $0.arguments = [wrapper.path]
        }
        let chat = try await app.chat("tab-7")
        let followed = try await chat.events()
        kill(await app.processId!, SIGKILL)
        await assertThrows(SidecarDied.self) { for try await _ in followed {} } _: { died in
            XCTAssertEqual(died.exitCode, 4)
            XCTAssertTrue(died.stderr.contains("the disk is gone"))
        }
        guard case .failed = await app.state else { return XCTFail() }
        await assertThrows(SidecarDied.self) { _ = try await app.models() }
    }

    func testLeavingTheLoopCancelsTheTurn() async throws {
        let model = try scripted(#"[{"text": "on and on"}, {"hang": true}]"#)
        let chat = try await spawned { $0.model = model }.chat("tab-7")
        let followed = try await chat.events()
        for try await event in chat.prompt("go") {
            if case .messageDelta = event { break }
        }
        guard case .turnEnded(let ended)? = try await turn(of: followed).last else { return XCTFail() }
        XCTAssertEqual(ended.data.reason, .cancelled)
    }

    func testCancellingTheTaskCancelsTheTurn() async throws {
        let model = try scripted(#"[{"text": "on and on"}, {"hang": true}]"#)
        let chat = try await spawned { $0.model = model }.chat("tab-7")
        let followed = try await chat.events()
        let task = Task { try await chat.prompt("go").text() }
        for try await event in followed {
            if case .messageDelta = event { break }
        }
        task.cancel()
        await assertThrows(CancellationError.self) { _ = try await task.value }
        let turns = try await chat.history().turns
        XCTAssertEqual(turns.map(\.reason), ["cancelled"])
    }

    func testCancellingTheTaskOfACallCancelsTheRequest() async throws {
        let app = try await spawned()
        let task = Task { try await app.models() }
        task.cancel()
        await assertThrows(CancellationError.self) { _ = try await task.value }
    }

    func testAPromptThatIsSentAgainWithItsIdRunsOnce() async throws {
        let chat = try await spawned().chat("tab-7")
        let options = PromptOptions(promptId: "p-1")
        let texts = [try await chat.prompt("Hello", options).text(), try await chat.prompt("Hello", options).text()]
        XCTAssertEqual(texts, ["Hello", "Hello"])
        let turns = try await chat.history().turns
        XCTAssertEqual(turns.count, 1)
    }

    func testAPermissionIsAskedAndAHandlerThatFailsDenies() async throws {
        let asked = Collected<String>()
        let steps = ["a", "b"].map { #"{"toolCall": {"name": "write_file", "input": {"path": "\#($0).txt", "content": "x"}}}"# }
        let model = try scripted("[\(steps.joined(separator: ", ")), {\"text\": \"Done.\"}]")
        let app = try await spawned {
            $0.model = model
            $0.handlers.permission = { request in
                asked.add(request.title)
                if asked.values.count == 2 { throw SidecarError("no window") }
                return .allowOnce
            }
        }
        let chat = try await app.chat("tab-7", projectPath: folder.path)
        let followed = try await chat.events()
        let said = try await chat.prompt("go").text()
        XCTAssertEqual(said, "Done.")
        let decisions = try await turn(of: followed).compactMap { event in
            if case .permissionResolved(let resolved) = event { resolved.data.decision } else { nil }
        }
        XCTAssertEqual(decisions, [.allowOnce, .denyOnce])
        XCTAssertTrue(FileManager.default.fileExists(atPath: folder.appendingPathComponent("a.txt").path))
    }

    func testTheModelCallsAToolOfTheApp() async throws {
        let seen = Collected<[String: JSONValue]>()
        let model = try scripted(
            #"[{"toolCall": {"name": "weather", "input": {"city": "Oslo"}}}, {"text": "It is sunny."}]"#)
        let weather = Tool("weather", "The weather.", inputSchema: ["type": .string("object")], kind: "fetch") { call in
            seen.add(call.arguments)
            return "Sunny"
        }
        let app = try await spawned {
            $0.model = model
            $0.handlers = Handlers(permission: { _ in .allowOnce }, tools: [weather])
        }
        let said = try await app.chat("tab-7").prompt("go").text()
        XCTAssertEqual(said, "It is sunny.")
        XCTAssertEqual(seen.values, [["city": .string("Oslo")]])
    }

    func testASlowLoopHoldsABoundedNumberOfEventsAndLosesNone() async throws {
        let model = try scripted(#"[{"repeat": 3000, "steps": [{"text": "word "}]}]"#)
        let app = try await spawned { $0.model = model }
        _ = try await app.call(Methods.Ping.self, Empty())
        let chat = try await app.chat("tab-7")
        let slow = await chat.feed.subscribe()
        _ = try await chat.prompt("go").text()
        let (held, stored) = (await slow.held, await chat.cursor.seq)
        XCTAssertLessThanOrEqual(held, maxQueued)
        var found: [Event] = []
        while seqs(of: found).last != stored, let event = try await slow.next() { found.append(event) }
        XCTAssertEqual(text(of: found), String(repeating: "word ", count: 3000))
        XCTAssertEqual(seqs(of: found), Array(1...stored))
    }

    func testARefusalHasTheNameOfTheError() async throws {
        let app = try await spawned()
        await assertThrows(RpcError.self) { _ = try await app.chat("tab-7", ifMissing: .fail) } _: { error in
            XCTAssertEqual(error.name, "not_found")
            XCTAssertEqual(error.code, ErrorCode.notFound)
        }
    }

    func testAnAppThatStartsAgainGetsTheEventsThatItHadNotHandled() async throws {
        let cursors = CursorFolder(folder.appendingPathComponent("cursors"))
        let first = try await spawned { $0.cursors = cursors }
        let chat = try await first.chat("tab-7")
        _ = try await chat.prompt("One").text()
        var handled: [Int] = []
        for try await event in try await chat.unhandledEvents() {
            handled.append(event.seq)
            if handled.count == 3 { break }  // the third is not handled: nobody asked for the next one
        }
        await first.close()
        let second = try await spawned { $0.cursors = cursors }
        let rest = try await turn(of: try await second.chat("tab-7").unhandledEvents())
        XCTAssertEqual(rest.first?.firstSeq, handled[1] + 1)
        guard case .turnEnded? = rest.last else { return XCTFail() }
    }

    func testAProgramOfTheBundleComesBeforeOneOnPath() throws {
        let bundle = folder.appendingPathComponent("My.app")
        let helpers = bundle.appendingPathComponent("Contents/Helpers")
        let other = folder.appendingPathComponent("bin")
        for place in [helpers, other] {
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            let program = place.appendingPathComponent("sidecar")
            try Data().write(to: program)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path)
        }
        XCTAssertThrowsError(try Sidecar.locate(in: .main, path: folder.path))
        XCTAssertEqual(try Sidecar.locate(in: .main, path: other.path).path, other.path + "/sidecar")
        let app = try XCTUnwrap(Bundle(url: bundle))
        XCTAssertEqual(try Sidecar.locate(in: app, path: other.path).path, helpers.path + "/sidecar")
    }
}
