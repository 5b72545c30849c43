//! Per-caller folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use super::{is_full, run_steps, steps};
use crate::http::auth::token;
use crate::support::{Folder, HttpServer, StdioServer, error_kind_and_text, hostile, result_text};

const MOUNT: &str = "[[permissions.mounts]]\nhost = \"../notes\"\nguest = \"/notes\"\naccess = \"read-write\"\nscope = \"caller\"\n";

fn with_notes(more: &str) -> Folder {
    let folder = Folder::with("hostile.wasm", hostile());
    fs::create_dir(folder.sibling_path("notes")).unwrap();
    folder.put("hostile.toml", format!("{MOUNT}{more}"));
    folder
}

/// Calls the tool `file_steps` with a token.
fn call(server: &HttpServer, token: Option<&str>, all: &[&str]) -> Value {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer
        .iter()
        .map(|bearer| ("Authorization", bearer.as_str()))
        .collect();
    let params = json!({"name": "file_steps", "arguments": steps(all)});
    server
        .post_stateless("tools/call", params, &headers)
        .response_message()["result"]
        .clone()
}

#[test]
fn each_caller_has_a_folder_of_its_own() {
    let folder = with_notes("quota = \"10KiB\"");
    let (ada, one) = token("ada", "");
    let (ben, two) = token("ben", "");
    let server = HttpServer::start_with_config(&folder, &format!("{one}{two}")).wait_until_ready();
    assert_eq!(
        result_text(&call(
            &server,
            Some(&ada),
            &["list /notes", "fill /notes/a 9000"]
        )),
        "\nok"
    );
    assert_eq!(
        result_text(&call(
            &server,
            Some(&ben),
            &["list /notes", "fill /notes/b 9000"]
        )),
        "\nok"
    );
    assert_eq!(
        result_text(&call(
            &server,
            Some(&ada),
            &["list /notes", "length /notes/a"]
        )),
        "a\n9000"
    );
    for path in ["/notes/../ben/b", "/notes/../../token/ben/b", "/notes/b"] {
        let said = result_text(&call(&server, Some(&ada), &[&format!("length {path}")]));
        assert!(said.contains("os error"), "{path}: {said}");
    }
    // Each caller has its own quota.
    let said = result_text(&call(&server, Some(&ben), &["extend /notes/b 2000"]));
    assert!(is_full(&said), "{said}");
    for name in ["ada", "ben"] {
        let own = folder.sibling_path("notes/token").join(name);
        assert_eq!(
            fs::metadata(&own).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(super::folder_usage(&own), (9000, 1));
    }
    assert_eq!(
        fs::read_dir(folder.sibling_path("notes")).unwrap().count(),
        1
    );
}

#[test]
fn without_scope_all_callers_share_the_folder() {
    let folder = Folder::with("hostile.wasm", hostile());
    fs::create_dir(folder.sibling_path("notes")).unwrap();
    folder.put("hostile.toml", MOUNT.replace("scope = \"caller\"\n", ""));
    let (ada, one) = token("ada", "");
    let (ben, two) = token("ben", "");
    let server = HttpServer::start_with_config(&folder, &format!("{one}{two}")).wait_until_ready();
    assert_eq!(
        result_text(&call(&server, Some(&ada), &["write /notes/a hers"])),
        "ok"
    );
    assert_eq!(
        result_text(&call(&server, Some(&ben), &["read /notes/a"])),
        "hers"
    );
    assert_eq!(
        fs::read_to_string(folder.sibling_path("notes/a")).unwrap(),
        "hers"
    );
}

#[test]
fn a_caller_who_is_not_authenticated_has_no_folder() {
    let folder = with_notes("");
    let server = HttpServer::start(&folder).wait_until_ready();
    let (_, said) = error_kind_and_text(&call(&server, None, &["list /notes"]));
    let expected = "cannot mount the folder ../notes at /notes: it has a folder for each caller, and this caller is not \
        authenticated (see http.tokens) (hostile.toml:2)";
    assert_eq!(said, expected);
    assert_eq!(
        fs::read_dir(folder.sibling_path("notes")).unwrap().count(),
        0
    );
}

#[test]
fn the_folder_of_the_stdio_client_is_not_reached_through_a_link() {
    let folder = with_notes("");
    fs::create_dir(folder.sibling_path("elsewhere")).unwrap();
    let mut server = StdioServer::start(&folder);
    run_steps(&mut server, &[("write /notes/a 1", "ok")]);
    assert_eq!(
        fs::read_to_string(folder.sibling_path("notes/stdio/a")).unwrap(),
        "1"
    );
    fs::remove_dir_all(folder.sibling_path("notes/stdio")).unwrap();
    symlink("../elsewhere", folder.sibling_path("notes/stdio")).unwrap();
    let (_, said) = server.failure("file_steps", steps(&["write /notes/a 1"]));
    assert!(
        said.contains("it has something other than a folder in the place of stdio"),
        "{said}"
    );
    assert_eq!(
        fs::read_dir(folder.sibling_path("elsewhere"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn no_other_mount_can_write_to_the_folders_of_callers() {
    let folder = with_notes("");
    folder.put("same.wasm", hostile());
    folder.put("same.toml", format!("prefix = \"same\"\n{MOUNT}"));
    let mut server = StdioServer::start(&folder);
    // Another plugin can share the folders.
    server.wait_for_tool("same_echo");
    server.wait_for_tool("echo");
    folder.put(
        "same.toml",
        format!(
            "prefix = \"same\"\n{}",
            MOUNT.replace("scope = \"caller\"\n", "")
        ),
    );
    server.log.wait_for(
        "the mount of ../notes contains the mounted folders of the callers in ../notes of plugin \"hostile\", so the \
         plugin could change it",
    );
}
