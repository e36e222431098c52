"""Rows of what belongs to no single chat, and of a connection's end."""

from .row import Method

SYSTEM = [
    Method(
        "blob/put",
        "BlobPutParams",
        "BlobPutResult",
        "global",
        "Keep some bytes, to name them in a prompt's content.",
        {"data": "aGVsbG8=", "mimeType": "text/plain", "name": "hello.txt"},
    ),
    Method(
        "blob/read",
        "BlobReadParams",
        "BlobReadResult",
        "global",
        "Read kept bytes, or a range of them.",
        {"blobId": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "length": 4},
    ),
    Method(
        "providers/list",
        "Empty",
        "ProvidersListResult",
        "global",
        "The providers, where each is, and where its key comes from: the first thing that a settings page asks.",
    ),
    Method(
        "providers/configure",
        "ProvidersConfigureParams",
        "ProvidersConfigureResult",
        "global",
        "Give a provider its key, or take it back. The answer never has the key; `status` `models` follows.",
        {"provider": "openai", "apiKey": "sk-example-1234", "store": "memory"},
    ),
    Method(
        "providers/test",
        "ProvidersTestParams",
        "ProvidersTestResult",
        "global",
        "Ask a provider for its models: whether address and key are right, and if not, why.",
        {"provider": "openai"},
    ),
    Method("models/list", "ModelsListParams", "ModelsListResult", "global", "The models that can be chosen."),
    Method(
        "settings/read",
        "SettingsReadParams",
        "SettingsReadResult",
        "global",
        "Every setting with its value and the layer that it comes from.",
    ),
    Method(
        "settings/write",
        "SettingsWriteParams",
        "SettingsReadResult",
        "global",
        "Change settings in the user's or the project's file; comments and order survive.",
        {"scope": "user", "set": {"model": "echo:"}},
    ),
    Method(
        "project/trust",
        "ProjectTrustParams",
        "ProjectTrustResult",
        "global",
        "Let a project's own configuration take part in what runs code, or stop it.",
        {"path": "/home/ada/engine", "trusted": True},
    ),
    Method(
        "stats/read", "StatsReadParams", "StatsReadResult", "global", "Figures of a chat, a project or all."
    ),
    Method(
        "doctor/run",
        "Empty",
        "DoctorRunResult",
        "global",
        "Check the installation: ok, warn or fail, and what to do.",
    ),
    Method(
        "doctor/report",
        "DoctorReportParams",
        "DoctorReportResult",
        "global",
        "Write a zip for a bug report.",
        {"path": "/tmp/sidecar-report.zip", "redact": True},
    ),
    Method(
        "shutdown",
        "ShutdownParams",
        "ShutdownResult",
        "connection",
        "End turns, commit, and say the state of every chat. `exit` follows.",
        {"graceMs": 0},
    ),
]
