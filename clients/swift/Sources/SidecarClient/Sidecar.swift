// The app's end of a sidecar: spawn it, open chats, ask anything of the contract.
//
// Gives each event to its chat. Death and restart are `Link`'s, the order of events is `Feed`'s.
import Foundation

/// Events of one `events/read`, about as many as a subscription holds.
private let pageEvents = 500

/// How a sidecar is started, and what the app answers it.
public struct SidecarOptions: Sendable {
    /// The absolute path of the program; without it `Sidecar.locate()`.
    public var executable: URL?
    public var arguments: [String]
    /// Where the database lies; a folder of your app.
    public var dataFolder: URL?
    public var model: String?
    /// A configuration file.
    public var configuration: URL?
    /// Added to the present environment.
    public var environment: [String: String]
    public var workingFolder: URL?
    /// The app's name; other processes see it as the owner of a chat.
    public var clientName: String
    public var clientVersion: String?
    public var handlers: Handlers
    /// Where `Chat.unhandledEvents` keeps how far it came.
    public var cursors: (any CursorStore)?
    /// Gets each state of the process, in order.
    public var onState: (@Sendable (SidecarState) -> Void)?
    /// Gets what belongs to no chat.
    public var onStatus: (@Sendable (Status) -> Void)?
    /// Gets each line of stderr.
    public var log: (@Sendable (String) -> Void)?

    public init(
        executable: URL? = nil, arguments: [String] = ["serve"], dataFolder: URL? = nil, model: String? = nil,
        configuration: URL? = nil, environment: [String: String] = [:], workingFolder: URL? = nil,
        clientName: String = "sidecar-client-swift", clientVersion: String? = nil, handlers: Handlers = Handlers(),
        cursors: (any CursorStore)? = nil, onState: (@Sendable (SidecarState) -> Void)? = nil,
        onStatus: (@Sendable (Status) -> Void)? = nil, log: (@Sendable (String) -> Void)? = nil
    ) {
        self.executable = executable
        self.arguments = arguments
        self.dataFolder = dataFolder
        self.model = model
        self.configuration = configuration
        self.environment = environment
        self.workingFolder = workingFolder
        self.clientName = clientName
        self.clientVersion = clientVersion
        self.handlers = handlers
        self.cursors = cursors
        self.onState = onState
        self.onStatus = onStatus
        self.log = log
    }

    func launch() throws -> ServerProcess {
        var variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if let dataFolder { variables["SIDECAR_DATA_DIR"] = dataFolder.path }
        if let model { variables["SIDECAR_MODEL"] = model }
        if let configuration { variables["SIDECAR_CONFIG"] = configuration.path }
        let program = try executable ?? Sidecar.locate()
        guard program.path.hasPrefix("/") else {
            throw SidecarDied("`executable` is \(program.path); it must be an absolute path")
        }
        return try ServerProcess(
            executable: program, arguments: arguments, environment: variables, folder: workingFolder, log: log)
    }
}

/// A running sidecar, made by `spawn`. Close it before the app ends.
@SidecarActor
public final class Sidecar {
    private var link: Link!
    private var handlers: Handlers
    private let options: SidecarOptions
    private var feeds: [String: Feed] = [:]
    private var chats: [String: Chat] = [:]
    /// What its process does now; `states` has the changes.
    public private(set) var state: SidecarState = .starting
    private var watchers: [UUID: AsyncStream<SidecarState>.Continuation] = [:]

    private init(_ options: SidecarOptions, _ launch: @escaping Launch) {
        self.options = options
        handlers = options.handlers
        let hello = InitializeParams(
            protocol: .sidecar,
            versions: protocolVersions,
            client: ClientInfo(name: options.clientName, version: options.clientVersion),
            processId: Int(ProcessInfo.processInfo.processIdentifier),
            capabilities: handlers.capabilities,
            tools: handlers.tools.map(\.offer)
        )
        let uses = Link.Uses(
            launch: launch,
            serve: { [weak self] method, frame in
                guard let self else { throw CancellationError() }
                return try await self.handlers.serve(method, frame)
            },
            hear: { [weak self] in self?.hear($0, $1) },
            reattach: { [weak self] in try await self?.reattach($0) },
            ended: { [weak self] in self?.end($0) },
            changed: { [weak self] in self?.change($0) }
        )
        link = Link(hello, uses)
    }

    /// Start a sidecar. A process that dies is started again, and its chats continue after their last event.
    public static func spawn(_ options: SidecarOptions = SidecarOptions()) async throws -> Sidecar {
        try await connect(options) { try options.launch() }
    }

    /// As `spawn`, with anything that makes a transport in place of a program.
    public static func connect(
        _ options: SidecarOptions = SidecarOptions(), launch: @escaping @Sendable () async throws -> any Transport
    ) async throws -> Sidecar {
        let app = Sidecar(options, launch)
        try await app.link.start()
        return app
    }

