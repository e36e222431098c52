// A chat as an app holds it: open, typed, and the same object across restarts of the sidecar.
//
// Every method is one request of the contract with this chat's key. The order of events is `Feed`'s, the life of a
// prompt `Answer`'s.
import Foundation

/// What a prompt may have beside its text.
public struct PromptOptions: Sendable {
    /// Images, files and text, in place of the text.
    public var content: [ContentBlock]?
    /// An id of your own: a prompt that is sent again with it never runs twice.
    public var promptId: String?
    /// What to do while a turn runs.
    public var delivery: PromptSendParamsDelivery?
    /// The turn to edit and send again.
    public var replace: String?
    /// `off` sends a text that begins with a slash to the model.
    public var commands: PromptSendParamsCommands?
    public var model: String?
    public var effort: String?

    public init(
        content: [ContentBlock]? = nil, promptId: String? = nil, delivery: PromptSendParamsDelivery? = nil,
        replace: String? = nil, commands: PromptSendParamsCommands? = nil, model: String? = nil, effort: String? = nil
    ) {
        self.content = content
        self.promptId = promptId
        self.delivery = delivery
        self.replace = replace
        self.commands = commands
        self.model = model
        self.effort = effort
    }
}

/// An open chat. `title`, `state` and `access` follow the events.
@SidecarActor
public final class Chat {
    public nonisolated let sessionId: String
    public nonisolated let chatId: String?
    /// What `chat/open` answered last.
    public internal(set) var opened: ChatOpenResult
    public private(set) var title: String?
    public private(set) var state: ChatStateName
    /// `reader` while another process runs a turn of the chat.
    public internal(set) var access: ChatOpenResultAccess
    nonisolated let link: Link
    nonisolated let feed: Feed
    private let params: ChatOpenParams
    private let cursors: (any CursorStore)?

    init(_ link: Link, _ feed: Feed, _ params: ChatOpenParams, _ opened: ChatOpenResult, _ cursors: (any CursorStore)?) {
        sessionId = opened.sessionId
        chatId = opened.chatId
        self.opened = opened
        title = opened.title
        state = opened.state
        access = opened.access
        self.link = link
        self.feed = feed
        self.params = params
        self.cursors = cursors
        feed.watch = { [weak self] in self?.watch($0) }
        feed.open(epoch: opened.epoch, seq: opened.asOf.seq)
    }

    /// The last event that has arrived.
    public var cursor: Cursor { Cursor(epoch: feed.epoch, seq: feed.last) }

    /// Send a prompt and iterate its answer. The answer to a command (`/open src/*.py`) is one event, `commandResult`.
    public nonisolated func prompt(_ text: String?, _ options: PromptOptions = PromptOptions()) -> Answer {
        let params = PromptSendParams(
            promptId: options.promptId ?? newPromptId(),
            sessionId: sessionId,
            text: text,
            content: options.content,
            delivery: options.delivery,
            replace: options.replace.map { TurnRef(turnId: $0) },
            commands: options.commands,
            overrides: overrides(options.model, options.effort)
        )
        let delivery = Delivery(link, promptId: params.promptId) { [link] in
            try await link.ask(Methods.PromptSend.self, params)
        }
        return Answer(delivery, feed)
    }

    /// Answer the last turn, or `turnId`, again; or continue an unfinished one from `here`.
    public nonisolated func retry(
        _ turnId: String? = nil, from start: TurnRetryParamsFrom = .start, model: String? = nil
    ) -> Answer {
        let params = TurnRetryParams(
            promptId: newPromptId(),
            sessionId: sessionId,
            turnId: turnId,
            from: start,
            overrides: overrides(model, nil)
        )
        let delivery = Delivery(link, promptId: params.promptId) { [link] in
            try await link.ask(Methods.TurnRetry.self, params)
        }
        return Answer(delivery, feed)
    }

    /// Every event of the chat from now on, or after a cursor. Throws `ChatReplaced` if the cursor is of a journal
    /// that is no longer there.
    public func events(after cursor: Cursor? = nil) throws -> AsyncThrowingStream<Event, any Error> {
        if let cursor, cursor.epoch != feed.epoch { throw ChatReplaced(sessionId: sessionId) }
        let followed = Followed(feed.subscribe(after: cursor?.seq))
        return AsyncThrowingStream { try await followed.next() }
    }

