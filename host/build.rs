//! Has the program built anew when a template that it embeds changes.

fn main() {
    for language in ["rust", "javascript", "typescript", "python", "go", "c", "cpp", "zig"] {
        for part in ["sdk", "template", "plain"] {
            println!("cargo::rerun-if-changed=../plugin-sdk/{language}/{part}");
        }
    }
}
