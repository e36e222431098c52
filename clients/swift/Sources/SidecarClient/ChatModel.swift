// What a SwiftUI view binds to: a chat's messages, its state, and what its buttons do.
//
// `ChatModel` is for macOS 13, `ObservableChat` for macOS 14; both show the same and have the same names.
import Foundation

#if canImport(Combine)
import Combine
#endif
// On Linux a program with Swift 6.0's Observation does not link without a flag, which the tests give.
#if canImport(Darwin) || SIDECAR_OBSERVATION
import Observation
#endif

/// What a view shows of a chat.
public struct ChatPresentation: Equatable, Sendable {
    public internal(set) var transcript = ChatTranscript()
    public internal(set) var sidecar: SidecarState = .starting
    /// Prompts can be sent.
    public internal(set) var isOpen = false
    /// What could not be done, for an alert or a line under the list.
    public internal(set) var failure: String?
    /// A turn runs, or waits for the user.
    public var isRunning: Bool { transcript.state != .idle }
    public var messages: [ChatMessage] { transcript.messages }
}

/// Follows one chat and keeps its presentation. Not seen by views: the two models below pass on what it publishes.
@MainActor
final class ChatFollower {
    private let open: @Sendable () async throws -> (Sidecar, Chat)
    private var chat: Chat?
    private var current = ChatPresentation()
    var publish: ((ChatPresentation) -> Void)?

    init(_ open: @escaping @Sendable () async throws -> (Sidecar, Chat)) {
        self.open = open
    }

    /// Open the chat and follow it until the task is cancelled: the work of a view's `.task`.
    func run() async {
        do {
            let (app, chat) = try await open()
            let states = Task { [weak self] in
                for await state in await app.states { self?.change { $0.sidecar = state } }
            }
            defer { states.cancel() }
            while !Task.isCancelled {
                do {
                    return try await follow(chat)
                } catch is ChatReplaced {
                    continue
                }
            }
        } catch is CancellationError {
        } catch {
            change {
                $0.failure = error.localizedDescription
                if let death = error as? SidecarDied { $0.sidecar = .failed(death) }
            }
        }
    }

    func send(_ text: String, _ options: PromptOptions) {
        guard let chat else { return change { $0.failure = "The chat is not open yet" } }
        act { _ = try await chat.prompt(text, options).text() }
    }

    /// End the running turn.
    func stop() {
        guard let chat else { return }
        act { try await chat.cancel() }
    }

    private func act(_ work: @escaping @Sendable () async throws -> Void) {
        change { $0.failure = nil }
        Task { [weak self] in
            do {
                try await work()
            } catch is TurnFailed {
                // The transcript has it as `problem`.
            } catch {
                self?.change { $0.failure = error.localizedDescription }
            }
        }
    }

    /// Turns that are stored, then every event after them.
    private func follow(_ chat: Chat) async throws {
        let events = try await chat.events()
        var loaded = try await load(chat)
        self.chat = chat
        change { $0.isOpen = true }
        for try await event in events where event.seq > loaded {
            change { $0.transcript.apply(event) }
            if current.transcript.isStale { loaded = try await load(chat) }
        }
    }

    /// Show the stored turns; returns the seq of the last event that they include.
    private func load(_ chat: Chat) async throws -> Int {
        let page = try await chat.history()
        let (title, state) = await (chat.title, chat.state)
        change { $0.transcript = ChatTranscript(turns: page.turns, title: title, state: state) }
        return page.asOf.seq
    }

    private func change(_ edit: (inout ChatPresentation) -> Void) {
        edit(&current)
        publish?(current)
    }
}

#if canImport(Combine)
/// A chat for SwiftUI from macOS 13 on: `@StateObject private var chat = ChatModel { … }`, and `.task { await chat.run() }`.
/// Not compiled by `make test-swift`, as Linux has no Combine.
@MainActor
public final class ChatModel: ObservableObject {
    @Published public private(set) var presentation = ChatPresentation()
    private let follower: ChatFollower

    /// `open` starts the sidecar, or takes the app's own, and opens the chat.
    public init(_ open: @escaping @Sendable () async throws -> (Sidecar, Chat)) {
        follower = ChatFollower(open)
        follower.publish = { [weak self] in self?.presentation = $0 }
    }

    public var messages: [ChatMessage] { presentation.messages }
    public var isOpen: Bool { presentation.isOpen }
    public var isRunning: Bool { presentation.isRunning }
    public var failure: String? { presentation.failure }
    public var sidecar: SidecarState { presentation.sidecar }

    /// Open the chat and follow it until the task is cancelled.
    public func run() async { await follower.run() }

    public func send(_ text: String, _ options: PromptOptions = PromptOptions()) { follower.send(text, options) }

    /// End the running turn.
    public func stop() { follower.stop() }
}
#endif

#if canImport(Darwin) || SIDECAR_OBSERVATION
/// A chat for SwiftUI from macOS 14 on: `@State private var chat = ObservableChat { … }`, and `.task { await chat.run() }`.
@available(macOS 14, iOS 17, *)
@MainActor
@Observable
public final class ObservableChat {
    public private(set) var presentation = ChatPresentation()
    @ObservationIgnored private let follower: ChatFollower

    /// `open` starts the sidecar, or takes the app's own, and opens the chat.
    public init(_ open: @escaping @Sendable () async throws -> (Sidecar, Chat)) {
        follower = ChatFollower(open)
        follower.publish = { [weak self] in self?.presentation = $0 }
    }

    public var messages: [ChatMessage] { presentation.messages }
    public var isOpen: Bool { presentation.isOpen }
    public var isRunning: Bool { presentation.isRunning }
    public var failure: String? { presentation.failure }
    public var sidecar: SidecarState { presentation.sidecar }

    /// Open the chat and follow it until the task is cancelled.
    public func run() async { await follower.run() }

    public func send(_ text: String, _ options: PromptOptions = PromptOptions()) { follower.send(text, options) }

    /// End the running turn.
    public func stop() { follower.stop() }
}
#endif
