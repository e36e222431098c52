// A chat as a view shows it: a list of messages, made of turns and the events that follow them. A value without a
// process: an app with a view of its own can use it alone.
import Foundation

/// One entry of the list.
public struct ChatMessage: Identifiable, Equatable, Sendable {
    public enum Role: Equatable, Sendable {
        case user, assistant, thought, tool, plan, notice, error, other
    }

    /// Unique in the chat, and the same for as long as the item exists.
    public let id: String
    public let turnId: String
    public let role: Role
    public var text: String
    public var status: ItemStatus

    public var isRunning: Bool { status == .running }

    init(_ item: Item, role: Role, text: String) {
        id = item.id
        turnId = item.turnId
        self.role = role
        self.text = text
        status = item.status
    }

    init(_ item: Item) {
        switch item {
        case .user(let item):
            let said = item.text ?? item.content?.compactMap { $0.text ?? $0.name }.joined(separator: "\n")
            self.init(.user(item), role: .user, text: said ?? "")
        case .message(let value): self.init(item, role: .assistant, text: value.text ?? "")
        case .thought(let value): self.init(item, role: .thought, text: value.text ?? "")
        case .tool(let value): self.init(item, role: .tool, text: value.title ?? value.text ?? "")
        case .plan(let value): self.init(item, role: .plan, text: value.title ?? "")
        case .compaction(let value): self.init(item, role: .notice, text: value.title ?? "")
        case .command(let value): self.init(item, role: .assistant, text: value.text ?? value.title ?? "")
        case .notice(let value): self.init(item, role: .notice, text: value.title ?? value.text ?? "")
        case .error(let value):
            self.init(item, role: .error, text: value.error?.message ?? value.text ?? value.title ?? "")
        case .other(let value): self.init(item, role: .other, text: value.title ?? value.text ?? "")
        }
    }
}

/// The messages of a chat, brought up to date event by event.
public struct ChatTranscript: Equatable, Sendable {
    public private(set) var messages: [ChatMessage] = []
    public private(set) var title: String?
    public private(set) var state: ChatStateName = .idle
    /// Why the last turn failed; nil while one runs or after one that did not.
    public private(set) var problem: ErrorObject?
    /// The turns changed in a way that events alone do not tell (a rewind, a prompt that was edited and sent again):
    /// make a new transcript of `Chat.history`.
    public private(set) var isStale = false

    public init() {}

    /// The newest turns, as `chat/open` or `chat/history` has them.
    public init(turns: [Turn], title: String? = nil, state: ChatStateName = .idle) {
        messages = turns.filter { $0.hidden != true }.flatMap { $0.items.map { ChatMessage($0) } }
        self.title = title
        self.state = state
    }

    public mutating func apply(_ event: Event) {
        switch event {
        case .chatState(let event): state = event.data.state
        case .chatRenamed(let event): title = event.data.title
        case .chatRewound: isStale = true
        case .chatDeleted: messages = []
        case .turnStarted: problem = nil
        case .turnEnded(let event): end(event)
        default: applyToItem(event)
        }
    }

    private mutating func applyToItem(_ event: Event) {
        switch event {
        case .promptAccepted(let event): event.data.item.map { put(.user($0)) }
        case .messageStarted(let event): put(.message(event.data.item))
        case .messageDelta(let event): append(event.data.text, to: event.data.itemId)
        case .messageCompleted(let event): put(.message(event.data.item))
        case .thoughtStarted(let event): put(.thought(event.data.item))
        case .thoughtDelta(let event): append(event.data.text, to: event.data.itemId)
        case .thoughtCompleted(let event): put(.thought(event.data.item))
        case .toolStarted(let event): put(.tool(event.data.item))
        case .toolUpdated(let event): put(.tool(event.data.item))
        case .toolEnded(let event): put(.tool(event.data.item))
        case .planUpdated(let event): put(.plan(event.data.item))
        case .notice(let event): event.data.item.map { put(.notice($0)) }
        default: break
        }
    }

    private mutating func end(_ event: TurnEndedEvent) {
        problem = event.data.error
        for index in messages.indices where messages[index].turnId == event.turnId && messages[index].isRunning {
            messages[index].status = event.data.reason == .cancelled ? .cancelled : .interrupted
        }
    }

    /// The item as it is now. One without a text keeps what its deltas have said.
    private mutating func put(_ item: Item) {
        var message = ChatMessage(item)
        if let index = index(of: message.id) {
            if message.text.isEmpty { message.text = messages[index].text }
            messages[index] = message
        } else {
            messages.append(message)
        }
    }

    private mutating func append(_ text: String, to id: String) {
        if let index = index(of: id) { messages[index].text += text }
    }

    /// From the end: events are about the newest items.
    private func index(of id: String) -> Int? {
        messages.lastIndex { $0.id == id }
    }
}
