//! The location of the configuration: only where the operator pointed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Folder, TinyComponent, ToolbayCommand};

/// Creates a folder with plugins, and a folder of another user with an invalid `toolbay.toml`, so
/// that reading that file would be an error.
fn folders() -> (Folder, Folder) {
    let own = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let hostile = Folder::new();
    hostile.write_config("[otel]\nendpoint = 7\n");
    (own, hostile)
}

#[test]
fn a_server_reads_nothing_from_the_folder_in_which_a_client_starts_it() {
    let (own, project) = folders();
    let plugins = own.plugin_folder().display().to_string();
    // Verifies that the file would be an error if it were read.
    assert_eq!(ToolbayCommand::new(&project).args(["serve"]).run().code, 64);
    for command in [
        &["serve"][..],
        &["list"],
        &["call", "a"],
        &["compile"],
        &["state", "list"],
    ] {
        let words = [command, &["--plugins", &plugins]].concat();
        let outcome = ToolbayCommand::new(&project).args(&words).run();
        assert_eq!(outcome.code, 0, "{words:?}: {outcome}");
        let outcome = ToolbayCommand::new(&project)
            .args(command)
            .env("TOOLBAY_PLUGINS", &plugins)
            .run();
        assert_eq!(outcome.code, 0, "{command:?}: {outcome}");
    }
    let outcome = ToolbayCommand::new(&project)
        .args(["serve", "--plugins", &plugins])
        .run();
    let beside = own.sibling_path("toolbay.toml").display().to_string();
    assert!(
        outcome.stderr.contains(&format!(
            "no configuration file was read: {beside} does not exist"
        )),
        "{outcome}"
    );
}

#[test]
fn a_file_next_to_the_plugin_folder_is_read_and_named_in_the_log() {
    let (own, project) = folders();
    own.write_config("page_size = 7\n");
    let plugins = own.plugin_folder().display().to_string();
    let beside = own.sibling_path("toolbay.toml").display().to_string();
    let serve = |words: &[&str]| {
        ToolbayCommand::new(&project)
            .args([&["serve", "--plugins", &plugins], words].concat())
            .run()
    };
    let outcome = serve(&[]);
    assert!(
        outcome
            .stderr
            .contains(&format!("the configuration was read from {beside}")),
        "{outcome}"
    );
    let outcome = serve(&["--no-config"]);
    assert!(
        outcome.stderr.contains("no configuration file was read")
            && !outcome.stderr.contains(&beside),
        "{outcome}"
    );
    assert_eq!(serve(&["--no-config", "--config", &beside]).code, 2);
    // The variable names a file, and the flag disables the file.
    let theirs = project.sibling_path("toolbay.toml").display().to_string();
    let with = |words: &[&str]| {
        let words = [&["list", "--plugins", &plugins], words].concat();
        ToolbayCommand::new(&project)
            .args(words)
            .env("TOOLBAY_CONFIG", &theirs)
            .run()
            .code
    };
    assert_eq!((with(&[]), with(&["--no-config"])), (64, 0));
}

#[test]
fn a_configuration_that_others_can_write_is_used_only_if_it_is_named() {
    let (own, project) = folders();
    own.write_config("page_size = 7\n");
    let plugins = own.plugin_folder().display().to_string();
    let file = own.sibling_path("toolbay.toml");
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let list = |words: &[&str]| {
        ToolbayCommand::new(&project)
            .args([&["list", "--plugins", &plugins], words].concat())
            .run()
    };
    let outcome = list(&[]);
    assert_eq!(outcome.code, 64, "{outcome}");
    assert!(
        outcome
            .stderr
            .contains("it can be written by other accounts (mode 0666)"),
        "{outcome}"
    );
    assert_eq!(list(&["--no-config"]).code, 0);
    assert_eq!(list(&["--config", &file.display().to_string()]).code, 0);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(list(&[]).code, 0);
    // A user who can write to the folder can put another file there.
    fs::set_permissions(own.root(), Permissions::from_mode(0o777)).unwrap();
    let outcome = list(&[]);
    assert!(
        outcome
            .stderr
            .contains("its folder can be written by other accounts (mode 0777)"),
        "{outcome}"
    );
}

