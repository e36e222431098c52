// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "SidecarClient",
    platforms: [.macOS(.v13)],
    products: [.library(name: "SidecarClient", targets: ["SidecarClient"])],
    targets: [
        .target(name: "SidecarClient"),
        // An app that the tests kill at any moment.
        .executableTarget(name: "Recorder", dependencies: ["SidecarClient"], path: "Tests/Recorder"),
        .testTarget(name: "SidecarClientTests", dependencies: ["SidecarClient"]),
    ],
    swiftLanguageModes: [.v6]
)
