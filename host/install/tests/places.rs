//! Tests the paths of configurations on each system.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolbay_install::{
    CLIENTS, ConfigFile, ConfigurationScope, EntryName, FileError, OperatingSystem,
    PathEnvironment, ServerEntry, WslEnvironment, client_with_id,
};

fn around(variables: &[(&str, &str)]) -> PathEnvironment {
    PathEnvironment {
        home: PathBuf::from("/home/ada"),
        project: PathBuf::from("/work/app"),
        variables: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        wsl: Some(WslEnvironment {
            distribution: "Ubuntu".to_owned(),
            drives: PathBuf::from("/mnt"),
            homes: vec![PathBuf::from("/mnt/c/Users/ada")],
        }),
    }
}

fn files(client: &str, around: &PathEnvironment) -> Vec<String> {
    let spots = client_with_id(client)
        .unwrap()
        .configuration_paths(ConfigurationScope::User, around);
    spots
        .iter()
        .map(|spot| spot.file.display().to_string())
        .collect()
}

#[test]
fn every_client_has_its_places() {
    let around = around(&[]);
    let mut said = String::new();
    for client in &CLIENTS {
        for scope in [ConfigurationScope::User, ConfigurationScope::Project] {
            for spot in client.configuration_paths(scope, &around) {
                let _ = writeln!(
                    said,
                    "{} · {scope:?} · {:?} · {}",
                    client.id,
                    spot.system,
                    spot.file.display()
                );
            }
        }
    }
    insta::assert_snapshot!(said);
}

#[test]
fn variables_move_them() {
    assert_eq!(
        files("codex", &around(&[("CODEX_HOME", "/etc/codex")])),
        ["/etc/codex/config.toml"]
    );
    assert_eq!(
        files("claude-code", &around(&[("CLAUDE_CONFIG_DIR", "here")])),
        ["/work/app/here/.claude.json"]
    );
    assert_eq!(
        files("zed", &around(&[("XDG_CONFIG_HOME", "/c")]))[0],
        "/c/zed/settings.json"
    );
    // An empty variable counts as unset, and a relative `XDG_CONFIG_HOME` is ignored.
    assert_eq!(
        files("codex", &around(&[("CODEX_HOME", "")]))[0],
        "/home/ada/.codex/config.toml"
    );
    assert_eq!(
        files("zed", &around(&[("XDG_CONFIG_HOME", "c")]))[0],
        "/home/ada/.config/zed/settings.json"
    );
}

#[test]
fn windows_starts_the_server_through_wsl_and_other_systems_cannot() {
    let around = around(&[]);
    let client = client_with_id("claude-desktop").unwrap();
    let server = ServerEntry::command(
        Path::new("/usr/bin/toolbay"),
        &["serve"],
        &[("--plugins", Path::new("/p"))],
    )
    .unwrap();
    let spots = client.configuration_paths(ConfigurationScope::User, &around);
    let on = |system: OperatingSystem| spots.iter().find(|spot| spot.system == system).unwrap();
    let windows = server
        .to_entry(client, on(OperatingSystem::Windows), around.wsl.as_ref())
        .unwrap();
    assert_eq!(windows["command"], "wsl.exe");
    assert_eq!(
        windows["args"],
        json!([
            "--distribution",
            "Ubuntu",
            "--exec",
            "/usr/bin/toolbay",
            "serve",
            "--plugins",
            "/p"
        ])
    );
    assert!(toolbay_install::is_toolbay(&windows));
    for (system, wsl) in [
        (OperatingSystem::MacOs, around.wsl.as_ref()),
        (OperatingSystem::Windows, None),
    ] {
        let error = server.to_entry(client, on(system), wsl).unwrap_err();
        assert!(error.to_string().contains("on another system"), "{error}");
    }
    // A file that the user names belongs to the system whose drive it is on, and has the format of
    // its path.
    let windsurf = client_with_id("windsurf").unwrap();
    let named = windsurf.configuration_at(
        Path::new("/mnt/c/Users/ada/.codeium/windsurf/mcp_config.json"),
        &around,
    );
    assert_eq!(
        (named.system, named.entry_format.url_key),
        (OperatingSystem::Windows, Some("serverUrl"))
    );
    assert_eq!(
        windsurf
            .configuration_at(Path::new("/x/mcp_config.json"), &around)
            .system,
        OperatingSystem::Linux
    );
}

#[test]
fn names_are_such_that_every_client_takes_them() {
    for name in ["toolbay", "a", "A-1_b", &"x".repeat(40)] {
        assert_eq!(EntryName::new(name).unwrap().as_str(), name);
    }
    for name in ["", "a b", "a.b", "é", "a\n", "\"", &"x".repeat(41)] {
        assert!(EntryName::new(name).is_err(), "{name:?}");
    }
}

#[test]
fn paths_that_no_configuration_can_have_are_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let strange = Path::new(std::ffi::OsStr::from_bytes(b"/\xff"));
    for program in [Path::new("toolbay"), strange] {
        assert!(ServerEntry::command(program, &[], &[]).is_err());
    }
}

#[test]
fn a_file_that_changed_meanwhile_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, "{}").unwrap();
    let file = ConfigFile::read(&path).unwrap();
    fs::write(&path, "{\"new\": 1}").unwrap();
    assert!(matches!(
        file.write("mine", false),
        Err(FileError::Changed(_))
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"new\": 1}");
    // A file that did not exist when it was read is not overwritten either.
    let other = folder.path().join("b.json");
    let file = ConfigFile::read(&other).unwrap();
    fs::write(&other, "theirs").unwrap();
    assert!(matches!(
        file.write("mine", false),
        Err(FileError::Changed(_))
    ));
    assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
}

#[test]
fn a_folder_that_cannot_be_written_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, "{}").unwrap();
    let file = ConfigFile::read(&path).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let written = file.write("mine", false);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // A user that may write everywhere, such as root, succeeds.
    if written.is_err() {
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }
}

#[test]
fn a_pipe_or_a_file_without_end_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    for path in [path.as_path(), Path::new("/dev/zero"), folder.path()] {
        let error = ConfigFile::read(path).unwrap_err();
        assert!(error.to_string().ends_with("it is not a file"), "{error}");
    }
    let large = folder.path().join("large");
    fs::File::create(&large)
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    assert!(
        ConfigFile::read(&large)
            .unwrap_err()
            .to_string()
            .ends_with("it has more than 64 MiB")
    );
}
