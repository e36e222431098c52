// The window: messages, a field, and what the sidecar does.
import SidecarClient
import SwiftUI

struct ChatView: View {
    @State private var chat: ObservableChat
    @State private var draft = ""
    @Environment(Permissions.self) private var permissions

    init(chatId: String, backend: Backend) {
        _chat = State(initialValue: ObservableChat { try await backend.open(chatId) })
    }

    var body: some View {
        VStack(spacing: 0) {
            SidecarBar(state: chat.sidecar)
            ScrollView {
                LazyVStack(alignment: .leading, spacing: 12) {
                    ForEach(chat.messages) { MessageRow(message: $0) }
                }
                .padding()
            }
            .defaultScrollAnchor(.bottom)
            if let failure = chat.failure {
                Text(failure).foregroundStyle(.red).textSelection(.enabled).padding(.horizontal)
            }
            field
        }
        .task { await chat.run() }
        .sheet(item: Bindable(permissions).current) { PermissionSheet(asked: $0) }
    }

    private var field: some View {
        HStack {
            TextField("Message", text: $draft, axis: .vertical)
                .textFieldStyle(.roundedBorder)
                .onSubmit(send)
            if chat.isRunning {
                Button("Stop", role: .cancel, action: chat.stop)
            } else {
                Button("Send", action: send).disabled(!chat.isOpen || draft.isEmpty)
            }
        }
        .padding()
    }

    private func send() {
        guard chat.isOpen, !draft.isEmpty else { return }
        chat.send(draft)
        draft = ""
    }
}

private struct MessageRow: View {
    let message: ChatMessage

    var body: some View {
        Text(message.text.isEmpty && message.isRunning ? "…" : message.text)
            .textSelection(.enabled)
            .foregroundStyle(message.role == .thought || message.role == .tool ? .secondary : .primary)
            .padding(message.role == .user ? 8 : 0)
            .background(message.role == .user ? Color.accentColor.opacity(0.15) : .clear, in: .rect(cornerRadius: 8))
            .frame(maxWidth: .infinity, alignment: message.role == .user ? .trailing : .leading)
    }
}

/// Says nothing while the sidecar is ready.
private struct SidecarBar: View {
    let state: SidecarState

    var body: some View {
        switch state {
        case .restarting(let attempt, _, _):
            Label("Starting the assistant again (\(attempt) of 5)", systemImage: "arrow.clockwise").padding(6)
        case .failed(let death):
            DisclosureGroup(death.summary) { Text(death.stderr).font(.caption.monospaced()) }.padding(6)
        case .starting, .ready, .closed: EmptyView()
        }
    }
}
