// What the app answers when the sidecar asks: permissions, inputs, calls of the app's own tools, unsaved text.
//
// A handler runs in a task that is cancelled when its answer is no longer needed: somebody else decided, the turn was
// cancelled, or the sidecar is gone. A handler that throws never grants anything.
import Foundation

/// A tool of the app that the model may call.
public struct Tool: Sendable {
    public typealias Handler = @Sendable (ToolCallRequest) async throws -> ToolCallResult

    public let offer: OfferedTool
    public let handler: Handler

    public init(_ offer: OfferedTool, handler: @escaping Handler) {
        self.offer = offer
        self.handler = handler
    }

    /// A tool that answers with text. What it throws, the model gets as an error.
    public init(
        _ name: String, _ description: String, inputSchema: [String: JSONValue], kind: String? = nil,
        timeoutMs: Int? = nil, answer: @escaping @Sendable (ToolCallRequest) async throws -> String
    ) {
        offer = OfferedTool(
            name: name, description: description, inputSchema: inputSchema, kind: kind, timeoutMs: timeoutMs)
        handler = { ToolCallResult(text: try await answer($0)) }
    }
}

extension ToolCallResult {
    public init(text: String, isError: Bool? = nil) {
        self.init(content: [ContentBlock(type: .text, text: text)], isError: isError)
    }
}

extension PermissionAnswer {
    public static let allowOnce = PermissionAnswer(decision: .allowOnce)
    public static let denyOnce = PermissionAnswer(decision: .denyOnce)
}

/// The app's handlers. What there is none for is not offered to the sidecar.
public struct Handlers: Sendable {
    public typealias Permission = @Sendable (PermissionRequest) async throws -> PermissionAnswer
    /// Returns the values of the form by member, or nil if the user dismissed it.
    public typealias Input = @Sendable (InputRequest) async throws -> [String: JSONValue]?
    /// Returns the unsaved text of a file, or nil if it has none.
    public typealias ReadBuffer = @Sendable (ReadBufferRequest) async throws -> String?

    public var permission: Permission?
    public var input: Input?
    public var readBuffer: ReadBuffer?
    public var tools: [Tool]

    public init(
        permission: Permission? = nil, input: Input? = nil, readBuffer: ReadBuffer? = nil, tools: [Tool] = []
    ) {
        self.permission = permission
        self.input = input
        self.readBuffer = readBuffer
        self.tools = tools
    }

    var capabilities: ClientCapabilities {
        ClientCapabilities(
            permissions: permission == nil ? nil : true,
            input: input == nil ? nil : true,
            buffers: readBuffer == nil ? nil : true
        )
    }

    /// Answer a request of the sidecar; what this app does not offer is refused by name.
    func serve(_ method: String, _ frame: Data) async throws -> any Encodable & Sendable {
        switch method {
        case Requests.PermissionRequestCall.name:
            let request: PermissionRequest = try params(frame)
            if let permission { return await permit(permission, request) }
        case Requests.InputRequestCall.name:
            let request: InputRequest = try params(frame)
            if let input { return await fillIn(input, request) }
        case Requests.FsReadBuffer.name:
            let request: ReadBufferRequest = try params(frame)
            if let readBuffer { return ReadBufferResult(text: try await readBuffer(request)) }
        case Requests.ToolCall.name:
            let request: ToolCallRequest = try params(frame)
            return try await call(request)
        default: break
        }
        throw RpcError.named("method_not_found", ErrorCode.methodNotFound, "This client offers no \(method)")
    }

    private func params<Params: Decodable>(_ frame: Data) throws -> Params {
        do {
            return try JSONDecoder().decode(WithParams<Params>.self, from: frame).params
        } catch {
            throw RpcError.named("invalid_params", ErrorCode.invalidParams, "\(error)")
        }
    }

    private func permit(_ handler: Permission, _ request: PermissionRequest) async -> PermissionAnswer {
        if let answer = try? await handler(request) {
            if case .unknown = answer.decision {} else { return answer }
        }
        return PermissionAnswer(decision: .denyOnce, feedback: "The app could not ask its user.")
    }

    private func fillIn(_ handler: Input, _ request: InputRequest) async -> InputAnswer {
        guard let values = try? await handler(request) else { return InputAnswer(action: .cancel) }
        return InputAnswer(action: .accept, values: values)
    }

    private func call(_ request: ToolCallRequest) async throws -> ToolCallResult {
        guard let tool = tools.first(where: { $0.offer.name == request.name }) else {
            let message = "This client offers no tool \(request.name)"
            throw RpcError.named("method_not_found", ErrorCode.methodNotFound, message)
        }
        do {
            return try await tool.handler(request)
        } catch {
            return ToolCallResult(text: "\(error)", isError: true)
        }
    }
}
