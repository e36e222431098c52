// One end of a JSON-RPC connection: messages to calls and calls to messages. Knows no method and no transport.
//
// Every request of the other side gets exactly one answer, also when its handler fails or is cancelled.
import Foundation

/// The id of a request: each side chooses its own.
enum RequestId: Codable, Hashable, Sendable {
    case number(Int)
    case text(String)

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int.self) {
            self = .number(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .number(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        }
    }
}

/// What every message may have; the rest is decoded when its type is known.
private struct Envelope: Decodable {
    let id: RequestId?
    let method: String?
    let error: WireError?
}

private struct WireError: Codable {
    let code: Int
    let message: String
    let data: ErrorDetails?

    init(_ error: RpcError) {
        (code, message, data) = (error.code, error.message, error.data)
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        code = try container.decode(Int.self, forKey: .code)
        message = try container.decode(String.self, forKey: .message)
        data = try? container.decode(ErrorDetails.self, forKey: .data)
    }
}

private struct Outgoing<Params: Encodable>: Encodable {
    var jsonrpc = "2.0"
    var id: RequestId?
    var method: String
    var params: Params
}

private struct Answered<Value: Encodable>: Encodable {
    var jsonrpc = "2.0"
    var id: RequestId
    var result: Value
}

private struct Refused: Encodable {
    var jsonrpc = "2.0"
    var id: RequestId
    var error: WireError
}

struct WithParams<Params: Decodable>: Decodable {
    let params: Params
}

struct WithResult<Value: Decodable>: Decodable {
    let result: Value
}

private struct CancelledId: Codable {
    let id: RequestId
}

/// Requests of both sides. A result is the frame it came in: whoever asked knows its type.
@SidecarActor
final class Peer {
    typealias Serve = @SidecarActor @Sendable (_ method: String, _ frame: Data) async throws -> any Encodable & Sendable
    typealias Hear = @SidecarActor @Sendable (_ method: String, _ frame: Data) -> Void

    private let write: @Sendable (Data) -> Void
    private let serve: Serve
    private let hear: Hear
    private var waiting: [RequestId: Deferred<Data>] = [:]
    private var calls: [RequestId: Task<Void, Never>] = [:]
    private var lastId = 0
    private var closed: (any Error)?

    /// `write` takes one message and must not wait.
    init(write: @escaping @Sendable (Data) -> Void, serve: @escaping Serve, hear: @escaping Hear) {
        self.write = write
        self.serve = serve
        self.hear = hear
    }

    /// Take one frame; one that is no message is ignored.
    func receive(_ frame: Data) {
        guard let message = try? JSONDecoder().decode(Envelope.self, from: frame) else { return }
        if let method = message.method {
            if let id = message.id {
                answer(id, method, frame)
            } else if method == "$/cancelRequest" {
                cancelCall(frame)
            } else {
                hear(method, frame)
            }
        } else if let id = message.id, let waiter = waiting.removeValue(forKey: id) {
            // A late answer finds no waiter and is ignored, instead of reaching the next request.
            if let error = message.error {
                waiter.settle(.failure(RpcError(code: error.code, message: error.message, data: error.data)))
            } else {
                waiter.settle(.success(frame))
            }
        }
    }

    /// Ask the other side; cancelling the task cancels the request there.
    func request<Params: Encodable & Sendable>(_ method: String, _ params: Params) async throws -> Data {
        if let closed { throw closed }
        try Task.checkCancellation()
        lastId += 1
        let id = RequestId.number(lastId)
        let frame = try encode(Outgoing(id: id, method: method, params: params))
        let waiter = Deferred<Data>()
        waiting[id] = waiter
        write(frame)
        return try await withTaskCancellationHandler {
            try await waiter.value
        } onCancel: {
            Task { @SidecarActor in self.cancelRequest(id) }
        }
    }

    func notify<Params: Encodable>(_ method: String, _ params: Params) {
        guard let frame = try? encode(Outgoing(id: nil, method: method, params: params)) else { return }
        write(frame)
    }

    /// From now on every request fails with `error`, and what is handled is cancelled.
    func close(_ error: any Error) {
        closed = error
        let waiters = waiting.values
        waiting = [:]
        for waiter in waiters { waiter.settle(.failure(error)) }
        for call in calls.values { call.cancel() }
        calls = [:]
    }

    private func cancelRequest(_ id: RequestId) {
        guard let waiter = waiting.removeValue(forKey: id) else { return }
        notify("$/cancelRequest", CancelledId(id: id))
        waiter.settle(.failure(CancellationError()))
    }

    private func answer(_ id: RequestId, _ method: String, _ frame: Data) {
        guard calls[id] == nil else {
            return refuse(id, .named("invalid_request", ErrorCode.invalidRequest, "The id is in use"))
        }
        calls[id] = Task {
            do {
                let result = try await serve(method, frame)
                finish(id) { try self.answered(id, result) }
            } catch let error as RpcError {
                finish(id) { self.refuse(id, error) }
            } catch {
                finish(id) { self.refuse(id, .named("internal_error", ErrorCode.internalError, "\(error)")) }
            }
        }
    }

    /// Once: a call that was cancelled has its answer.
    private func finish(_ id: RequestId, _ send: () throws -> Void) {
        guard calls.removeValue(forKey: id) != nil else { return }
        do {
            try send()
        } catch {
            refuse(id, .named("internal_error", ErrorCode.internalError, "\(error)"))
        }
    }

    /// The handler may ignore its cancellation: the answer does not wait for it.
    private func cancelCall(_ frame: Data) {
        guard let id = try? JSONDecoder().decode(WithParams<CancelledId>.self, from: frame).params.id,
            let call = calls[id]
        else { return }
        call.cancel()
        finish(id) {
            let message = "Cancelled by the side that asked"
            self.refuse(id, .named("request_cancelled", ErrorCode.requestCancelled, message))
        }
    }

    private func answered<Value: Encodable>(_ id: RequestId, _ result: Value) throws {
        write(try encode(Answered(id: id, result: result)))
    }

    private func refuse(_ id: RequestId, _ error: RpcError) {
        guard let frame = try? encode(Refused(id: id, error: WireError(error))) else { return }
        write(frame)
    }

    private func encode<Message: Encodable>(_ message: Message) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return try encoder.encode(message) + [0x0a]
    }
}
