// One prompt and the events of the turn that answers it. Knows neither processes nor the order of events.
//
// A prompt on its way (`Delivery`) outlives the loop over its `Answer`: ending the loop withdraws it.
import Foundation

/// How long ending a loop may wait for the sidecar to confirm the cancellation.
private let withdrawLimit: Duration = .seconds(2)

/// A prompt from the moment it is sent: how it was taken, and how to take it back.
@SidecarActor
final class Delivery {
    typealias Send = @SidecarActor @Sendable () async throws -> PromptSendResult

    let promptId: String
    var running = false
    var over = false
    private(set) var taken: PromptSendResult?
    private let link: Link
    private let send: Send
    private var outcome: Deferred<PromptSendResult>?

    nonisolated init(_ link: Link, promptId: String, send: @escaping Send) {
        self.link = link
        self.promptId = promptId
        self.send = send
    }

    /// Send the prompt, once. It is sent to its end also if the caller is cancelled.
    func accepted() -> Deferred<PromptSendResult> {
        if let outcome { return outcome }
        let sent = Deferred<PromptSendResult>()
        outcome = sent
        Task {
            do {
                let result = try await send()
                taken = result
                sent.settle(.success(result))
            } catch {
                over = true
                sent.settle(.failure(error))
            }
        }
        return sent
    }

    /// Take a waiting prompt out of the queue; cancel a running turn, unless it is another prompt's.
    func withdraw() async {
        _ = try? await outcome?.value
        guard !over, let taken, taken.disposition != .steered, taken.disposition != .command else { return }
        let waits = taken.disposition == .queued && !running
        if waits, (try? await link.ask(Methods.PromptRemove.self, removal(taken))) != nil { return }
        let cancel = TurnCancelParams(sessionId: taken.sessionId, turnId: taken.turnId, queue: .keep)
        _ = try? await link.ask(Methods.TurnCancel.self, cancel)
    }

    private func removal(_ taken: PromptSendResult) -> PromptRemoveParams {
        PromptRemoveParams(promptId: promptId, sessionId: taken.sessionId)
    }
}

/// The events of one turn, up to its `turnEnded`; of a command, its `commandResult`.
///
///     for try await event in chat.prompt("Hello") {
///         if case .messageDelta(let delta) = event { print(delta.data.text, terminator: "") }
///     }
///
/// The first step of the loop sends the prompt. Leaving the loop, or cancelling its task, cancels the turn.
public struct Answer: AsyncSequence, Sendable {
    public typealias Element = Event
    public typealias AsyncIterator = AsyncThrowingStream<Event, any Error>.AsyncIterator

    public let promptId: String
    private let run: AnswerRun

    init(_ delivery: Delivery, _ feed: Feed) {
        promptId = delivery.promptId
        run = AnswerRun(delivery, feed)
    }

    /// The same events as a stream. Each loop over it, or over the answer, continues where the last one was.
    public var events: AsyncThrowingStream<Event, any Error> {
        let ticket = Ticket(run)
        return AsyncThrowingStream { try await ticket.run.next() }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        events.makeAsyncIterator()
    }

    /// The whole answer, once it has ended. Throws `TurnFailed` when it ended with an error.
    public func text() async throws -> String {
        let ticket = Ticket(run)
        var text = ""
        while let event = try await ticket.run.next() {
            if case .messageDelta(let delta) = event { text += delta.data.text }
            if case .commandResult(let result) = event { text += result.data.markdown }
        }
        if let error = await run.ended?.data.error { throw TurnFailed(error: error, text: text) }
        return text
    }

    /// Why the turn ended; nil while it has not.
    public var reason: TurnReason? {
        get async { await run.ended?.data.reason }
    }

    /// The turn that answers, once the prompt is accepted.
    public var turnId: String? {
        get async { await run.turnId }
    }

    /// Cancel the turn and continue: the loop ends with its `turnEnded`.
    public func cancel() async {
        await run.withdraw()
    }

    /// End the loop: the turn is cancelled unless it is over. Waits for that at most two seconds.
    public func close() async {
        await run.close()
    }
}

/// Lives as long as somebody iterates: a loop that ends before its turn withdraws the prompt.
private final class Ticket: Sendable {
    let run: AnswerRun

    init(_ run: AnswerRun) {
        self.run = run
    }

    deinit {
        Task { [run] in await run.close() }
    }
}

@SidecarActor
private final class AnswerRun {
    private(set) var turnId: String?
    private(set) var ended: TurnEndedEvent?
    private let delivery: Delivery
    private let feed: Feed
    private var subscription: Subscription?
    private var acceptance: Deferred<PromptSendResult>?
    private var aborted = false
    private var closed = false

    nonisolated init(_ delivery: Delivery, _ feed: Feed) {
        self.delivery = delivery
        self.feed = feed
    }

    func next() async throws -> Event? {
        if closed { return nil }
        return try await withTaskCancellationHandler {
            do {
                let event = try await nextEvent()
                if delivery.over { await close() }
                return event
            } catch {
                if error is ChatReplaced { delivery.over = true }
                await close()
                throw error
            }
        } onCancel: {
            Task { @SidecarActor in self.abort() }
        }
    }

    func close() async {
        if closed { return }
        closed = true
        guard let subscription else { return }
        subscription.close()
        if !delivery.over { _ = await endsWithin(withdrawLimit) { await self.delivery.withdraw() } }
    }

    func withdraw() async {
        await delivery.withdraw()
    }

    private func abort() {
        aborted = true
        acceptance?.settle(.failure(CancellationError()))
        subscription?.close()
    }

    private func nextEvent() async throws -> Event {
        try Task.checkCancellation()
        if subscription == nil { subscription = feed.subscribe() }
        if delivery.taken == nil { try await accept() }
        while let event = try await subscription?.next() {
            guard concerns(event) else { continue }
            note(event)
            return event
        }
        if aborted { throw CancellationError() }
        throw SidecarError("The loop over this answer has ended")
    }

    /// Send the prompt, and find where its events begin.
    private func accept() async throws {
        let acceptance = Deferred<PromptSendResult>()
        self.acceptance = acceptance
        let outcome = delivery.accepted()
        Task {
            do {
                acceptance.settle(.success(try await outcome.value))
            } catch {
                acceptance.settle(.failure(error))
            }
        }
        if aborted { throw CancellationError() }
        let taken = try await acceptance.value
        turnId = taken.turnId
        if taken.disposition == .duplicate { subscription?.rewind(taken.seq - 1) }
        if taken.epoch != subscription?.epoch {
            // Sent to a process that died with its memory, then accepted by the next one, in a new journal.
            subscription?.close()
            subscription = feed.subscribe(after: taken.seq - 1)
        }
    }

    private func concerns(_ event: Event) -> Bool {
        if let turnId, event.turnId == turnId { return true }
        switch event {
        case .promptAccepted(let event): return event.data.turnId == turnId
        case .promptQueued(let event): return event.data.turnId == turnId
        case .promptEdited(let event): return event.data.turnId == turnId
        case .promptRemoved(let event): return event.data.turnId == turnId
        case .commandResult(let event): return event.data.promptId == delivery.promptId
        case .chatDeleted: return true
        case .queueUpdated: return !delivery.running
        default: return false
        }
    }

    private func note(_ event: Event) {
        switch event {
        case .turnStarted: delivery.running = true
        case .turnEnded(let event):
            ended = event
            delivery.over = true
        case .commandResult, .chatDeleted: delivery.over = true
        case .promptRemoved(let event) where event.data.promptId == delivery.promptId: delivery.over = true
        default: break
        }
    }
}
