// The order of a chat's events: nothing lost, nothing doubled, whatever arrives. Knows no prompt and no process.
//
// A `Feed` takes the events of one chat as they arrive; each `Subscription` has a cursor of its own and applies the
// contract's rule: ignore if seq <= last; apply if from = last + 1; otherwise read the journal. The journal is also
// the buffer: a slow loop drops what it cannot hold and reads it later.
import Foundation

/// Events that wait in a subscription; one has up to 64 KiB of text, so some 32 MiB at worst.
let maxQueued = 512

/// Events kept while the result of `chat/open` is on its way; older ones come from the journal.
private let maxEarly = 256

extension Event {
    /// The first seq that it stands for: a combined run of deltas has several.
    public var firstSeq: Int { from ?? seq }
}

/// What has arrived of one chat. `epoch` is empty until the chat is open.
@SidecarActor
final class Feed {
    /// The stored events of the chat after a cursor, at least one if there is any.
    typealias Read = @SidecarActor (Cursor) async throws -> [Event]

    private(set) var epoch = ""
    private(set) var last = 0
    var watch: (@SidecarActor (Event) -> Void)?
    let read: Read
    private var subscriptions: [ObjectIdentifier: Subscription] = [:]
    private var early: [Event] = []

    init(_ read: @escaping Read) {
        self.read = read
    }

    /// The chat is at `seq`; what arrived before this was known counts from here on.
    func open(epoch: String, seq: Int) {
        self.epoch = epoch
        last = seq
        let waiting = early
        early = []
        for event in waiting { receive(event) }
    }

    func receive(_ event: Event) {
        if event.epoch != epoch {
            early.append(event)
            if early.count > maxEarly { early.removeFirst() }
        } else if event.seq > last {
            last = event.seq
            watch?(event)
            for subscription in subscriptions.values { subscription.push(event) }
        }
    }

    /// The journal is known to reach to `seq`, though no event said so.
    func catchUp(_ seq: Int) {
        last = max(last, seq)
        for subscription in subscriptions.values { subscription.reach(seq) }
    }

    /// Whoever follows gets `error` after what has arrived.
    func fail(_ error: any Error) {
        let failed = subscriptions.values
        subscriptions = [:]
        for subscription in failed { subscription.fail(error) }
    }

    /// Follow from now on, or from an earlier seq.
    func subscribe(after seq: Int? = nil) -> Subscription {
        let subscription = Subscription(self, after: seq ?? last)
        subscriptions[ObjectIdentifier(subscription)] = subscription
        return subscription
    }

    func unsubscribe(_ subscription: Subscription) {
        subscriptions[ObjectIdentifier(subscription)] = nil
    }
}

/// The events of a chat in order, from a cursor on.
@SidecarActor
final class Subscription {
    private(set) var last: Int
    let epoch: String
    private let feed: Feed
    private var high: Int
    private var queue: [Event] = []
    private var failure: (any Error)?
    private var news = Deferred<Void>()
    private(set) var closed = false

    init(_ feed: Feed, after seq: Int) {
        self.feed = feed
        last = seq
        epoch = feed.epoch
        high = feed.last
    }

    /// How many events it holds in memory.
    var held: Int { queue.count }

    /// The next event; nil after `close`.
    func next() async throws -> Event? {
        while !closed {
            guard let event = queue.first else {
                try await awaitNews()
                continue
            }
            if event.seq <= last {
                queue.removeFirst()
            } else if event.firstSeq == last + 1 {
                queue.removeFirst()
                last = event.seq
                return event
            } else {
                try await readJournal()
            }
        }
        return nil
    }

    func close() {
        closed = true
        feed.unsubscribe(self)
        news.settle()
    }

    func push(_ event: Event) {
        if queue.count < maxQueued { queue.append(event) }
        reach(event.seq)
    }

    func reach(_ seq: Int) {
        high = max(high, seq)
        news.settle()
    }

    func fail(_ error: any Error) {
        failure = error
        news.settle()
    }

    /// Go back to `seq`: what followed it comes again.
    func rewind(_ seq: Int) {
        last = min(last, seq)
    }

    private func awaitNews() async throws {
        if let failure { throw failure }
        if high > last { return try await readJournal() }
        news = Deferred()
        try await news.value
    }

    private func readJournal() async throws {
        let page = try await feed.read(Cursor(epoch: epoch, seq: last))
        guard let first = page.first, first.firstSeq == last + 1 else {
            throw SidecarError("The journal does not continue after \(last), though \(high) was announced")
        }
        queue.insert(contentsOf: page, at: 0)
    }
}
