//! Rebuilds the program when a template that it embeds changes.

use std::path::Path;

fn main() {
    for language in [
        "rust",
        "javascript",
        "typescript",
        "python",
        "go",
        "c",
        "cpp",
        "zig",
        "kotlin",
    ] {
        for part in ["sdk", "template", "plain", "server"] {
            let folder = format!("../../plugin-sdk/{language}/{part}");
            // A missing folder would count as changed each time.
            if Path::new(&folder).is_dir() {
                println!("cargo::rerun-if-changed={folder}");
            }
        }
    }
}
