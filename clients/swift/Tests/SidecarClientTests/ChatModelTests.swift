// What a SwiftUI view sees: the messages of a chat as they stream, stop, and come back after a restart.
import Foundation
import XCTest

#if canImport(Darwin) || SIDECAR_OBSERVATION
import Observation
#endif

@testable import SidecarClient

final class ChatModelTests: SidecarTestCase {
    func testTheTranscriptOfEventsIsThatOfTheStoredTurns() async throws {
        let steps = #"[{"thought": "Hm."}, {"text": "Some "}, {"text": "words"}]"#
        let model = try scripted(steps)
        let chat = try await spawned { $0.model = model }.chat("tab-7")
        var shown = ChatTranscript()
        for try await event in chat.prompt("go") { shown.apply(event) }
        let stored = ChatTranscript(turns: try await chat.history().turns)
        XCTAssertEqual(shown.messages, stored.messages)
        XCTAssertEqual(shown.messages.map(\.role), [.user, .thought, .assistant])
        XCTAssertEqual(shown.messages.map(\.text), ["go", "Hm.", "Some words"])
    }

    #if canImport(Darwin) || SIDECAR_OBSERVATION
    @MainActor
    func testAModelShowsWhatIsSentAndTheAnswer() async throws {
        let chat = try await observed()
        let work = Task { await chat.run() }
        defer { work.cancel() }
        try await until(chat) { if case .ready = $0.sidecar { true } else { false } }
        try await sendWhenOpen(chat, "Hello there")
        try await until(chat) { !$0.isRunning && $0.messages.count == 2 && !$0.messages[1].isRunning }
        XCTAssertEqual(chat.messages.map(\.text), ["Hello there", "Hello there"])
        XCTAssertNil(chat.failure)
    }

    @MainActor
    func testAModelStopsATurn() async throws {
        let model = try scripted(#"[{"text": "on and on"}, {"hang": true}]"#)
        let chat = try await observed(model)
        let work = Task { await chat.run() }
        defer { work.cancel() }
        try await sendWhenOpen(chat, "go")
        try await until(chat) { $0.isRunning && $0.messages.last?.text == "on and on" }
        chat.stop()
        try await until(chat) { !$0.isRunning && $0.messages.last?.status == .cancelled }
    }

    @MainActor
    func testAModelShowsWhyTheSidecarCannotBeStarted() async throws {
        let chat = ObservableChat {
            let app = try await Sidecar.spawn(SidecarOptions(executable: URL(fileURLWithPath: "/no/such/program")))
            return (app, try await app.chat("tab-7"))
        }
        await chat.run()
        guard case .failed(let death) = chat.sidecar else { return XCTFail() }
        XCTAssertEqual(chat.failure, death.summary)
    }

    @MainActor
    private func observed(_ model: String = "echo:") async throws -> ObservableChat {
        var options = options()
        options.model = model
        let app = try await Sidecar.spawn(options)
        keep(app)
        return ObservableChat { (app, try await app.chat("tab-7")) }
    }

    /// A chat that is not open yet refuses to send; a view disables its button until then.
    @MainActor
    private func sendWhenOpen(_ chat: ObservableChat, _ text: String) async throws {
        try await until(chat) { $0.isOpen }
        chat.send(text)
    }

    /// Wait for changes, as a view does, until one fits.
    @MainActor
    private func until(_ chat: ObservableChat, _ fits: (ChatPresentation) -> Bool) async throws {
        while !fits(chat.presentation) {
            await withCheckedContinuation { waiter in
                withObservationTracking { _ = chat.presentation } onChange: { waiter.resume() }
            }
            await Task.yield()
        }
    }
    #endif
}