#[test]
fn a_mount_cannot_change_the_configuration_of_the_next_start() {
    let (own, project) = folders();
    // The plugins are in another folder, so that the mount contains only the configuration.
    let file = project.sibling_path("toolbay.toml");
    fs::write(&file, "page_size = 7\n").unwrap();
    let mount = format!(
        "[[permissions.mounts]]\nhost = {:?}\nguest = \"/project\"\naccess = \"read-write\"\n",
        project.root().display().to_string()
    );
    own.put("a.toml", mount);
    let plugins = own.plugin_folder().display().to_string();
    let file = file.display().to_string();
    let outcome = ToolbayCommand::new(&own)
        .args(["list", "--plugins", &plugins, "--config", &file])
        .run();
    assert!(
        outcome.stdout.contains("the server's configuration"),
        "{outcome}"
    );
}

#[test]
fn a_header_file_needs_the_same_permissions_as_a_secret_file() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let key = folder.sibling_path("key");
    fs::write(&key, "s3cret").unwrap();
    folder.write_config(
        "[otel]\nendpoint = \"http://127.0.0.1:9\"\n[otel.headers]\nx-key = { file = \"key\" }\n",
    );
    for (mode, code) in [(0o644, 64), (0o600, 0)] {
        fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        let outcome = ToolbayCommand::new(&folder).args(["serve"]).run();
        assert_eq!(outcome.code, code, "{outcome}");
        assert_eq!(
            outcome
                .stderr
                .contains("is open to other users (mode 0644); make it 0600"),
            code == 64,
            "{outcome}"
        );
    }
}

#[test]
fn a_file_with_a_similar_name_is_not_ignored() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    for name in [
        "toolbay.TOML",
        "Toolbay.toml",
        "toolbay.toml.txt",
        "toolbay.tml",
        "toolbay.toml.toml",
        "toolbay (1).toml",
        "toolbay.toml\u{200b}",
    ] {
        fs::write(folder.sibling_path(name), "require_approval = \"always\"\n").unwrap();
        for command in [&["serve"][..], &["call", "a"]] {
            let outcome = ToolbayCommand::new(&folder).args(command).run();
            assert_eq!(outcome.code, 64, "{name:?}: {outcome}");
            assert!(
                outcome
                    .stderr
                    .contains("looks like the configuration file, whose name must be toolbay.toml"),
                "{name:?}: {outcome}"
            );
        }
        let outcome = ToolbayCommand::new(&folder)
            .args(["list", "--no-config"])
            .run();
        assert_eq!(outcome.code, 0, "{outcome}");
        fs::remove_file(folder.sibling_path(name)).unwrap();
    }
    for name in [
        "toolbay.toml.bak",
        "toolbay.toml~",
        "other.toml",
        "pyproject.toml",
    ] {
        fs::write(folder.sibling_path(name), "nothing").unwrap();
    }
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    assert_eq!(outcome.code, 0, "{outcome}");
    // Next to the right file, another one is a copy.
    folder.write_config("page_size = 7\n");
    fs::write(folder.sibling_path("toolbay (1).toml"), "nothing").unwrap();
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    assert_eq!(outcome.code, 0, "{outcome}");
}

#[test]
fn a_variable_that_is_not_text_is_not_ignored() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    for name in [
        "TOOLBAY_REQUIRE_APPROVAL",
        "TOOLBAY_AUDIT_FOLDER",
        "TOOLBAY_CONFIG",
        "TOOLBAY_PLUGINS",
    ] {
        for command in [&["serve"][..], &["list"]] {
            let outcome = ToolbayCommand::new(&folder)
                .args(command)
                .with_shell_wrapper(&format!(
                    "{name}=$(printf 'always\\377') && export {name} && exec \"$@\""
                ))
                .run();
            assert_eq!(outcome.code, 64, "{name}: {outcome}");
            let why = format!("{name}: the environment variable is not valid UTF-8");
            assert!(outcome.stderr.contains(&why), "{outcome}");
        }
    }
}
