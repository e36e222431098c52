//! Starts the window; the page spawns Sidecar itself, as the capabilities allow.

#[cfg_attr(mobile, tauri::mobile_entry_point)]
pub fn run() {
    tauri::Builder::default()
        .plugin(tauri_plugin_shell::init())
        .run(tauri::generate_context!())
        .expect("the window could not be opened");
}
