// Bytes to messages: one JSON object per line. Splits at LF only, as a JSON string may contain U+2028.
import Foundation

/// Larger frames come from no sidecar: its own limit is half of it.
let maxIncomingBytes = 64 * 1024 * 1024

/// Cuts a stream of bytes into lines.
struct LineSplitter {
    private var rest = Data()

    /// The whole lines that `chunk` completes. Throws when a line is longer than any frame.
    mutating func feed(_ chunk: Data) throws -> [Data] {
        var lines: [Data] = []
        var start = chunk.startIndex
        while let end = chunk[start...].firstIndex(of: 0x0a) {
            lines.append(rest + chunk[start..<end])
            rest = Data()
            start = chunk.index(after: end)
        }
        rest.append(chunk[start...])
        guard rest.count <= maxIncomingBytes else {
            throw SidecarError("A frame of over \(maxIncomingBytes) bytes")
        }
        return lines
    }
}
