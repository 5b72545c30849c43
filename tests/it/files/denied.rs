//! Uses of files that a grant does not allow: the guest gets an ordinary error, and the operator
//! sees the denial with the line that would allow it.

use super::*;
use crate::support::{Folder, HttpServer, ToolbayCommand, hostile};

/// The message and the remedy of a denial.
type Denial = (String, String);

/// Starts a server with everything that reports denials, and a plugin with this grant. The folder
/// `data` is next to the plugin folder.
fn start_with_grant(grant: &str) -> HttpServer {
    let folder = Folder::with("hostile.wasm", hostile());
    fs::create_dir_all(folder.sibling_path("data/deep")).unwrap();
    fs::write(folder.sibling_path("data/file"), "hello").unwrap();
    fs::write(folder.sibling_path("secret"), "hush").unwrap();
    std::os::unix::fs::symlink("../secret", folder.sibling_path("data/outside")).unwrap();
    folder.put("hostile.toml", grant);
    folder.write_config("[audit]\nfolder = \"log\"\n");
    HttpServer::run(ToolbayCommand::new(&folder).args([
        "serve",
        "--http",
        "127.0.0.1:0",
        "--learn",
    ]))
    .wait_until_ready()
}

const READS: &str =
    "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"\n";
const WRITES: &str =
    "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read-write\"\n";

