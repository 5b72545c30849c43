//! Files in the folder that are not plugins.

use std::fs::{self, File};
use std::path::Path;

use super::put;
use crate::support::{Folder, TinyComponent, ToolbayCommand, hostile};

/// Writes code that this server has compiled, under the name of a plugin.
fn compiled_code(folder: &Folder) {
    let other = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    fs::write(
        other.sibling_path("toolbay.toml"),
        "[compile]\ncache_folder = \"store\"",
    )
    .unwrap();
    let outcome = ToolbayCommand::new(&other).args(["compile"]).run();
    assert_eq!(outcome.code, 0, "{outcome}");
    let mut files = fs::read_dir(other.sibling_path("store/toolbay-compiled"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let code = files
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "cwasm")
        })
        .unwrap();
    put(folder, fs::read(code).unwrap());
}

fn fifo(path: &Path) {
    let status = std::process::Command::new("mkfifo")
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success());
}

cases! {
    compiled: Folder, "is compiled code, as in the compile cache: never loaded as code", compiled_code
        => refused(r#"not a WebAssembly file: it starts with "\x7fELF…", not with "\0asm""#);

    a_fifo: Folder, "is a FIFO without a writer", |folder| fifo(&folder.plugin_path("hostile.wasm"))
        => refused("not a regular file");

    a_device: Folder, "is a link to an endless device", |folder| folder.link("hostile.wasm", "/dev/zero")
        => refused("not a regular file");

    a_folder: Folder, "is a folder", |folder| fs::create_dir(folder.plugin_path("hostile.wasm")).unwrap()
        => noted("it is a folder");

    a_link_to_itself: Folder, "is a link to itself", |folder| folder.link("hostile.wasm", "hostile.wasm")
        => noted("it cannot be read: …");

    a_link_to_the_folder: Folder, "is a link to its own folder",
        |folder| folder.link("hostile.wasm", ".") => noted("it is a folder");

    a_link_to_nothing: Folder, "is a broken link with a terminal escape in its target",
        |folder| folder.link("hostile.wasm", "\u{1b}[2Jnowhere") => noted("it is a link to nowhere, which does not exist");

    a_loud_name: Folder, "has a name in capital letters", |folder| folder.put("hostile.WASM", TinyComponent::new(&["a"]).build())
        => noted("its name must end in .wasm in lower case");

    a_large_file: Folder, "is 70 MB in size",
        |folder| {
            let staged = folder.stage("large", "\0asm\x0d\0\x01\0");
            File::options().write(true).open(&staged).unwrap().set_len(70_000_000).unwrap();
            fs::rename(staged, folder.plugin_path("hostile.wasm")).unwrap();
        }
        => refused("the file is larger than 64.0 MiB (to allow more, raise server.component_size)");

    a_core_module: Folder, "is a core module", |folder| put(folder, wat::parse_str("(module)").unwrap())
        => refused("a core WebAssembly module that exports neither `_start` nor its own \
            functions, so it cannot be called; build it for wasm32-wasip2, or convert it with \
            `wasm-tools component new`");

    a_script: Folder, "is a script", |folder| put(folder, "#!/bin/sh\nrm -rf /\n")
        => refused(r##"not a WebAssembly file: it starts with "#!/bin/s", not with "\0asm""##);

    garbage_in_a_section: Folder, "is a component with invalid content",
        |folder| put(folder, b"\0asm\x0d\0\x01\0\x07\x04\xff\xff\xff\xff")
        => refused("invalid component: unexpected end-of-file (at offset 0xe)");

    another_component: Folder, "is a component for another host",
        |folder| put(folder, wat::parse_str("(component)").unwrap())
        => refused("exports no tools, prompts or resources of toolbay:plugin, and no function that can be a tool; it exports nothing \
            (is `export!(…)` missing?)");

    a_grant_for_grants: Folder, "may write to a folder that contains the plugin folder",
        |folder| {
            let mount = "[[permissions.mounts]]\nhost = \"..\"\nguest = \"/all\"\naccess = \"read-write\"";
            folder.put("hostile.toml", mount);
            put(folder, TinyComponent::new(&["a"]).build());
        }
        => refused("hostile.toml:2: the mount of .. contains the plugin folder, so the plugin could change it; mount a \
            smaller folder, or add `unsafe = true` to the mount to allow that");

    a_mounted_link: Folder, "has a mount whose folder is a link to a folder of the system",
        |folder| {
            std::os::unix::fs::symlink("/etc", folder.sibling_path("data")).unwrap();
            put(folder, hostile());
        }
        => tool("read_file", r#"{"path": "/data/passwd"}"#)
        => grant("[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"")
        => fails("none", "cannot mount the folder ../data at /data: it is reached through a symbolic link; write the path \
            that the link leads to (hostile.toml:2)");

    a_grant_for_more: Folder, "has a grant with unknown keys",
        |folder| {
            folder.put("hostile.toml", "[permissions]\nkernel = true");
            put(folder, TinyComponent::new(&["a"]).build());
        }
        => refused("hostile.toml:2:1: unknown key `kernel`; valid keys are …");
}
