// How far the app has handled the events of each chat, kept across its own restarts.
import Foundation

/// Where the last handled cursor of each chat is kept. An app with a database of its own implements this there.
public protocol CursorStore: Sendable {
    func cursor(of sessionId: String) throws -> Cursor?
    func save(_ cursor: Cursor, of sessionId: String) throws
}

/// A small file for each chat in a folder.
public struct CursorFolder: CursorStore {
    public let folder: URL

    /// The folder is made when the first cursor is saved.
    public init(_ folder: URL) {
        self.folder = folder
    }

    public func cursor(of sessionId: String) throws -> Cursor? {
        guard let data = try? Data(contentsOf: file(sessionId)) else { return nil }
        return try? JSONDecoder().decode(Cursor.self, from: data)
    }

    public func save(_ cursor: Cursor, of sessionId: String) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try JSONEncoder().encode(cursor).write(to: file(sessionId), options: .atomic)
    }

    private func file(_ sessionId: String) -> URL {
        folder.appendingPathComponent("\(sessionId).json")
    }
}
