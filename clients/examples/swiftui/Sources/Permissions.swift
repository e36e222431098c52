// Permissions that wait for the user, one sheet after the other.
import SidecarClient
import SwiftUI

@MainActor
@Observable
final class Permissions {
    struct Asked: Identifiable {
        let request: PermissionRequest
        let answer: (PermissionAnswer) -> Void
        var id: String { request.permissionId }
    }

    var current: Asked? {
        didSet {
            // A sheet that is dismissed without a button denies.
            if let old = oldValue, old.id != current?.id { old.answer(.denyOnce) }
        }
    }

    /// Ask the user. When the task is cancelled, the answer is needed no longer, and the sheet goes.
    func ask(_ request: PermissionRequest) async -> PermissionAnswer {
        while current != nil, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(100)) }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                var waiting: CheckedContinuation<PermissionAnswer, Never>? = waiter
                current = Asked(request: request) { answer in
                    waiting?.resume(returning: answer)
                    waiting = nil
                }
            }
        } onCancel: {
            Task { @MainActor in if self.current?.id == request.permissionId { self.current = nil } }
        }
    }
}

struct PermissionSheet: View {
    let asked: Permissions.Asked
    @Environment(Permissions.self) private var permissions

    var body: some View {
        VStack(alignment: .leading, spacing: 12) {
            Text(asked.request.title).font(.headline)
            ScrollView {
                Text(asked.request.changes.compactMap(\.unifiedDiff).joined(separator: "\n"))
                    .font(.body.monospaced())
                    .frame(maxWidth: .infinity, alignment: .leading)
            }
            HStack {
                ForEach(asked.request.options, id: \.label) { option in
                    Button(option.label) {
                        asked.answer(PermissionAnswer(decision: option.decision))
                        permissions.current = nil
                    }
                }
            }
        }
        .padding()
        .frame(minWidth: 480, minHeight: 240)
    }
}
