// What can go wrong between an app and its sidecar.
//
//     RpcError        the sidecar answered with an error
//     SidecarDied     the process is gone; has its exit code and the last lines of its stderr
//     ChatReplaced    the chat was deleted and created again while its events were followed
//     TurnFailed      a turn ended with an error, where only its text was asked for
//     SidecarError    anything else that the client could not bring to its end
import Foundation

/// An error of the contract, as it came from the sidecar or as it is sent to it.
public struct RpcError: Error, Sendable, Equatable, LocalizedError {
    public let code: Int
    public let message: String
    public let data: ErrorDetails?

    public init(code: Int, message: String, data: ErrorDetails? = nil) {
        self.code = code
        self.message = message
        self.data = data
    }

    /// The name of the error, such as `not_found`; empty when the sidecar gave none.
    public var name: String { data?.name ?? "" }
    /// What exactly failed; a name of the error's list of reasons.
    public var reason: String? { data?.reason }
    public var errorDescription: String? { message }

    static func named(_ name: String, _ code: Int, _ message: String) -> RpcError {
        RpcError(code: code, message: message, data: ErrorDetails(name: name, retryable: false))
    }
}

/// The process is gone. `exitCode` is nil where it never started, and negative for a signal.
public struct SidecarDied: Error, Sendable, Equatable, LocalizedError {
    public let summary: String
    public let exitCode: Int32?
    /// The last lines that it wrote, for a report.
    public let stderr: String

    public init(_ summary: String, exitCode: Int32? = nil, stderr: String = "") {
        self.summary = summary
        self.exitCode = exitCode
        self.stderr = stderr
    }

    public var errorDescription: String? { stderr.isEmpty ? summary : "\(summary)\n\(stderr)" }
}

/// The journal that a loop followed is no longer there; open the chat again to see what is.
public struct ChatReplaced: Error, Sendable, Equatable, LocalizedError {
    public let sessionId: String

    public var errorDescription: String? {
        "The chat \(sessionId) was deleted and created again while its events were followed"
    }
}

/// The turn ended with `error`; what it had said until then is `text`.
public struct TurnFailed: Error, Sendable, Equatable, LocalizedError {
    public let error: ErrorObject
    public let text: String

    public var errorDescription: String? { error.message }
}

/// The client could not bring something to its end.
public struct SidecarError: Error, Sendable, Equatable, LocalizedError {
    public let message: String

    init(_ message: String) {
        self.message = message
    }

    public var errorDescription: String? { message }
}
