// The generated types: every message of the recorded conversations, and what a later version may add.
import Foundation
import XCTest

@testable import SidecarClient

final class TypesTests: XCTestCase {
    func testAnEventOfALaterVersionKeepsItsPlace() throws {
        let frame = """
            {"sessionId": "s", "chatId": null, "epoch": "e", "seq": 7, "from": 5, "ts": 1, "turnId": "t",
             "type": "hologram.shown", "data": {"depth": 3}, "later": true}
            """
        let event = try JSONDecoder().decode(Event.self, from: Data(frame.utf8))
        guard case .other(let other) = event else { return XCTFail() }
        XCTAssertEqual(other.data, ["depth": .integer(3)])
        XCTAssertEqual(event.type, "hologram.shown")
        XCTAssertEqual(event.turnId, "t")
        XCTAssertEqual([event.firstSeq, event.seq], [5, 7])
    }

    func testAValueOfALaterVersionIsUnknownAndComesBackAsItWas() throws {
        let reason = try JSONDecoder().decode(TurnReason.self, from: Data(#""bored""#.utf8))
        XCTAssertEqual(reason, .unknown("bored"))
        XCTAssertEqual(String(decoding: try JSONEncoder().encode(reason), as: UTF8.self), #""bored""#)
    }

    func testEveryEventOfTheTranscriptsIsReadAndWrittenAgainAsItWas() throws {
        var count = 0
        for message in try transcripts() {
            guard case .object(let members) = message, members["method"] == .string("event"),
                let params = members["params"]
            else { continue }
            let event = try JSONDecoder().decode(Event.self, from: try JSONEncoder().encode(params))
            if case .other = event { XCTFail("\(event.type) has no type of its own") }
            let again = try JSONDecoder().decode(JSONValue.self, from: try JSONEncoder().encode(event))
            XCTAssertEqual(again.withoutNulls, params.withoutNulls)
            count += 1
        }
        XCTAssertGreaterThan(count, 600)
    }

    func testEveryRequestOfTheTranscriptsIsRead() throws {
        var count = 0
        for message in try transcripts() {
            guard case .object(let members) = message, members["id"] != nil, case .string(let name)? = members["method"]
            else { continue }
            let frame = try JSONEncoder().encode(message)
            func read<Method: Call>(_ method: Method.Type) throws {
                _ = try JSONDecoder().decode(WithParams<Method.Params>.self, from: frame)
                count += 1
            }
            switch name {
            case Requests.PermissionRequestCall.name: try read(Requests.PermissionRequestCall.self)
            case Requests.InputRequestCall.name: try read(Requests.InputRequestCall.self)
            case Requests.ToolCall.name: try read(Requests.ToolCall.self)
            case Requests.FsReadBuffer.name: try read(Requests.FsReadBuffer.self)
            default: break
            }
        }
        XCTAssertGreaterThan(count, 8)
    }

    private func transcripts() throws -> [JSONValue] {
        let folder = root.appendingPathComponent("protocol/transcripts")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return try files.filter { $0.pathExtension == "jsonl" }.flatMap { file in
            try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
                let value = try JSONDecoder().decode(JSONValue.self, from: Data(line.utf8))
                guard case .object(let members) = value else { return nil }
                return members["message"]
            }
        }
    }
}

extension JSONValue {
    /// A member that is null and may be absent is written as absent.
    fileprivate var withoutNulls: JSONValue {
        switch self {
        case .object(let members): .object(members.filter { $1 != .null }.mapValues(\.withoutNulls))
        case .array(let items): .array(items.map(\.withoutNulls))
        default: self
        }
    }
}