    /// What the present process answered to `initialize`.
    public var server: InitializeResult? { link.server }

    public var processId: Int32? { link.processId }

    /// How often the sidecar was started again.
    public var restarts: Int { link.restarts }

    /// The state now and each one that follows. Ends when the sidecar failed or was closed.
    public var states: AsyncStream<SidecarState> {
        let (stream, source) = AsyncStream.makeStream(of: SidecarState.self)
        source.yield(state)
        if state.isFinal {
            source.finish()
            return stream
        }
        let id = UUID()
        watchers[id] = source
        source.onTermination = { [weak self] _ in
            Task { @SidecarActor in self?.watchers[id] = nil }
        }
        return stream
    }

    /// Any method of the contract, with its types; cancelling the task cancels the request.
    public func call<Method: Call>(_ method: Method.Type, _ params: Method.Params) async throws -> Method.Result {
        try await link.ask(method, params)
    }

    /// Open a chat: resume it, or create it when there is none. The same object for the same session.
    public func chat(
        _ chatId: String? = nil, projectPath: String? = nil, namespace: String? = nil, sessionId: String? = nil,
        config: ChatConfig? = nil, ifMissing: ChatOpenParamsIfMissing? = nil, turns: Int = 30
    ) async throws -> Chat {
        let params = ChatOpenParams(
            chatId: chatId, projectPath: projectPath, namespace: namespace, sessionId: sessionId,
            ifMissing: ifMissing, tail: Tail(turns: turns), config: config)
        return adopt(params, try await link.ask(Methods.ChatOpen.self, params))
    }

    /// The chat of a `chat/open` or a `chat/fork` that was sent by `call`.
    public func adopt(_ params: ChatOpenParams, _ opened: ChatOpenResult) -> Chat {
        if let known = chats[opened.sessionId] {
            known.take(opened)
            return known
        }
        let chat = Chat(link, feed(opened.sessionId), params, opened, options.cursors)
        chats[opened.sessionId] = chat
        return chat
    }

    /// No more events of the chat; a running turn continues.
    public func close(_ chat: Chat) async throws {
        chats[chat.sessionId] = nil
        feeds[chat.sessionId] = nil
        _ = try await link.ask(Methods.ChatClose.self, Key(sessionId: chat.sessionId))
    }

    /// Shut the sidecar down; done when its process is gone.
    public func close() async {
        await link.stop()
    }

    /// The chats, newest activity first.
    public func chats(_ filters: ChatListParams = ChatListParams()) async throws -> ChatListResult {
        try await link.ask(Methods.ChatList.self, filters)
    }

    public func models(provider: String? = nil) async throws -> [ModelInfo] {
        try await link.ask(Methods.ModelsList.self, ModelsListParams(provider: provider)).items
    }

    public func doctor() async throws -> DoctorRunResult {
        try await link.ask(Methods.DoctorRun.self, Empty())
    }

    /// Replace the app's tools, for this process and those after it.
    public func offerTools(_ tools: [Tool]) async throws {
        handlers.tools = tools
        let offered = tools.map(\.offer)
        link.hello.tools = offered
        _ = try await link.ask(Methods.ToolsOffer.self, ToolsOfferParams(tools: offered))
    }

    private func reattach(_ connection: Connection) async throws {
        for chat in chats.values { try await chat.reopen(connection) }
    }

    private func end(_ death: SidecarDied) {
        for feed in feeds.values { feed.fail(death) }
    }

    private func change(_ state: SidecarState) {
        self.state = state
        options.onState?(state)
        for watcher in watchers.values {
            watcher.yield(state)
            if state.isFinal { watcher.finish() }
        }
    }

    /// What this version does not understand is ignored.
    private func hear(_ method: String, _ frame: Data) {
        if method == "event", let event = try? JSONDecoder().decode(WithParams<Event>.self, from: frame).params {
            feed(event.sessionId).receive(event)
        } else if method == "status",
            let status = try? JSONDecoder().decode(WithParams<Status>.self, from: frame).params
        {
            if case .access(let change) = status { chats[change.data.sessionId]?.note(change.data.access) }
            options.onStatus?(status)
        }
    }

    private func feed(_ sessionId: String) -> Feed {
        if let feed = feeds[sessionId] { return feed }
        let feed = Feed { [link] after in
            let params = EventsReadParams(after: after, sessionId: sessionId, limit: pageEvents)
            return try await link!.ask(Methods.EventsRead.self, params).events
        }
        feeds[sessionId] = feed
        return feed
    }
}

extension SidecarState {
    /// No other state follows.
    public var isFinal: Bool {
        switch self {
        case .failed, .closed: true
        default: false
        }
    }
}

extension Chat {
    func note(_ access: AccessDataAccess) {
        self.access = ChatOpenResultAccess(rawValue: access.rawValue)
    }
}