    /// Every event that the app has not handled, in this run or an earlier one. An event counts as handled when the
    /// loop asks for the next one: its cursor is then saved in `SidecarOptions.cursors`.
    public func unhandledEvents() throws -> AsyncThrowingStream<Event, any Error> {
        guard let cursors else { throw SidecarError("Set `SidecarOptions.cursors` to where cursors are saved") }
        let saved = try cursors.cursor(of: sessionId)
        let after = saved.flatMap { $0.epoch == feed.epoch ? $0.seq : nil } ?? 0
        let followed = Followed(feed.subscribe(after: after)) { [sessionId] in try cursors.save($0, of: sessionId) }
        return AsyncThrowingStream { try await followed.next() }
    }

    /// Any method of the contract; its parameters name the chat by `sessionId`.
    public func call<Method: Call>(_ method: Method.Type, _ params: Method.Params) async throws -> Method.Result {
        try await link.ask(method, params)
    }

    public func history(before: String? = nil, after: String? = nil, limit: Int? = nil) async throws -> ChatHistoryResult {
        let params = ChatHistoryParams(sessionId: sessionId, before: before, after: after, limit: limit)
        return try await link.ask(Methods.ChatHistory.self, params)
    }

    @discardableResult
    public func cancel(_ turnId: String? = nil, queue: TurnCancelParamsQueue? = nil) async throws -> TurnCancelResult {
        let params = TurnCancelParams(sessionId: sessionId, turnId: turnId, queue: queue)
        return try await link.ask(Methods.TurnCancel.self, params)
    }

    /// Nil makes the title automatic again.
    @discardableResult
    public func rename(_ title: String?) async throws -> ChatChanged {
        try await link.ask(Methods.ChatRename.self, ChatRenameParams(title: title, sessionId: sessionId))
    }

    /// Set keys of the chat's configuration. Returns all.
    @discardableResult
    public func configure(_ keys: ChatConfig) async throws -> ChatConfig {
        try await link.ask(Methods.ChatConfigure.self, ChatConfigureParams(set: keys, sessionId: sessionId)).config
    }

    /// Let waiting prompts run again after a restart, a cancel or a failed turn paused them.
    @discardableResult
    public func resumeQueue() async throws -> Queue {
        try await link.ask(Methods.PromptResume.self, Key(sessionId: sessionId)).queue
    }

    /// Attach to a new process and get what was missed. After a restart.
    func reopen(_ connection: Connection) async throws {
        let opened: ChatOpenResult
        do {
            opened = try await openAgain(connection)
        } catch let error as RpcError {
            return feed.fail(error)
        }
        let replaced = opened.epoch != feed.epoch || opened.lastSeq < feed.last
        take(opened)
        if replaced {
            feed.fail(ChatReplaced(sessionId: sessionId))
            feed.open(epoch: opened.epoch, seq: opened.asOf.seq)
        } else if opened.replay.kind != .events {
            feed.catchUp(opened.asOf.seq)
        }
    }

    func take(_ opened: ChatOpenResult) {
        self.opened = opened
        title = opened.title
        state = opened.state
        access = opened.access
    }

    private func openAgain(_ connection: Connection) async throws -> ChatOpenResult {
        let known = ChatOpenParams(sessionId: sessionId, ifMissing: .fail, after: .cursor(cursor))
        do {
            return try await connection.request(Methods.ChatOpen.self, known)
        } catch let error as RpcError where error.name == "not_found" {
            // A chat that lived in memory ended with its process; one that somebody deleted stays deleted.
            return try await connection.request(Methods.ChatOpen.self, params)
        }
    }

    private func watch(_ event: Event) {
        if case .chatRenamed(let renamed) = event { title = renamed.data.title }
        if case .chatState(let changed) = event { state = changed.data.state }
    }
}

/// A subscription that ends with the loop over it.
private final class Followed: Sendable {
    private let subscription: Subscription
    private let save: (@Sendable (Cursor) throws -> Void)?
    @SidecarActor private var handled: Cursor?

    init(_ subscription: Subscription, save: (@Sendable (Cursor) throws -> Void)? = nil) {
        self.subscription = subscription
        self.save = save
    }

    deinit {
        Task { [subscription] in await subscription.close() }
    }

    @SidecarActor
    func next() async throws -> Event? {
        if let handled { try save?(handled) }
        handled = nil
        let event = try await withTaskCancellationHandler {
            try await subscription.next()
        } onCancel: {
            Task { [subscription] in await subscription.close() }
        }
        handled = event.map { Cursor(epoch: $0.epoch, seq: $0.seq) }
        return event
    }
}

func newPromptId() -> String {
    "p-" + UUID().uuidString.replacingOccurrences(of: "-", with: "").lowercased()
}

private func overrides(_ model: String?, _ effort: String?) -> PromptOverrides? {
    model == nil && effort == nil ? nil : PromptOverrides(model: model, effort: effort)
}
