// The app: one sidecar for all windows, started with the first chat and closed before the app ends.
import SidecarClient
import SwiftUI

@main
struct ChatApp: App {
    @NSApplicationDelegateAdaptor private var delegate: AppDelegate
    @State private var permissions = Permissions()

    var body: some Scene {
        WindowGroup {
            ChatView(chatId: "main", backend: Backend.shared)
                .environment(permissions)
                .task { await Backend.shared.use(permissions) }
        }
    }
}

final class AppDelegate: NSObject, NSApplicationDelegate {
    func applicationShouldTerminate(_ sender: NSApplication) -> NSApplication.TerminateReply {
        Task {
            await Backend.shared.close()
            sender.reply(toApplicationShouldTerminate: true)
        }
        return .terminateLater
    }
}

/// The app's sidecar, started when the first chat needs it.
actor Backend {
    static let shared = Backend()
    private var starting: Task<Sidecar, any Error>?
    private var permissions: Permissions?

    func use(_ permissions: Permissions) {
        self.permissions = permissions
    }

    func open(_ chatId: String) async throws -> (Sidecar, Chat) {
        let app = try await sidecar()
        return (app, try await app.chat(chatId))
    }

    func close() async {
        await (try? starting?.value)?.close()
    }

    private func sidecar() async throws -> Sidecar {
        if let starting { return try await starting.value }
        let support = URL.applicationSupportDirectory.appending(path: "Chat")
        var options = SidecarOptions(dataFolder: support, clientName: "Chat")
        options.cursors = CursorFolder(support.appending(path: "cursors"))
        options.handlers.permission = { [weak permissions] request in
            await permissions?.ask(request) ?? .denyOnce
        }
        let task = Task { [options] in try await Sidecar.spawn(options) }
        starting = task
        do {
            return try await task.value
        } catch {
            starting = nil  // the next window tries again
            throw error
        }
    }
}
