//! A file in the plugin folder.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolbay_fuzz::plugin;
use toolbay_fuzz_properties::Components;

/// The variable with the path of a file to which each component is written before it is loaded, so
/// that a test can keep a finding.
const SAVE: &str = "TOOLBAY_FUZZ_SAVE";

static COMPONENTS: LazyLock<Components> = LazyLock::new(|| {
    // A fuzzer does not end regularly and cannot remove the directory, so each process always uses
    // the same one.
    let folder = std::env::temp_dir().join(format!("toolbay-fuzz-{}", std::process::id() % 8));
    Components::new(Path::new(&folder)).expect("a server starts")
});

fuzz_target!(|bytes: &[u8]| {
    let Some(component) = plugin::component(bytes) else {
        return;
    };
    if let Some(path) = std::env::var_os(SAVE) {
        std::fs::write(path, &component).expect("the component is saved");
    }
    COMPONENTS.check(&component);
});
