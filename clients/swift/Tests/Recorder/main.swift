// An app that can be killed at any moment: it appends each event to a file and sends prompts p-1 to p-N, the next one
// when the one before has ended. Arguments: the command as JSON, the file, N. Started again, it continues.
import Foundation
import SidecarClient

struct Line: Decodable {
    let type: String
    let seq: Int
    let epoch: String
    let turnId: String?
}

let words = CommandLine.arguments
let command = try JSONDecoder().decode([String].self, from: Data(words[1].utf8))
let file = URL(fileURLWithPath: words[2])
let count = Int(words[3])!

// The last line may be cut off.
let stored = ((try? String(contentsOf: file, encoding: .utf8)) ?? "").components(separatedBy: "\n").dropLast()
let events = try stored.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
let ended = Set(events.filter { $0.type == "turn.ended" }.map(\.turnId))
let done = events.filter { $0.type == "prompt.accepted" && ended.contains($0.turnId) }.count

let executable = URL(fileURLWithPath: command[0])
let app = try await Sidecar.spawn(SidecarOptions(executable: executable, arguments: Array(command.dropFirst())))
let chat = try await app.chat("tab-7")
let start = await Cursor(epoch: chat.cursor.epoch, seq: 0)
let followed = try await chat.events(after: events.last.map { Cursor(epoch: $0.epoch, seq: $0.seq) } ?? start)
let recording = Task {
    var left = count - done
    if left == 0 { return }
    if !FileManager.default.fileExists(atPath: file.path) { try Data().write(to: file) }
    let target = try FileHandle(forWritingTo: file)
    try target.seekToEnd()
    for try await event in followed {
        try target.write(contentsOf: try JSONEncoder().encode(event) + [0x0a])
        if case .turnEnded = event { left -= 1 }
        if left == 0 { break }
    }
}
for number in done..<count {
    let text = "Say \(number + 1): " + String(repeating: "word ", count: 40)
    _ = try await chat.prompt(text, PromptOptions(promptId: "p-\(number + 1)")).text()
}
try await recording.value
await app.close()
