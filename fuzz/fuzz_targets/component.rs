//! A file in the plugin folder.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolbay_fuzz::plugin;
use toolbay_fuzz_properties::Components;

/// Names a file that the component is written to before it is loaded: what a test keeps of a finding.
const SAVE: &str = "TOOLBAY_FUZZ_SAVE";

static COMPONENTS: LazyLock<Components> = LazyLock::new(|| {
    // Not removed at the end, because a fuzzer has none: so always the same, for each process that runs.
    let folder = std::env::temp_dir().join(format!("toolbay-fuzz-{}", std::process::id() % 8));
    Components::new(Path::new(&folder)).expect("a server starts")
});

fuzz_target!(|bytes: &[u8]| {
    let Some(component) = plugin::component(bytes) else { return };
    if let Some(path) = std::env::var_os(SAVE) {
        std::fs::write(path, &component).expect("the component is saved");
    }
    COMPONENTS.check(&component);
});
