// Finds the program `sidecar`: in the app's bundle, or on PATH.
import Foundation

extension Sidecar {
    /// The absolute path of the program. Looks in this order, so that what an app ships comes before what a machine
    /// happens to have: `Contents/Helpers/sidecar/sidecar`, `Contents/Helpers/sidecar`,
    /// `Contents/Resources/sidecar/sidecar`, `Contents/MacOS/sidecar`, then each folder of PATH.
    public nonisolated static func locate(
        in bundle: Bundle = .main, path: String? = ProcessInfo.processInfo.environment["PATH"]
    ) throws -> URL {
        let contents = bundle.bundleURL.appendingPathComponent("Contents")
        let shipped = ["Helpers/sidecar/sidecar", "Helpers/sidecar", "Resources/sidecar/sidecar", "MacOS/sidecar"]
        let folders = (path ?? "").split(separator: ":").filter { $0.hasPrefix("/") }
        let places = shipped.map { contents.appendingPathComponent($0) }
            + folders.map { URL(fileURLWithPath: String($0)).appendingPathComponent("sidecar") }
        guard let found = places.first(where: isProgram) else {
            throw SidecarDied(
                "Found no program `sidecar`: neither in the app's bundle nor on PATH. Copy it to Contents/Helpers,"
                    + " or set `executable`."
            )
        }
        return found
    }

    private nonisolated static func isProgram(_ url: URL) -> Bool {
        var isFolder: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder)
        return exists && !isFolder.boolValue && FileManager.default.isExecutableFile(atPath: url.path)
    }
}