fn step_outcomes(server: &HttpServer, wanted: &[&str]) -> Vec<String> {
    let result = server.result(
        "tools/call",
        json!({"name": "file_steps", "arguments": steps(wanted)}),
    );
    crate::support::result_text(&result)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Returns the denials in the audit log, after the server has ended.
fn audited_denials(server: &mut HttpServer) -> Vec<Denial> {
    server.stop();
    let files = fs::read_dir(server.folder().sibling_path("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let text: String = texts
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |line: &Value, member: &str| line[member].as_str().unwrap_or_default().to_owned();
    lines
        .filter(|line| line["event"] == "denied")
        .map(|line| (word(&line, "message"), word(&line, "remedy")))
        .collect()
}

fn denial(what: &str, remedy: &str) -> Denial {
    (what.to_owned(), remedy.to_owned())
}

#[test]
fn a_path_without_a_grant_is_denied_and_shown_with_the_line_that_opens_its_folder() {
    let mut server = start_with_grant("");
    let said = step_outcomes(
        &server,
        &[
            "read /etc/passwd",
            "write /notes/a.txt hello",
            "list /srv/x",
            "read /etc/passwd",
            "length /etc/group",
        ],
    );
    for said in &said {
        assert!(said.starts_with("NotFound: "), "{said}");
    }
    server.log.wait_for("denied: No folder that this tool may use contains /etc/passwd. To allow it, add to [permissions] in hostile.toml: mounts = [{ host = \"FOLDER\", guest = \"/etc\", access = \"read\" }]");
    let metrics = server.get("/metrics", &[]).text();
    assert!(
        metrics.contains("toolbay_denials_total{kind=\"file\"} 3\n"),
        "{metrics}"
    );
    // Checking whether a file exists is not a denied use.
    let denied = audited_denials(&mut server);
    let line = |guest: &str, access: &str| {
        format!("mounts = [{{ host = \"FOLDER\", guest = \"{guest}\", access = \"{access}\" }}]")
    };
    assert_eq!(
        denied,
        [
            denial(
                "No folder that this tool may use contains /etc/passwd.",
                &line("/etc", "read")
            ),
            denial(
                "No folder that this tool may use contains /notes/a.txt.",
                &line("/notes", "read-write")
            ),
            denial(
                "No folder that this tool may use contains /srv/x.",
                &line("/srv", "read")
            ),
        ]
    );
    // The operator must choose the folder.
    let proposed = fs::read_to_string(
        server
            .folder()
            .plugin_folder()
            .join("hostile.toml.proposed"),
    )
    .unwrap();
    assert!(
        proposed.contains(&format!(
            "# Under [permissions], complete and add: {}\n",
            line("/etc", "read")
        )),
        "{proposed}"
    );
    assert!(
        !proposed.lines().any(|line| line.starts_with("mounts")),
        "{proposed}"
    );
}

#[test]
fn leaving_a_mount_by_path_or_by_link_is_denied() {
    let mut server = start_with_grant(WRITES);
    let said = step_outcomes(
        &server,
        &[
            "read /data/file",
            "read /data/../secret",
            "write /data/deep/../../etc/x hello",
            "read /data/outside",
            "read /data/none",
            "remove /data/../secret",
        ],
    );
    assert_eq!(said[0], "hello");
    assert!(
        said[1].starts_with("PermissionDenied: ") && said[3].starts_with("PermissionDenied: "),
        "{said:?}"
    );
    assert!(said[4].starts_with("NotFound: "), "{said:?}");
    let leads = |path: &str| {
        format!("The path /data/{path} leads out of /data, the folder that this tool may use.")
    };
    assert_eq!(
        audited_denials(&mut server),
        [
            denial(&leads("../secret"), ""),
            denial(
                &leads("deep/../../etc/x"),
                "mounts = [{ host = \"FOLDER\", guest = \"/etc\", access = \"read-write\" }]"
            ),
            denial(&leads("outside"), ""),
        ]
    );
    assert_eq!(
        fs::read_to_string(server.folder().sibling_path("secret")).unwrap(),
        "hush"
    );
}

#[test]
fn writing_into_a_mount_for_reading_is_denied_and_shown_with_the_mount_for_writing() {
    let mut server = start_with_grant(READS);
    let said = step_outcomes(
        &server,
        &[
            "read /data/file",
            "write /data/new hello",
            "remove /data/file",
            "folder /data/more",
            "rename /data/file /data/other",
            "write /data/new again",
        ],
    );
    assert_eq!(said[0], "hello");
    assert!(
        said[1..].iter().all(|said| !said.starts_with("ok")),
        "{said:?}"
    );
    let only = |path: &str| format!("This tool may only read in /data, and not change {path}.");
    let line = "mounts = [{ host = \"../data\", guest = \"/data\", access = \"read-write\" }]";
    assert_eq!(
        audited_denials(&mut server),
        ["/data/new", "/data/file", "/data/more", "/data/other"]
            .map(|path| denial(&only(path), line))
    );
    assert_eq!(
        fs::read_dir(server.folder().sibling_path("data"))
            .unwrap()
            .count(),
        3
    );
}

/// Like a tool that fails with its own message after its grant has denied it something.
#[test]
fn a_failure_after_a_denial_mentions_it_unless_a_file_was_only_looked_up() {
    let server = start_with_grant(READS);
    let call = |name: &str, arguments: Value| {
        crate::support::error_kind_and_text(
            &server.result("tools/call", json!({"name": name, "arguments": arguments})),
        )
    };
    let (kind, text) = call("write_file", json!({"path": "/data/new", "text": "x"}));
    assert!(
        kind == "denied" && text.contains("This tool may only read in /data"),
        "{kind}: {text}"
    );
    // Programs look for many files that are optional.
    let (kind, text) = call("read_file", json!({"path": "/etc/passwd"}));
    assert!(
        kind == "none" && !text.contains("may use"),
        "{kind}: {text}"
    );
}

#[test]
fn a_plugin_that_tries_many_paths_fills_neither_the_log_nor_memory() {
    let mut server = start_with_grant("[limits]\ntimeout = \"60s\"\n");
    assert_eq!(step_outcomes(&server, &["knock /etc 100000"]), ["ok"]);
    let denied = audited_denials(&mut server);
    assert_eq!(denied.len(), 10, "{denied:?}");
    let proposed = fs::read_to_string(
        server
            .folder()
            .plugin_folder()
            .join("hostile.toml.proposed"),
    )
    .unwrap();
    assert_eq!(
        proposed.matches("guest = \"/etc\"").count(),
        1,
        "{proposed}"
    );
}

/// The root has no entries, and paths below it still resolve to the mounts.
#[test]
fn the_root_is_empty_unless_a_grant_mounts_it() {
    let server = start_with_grant(READS);
    let said = step_outcomes(
        &server,
        &[
            "list /",
            "list .",
            "length /",
            "folder /new",
            "read data/file",
            "list /data",
            "symlink /etc /data/x",
        ],
    );
    assert!(
        said[..4].iter().all(|said| said.starts_with("NotFound: ")),
        "{said:?}"
    );
    assert_eq!(
        (said[4].as_str(), said[5].as_str()),
        ("hello", "deep file outside")
    );
    assert!(!said[6].starts_with("ok"), "{said:?}");
}
