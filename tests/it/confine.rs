//! Confinement: which rights a server gives up when it starts, which it keeps, and what it reports
//! about that. The servers of all other tests are confined as well, so those tests show that
//! everything else works under confinement.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{
    DEADLINE, Folder, HttpServer, StdioServer, TinyComponent, ToolbayCommand, hostile, result_text,
};

fn mount(host: &str, guest: &str, access: &str) -> String {
    format!("[[permissions.mounts]]\nhost = {host:?}\nguest = {guest:?}\naccess = {access:?}\n")
}

/// Returns what escaped code could do, as `toolbay escape` reports it: the outcome of each line.
fn escape_outcomes(command: ToolbayCommand, lines: &[String]) -> Vec<String> {
    let outcome = command.run_with(&(lines.join("\n") + "\n"));
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(
        outcome.stderr.contains("confined: landlock abi "),
        "{outcome}"
    );
    let said: Vec<String> = outcome
        .raw_stdout
        .lines()
        .map(|line| line.rsplit(": ").next().unwrap().to_owned())
        .collect();
    assert_eq!(said.len(), lines.len(), "{outcome}");
    said
}

#[test]
fn escaped_code_can_only_do_what_the_server_needs() {
    let folder = Folder::with("hostile.wasm", hostile());
    let at = |name: &str| folder.sibling_path(name);
    // A separate location: files next to the plugin folder may be read, because the folder may be
    // replaced.
    let elsewhere = tempfile::tempdir().unwrap();
    let far = |name: &str| elsewhere.path().join(name);
    for name in ["mine", "theirs", "private"] {
        fs::create_dir(far(name)).unwrap();
        fs::write(far(name).join("file"), name).unwrap();
    }
    symlink(far("private/file"), far("theirs/link")).unwrap();
    // Sockets like those of a bus, a container engine or an agent, which start programs for any
    // client.
    let _joined = UnixListener::bind(far("bus")).unwrap();
    let _told = UnixDatagram::bind(far("journal")).unwrap();
    let grant = mount(far("mine").to_str().unwrap(), "/mine", "read-write")
        + &mount(far("theirs").to_str().unwrap(), "/theirs", "read");
    folder.put("hostile.toml", grant);
    folder.write_config(
        "[audit]\nfolder = \"log\"\n[state]\nfolder = \"state\"\n[server]\nscratch = \"scratch\"",
    );
    let path = |path: std::path::PathBuf| path.display().to_string();
    let allowed = [
        format!("read {}", path(folder.plugin_path("hostile.wasm"))),
        format!("read {}", path(folder.plugin_path("hostile.toml"))),
        format!("list {}", path(folder.plugin_folder())),
        format!("read {}", path(at("toolbay.toml"))),
        format!("read {}", path(far("theirs/file"))),
        format!("read {}", path(far("mine/file"))),
        format!("write {}", path(far("mine/new"))),
        format!("remove {}", path(far("mine/new"))),
        format!("write {}", path(at("log/new"))),
        format!("write {}", path(at("state/toolbay-state/new"))),
        format!(
            "write {}",
            path(at(&format!("scratch/toolbay-{}/new", user_id())))
        ),
        "read /etc/hosts".to_owned(),
        "read /proc/self/status".to_owned(),
        "run /proc/self/exe".to_owned(),
        "resolve localhost".to_owned(),
        "pair".to_owned(),
    ];
    let denied = [
        format!("read {}", path(far("private/file"))),
        format!("read {}", path(far("theirs/link"))),
        format!("list {}", path(far("private"))),
        format!("list {}", path(elsewhere.path().to_owned())),
        "list /".to_owned(),
        "list /tmp".to_owned(),
        format!("write {}", path(far("theirs/new"))),
        format!("remove {}", path(far("theirs/file"))),
        format!("write {}", path(far("private/new"))),
        // Files that decide about permissions.
        format!("write {}", path(folder.plugin_path("hostile.toml"))),
        format!("write {}", path(folder.plugin_path("new.wasm"))),
        format!("remove {}", path(folder.plugin_path("hostile.toml"))),
        format!("link {}", path(folder.plugin_path("link.wasm"))),
        format!("write {}", path(at("toolbay.toml"))),
        "write /etc/hosts".to_owned(),
        "write /tmp/toolbay-escaped".to_owned(),
        "run /bin/sh".to_owned(),
        "run /usr/bin/env".to_owned(),
        format!("run {}", path(folder.plugin_path("hostile.wasm"))),
        "listen 127.0.0.1:0".to_owned(),
        format!("join {}", path(far("bus"))),
        format!("tell {}", path(far("journal"))),
    ];
    let escape = || ToolbayCommand::new(&folder).args(["escape", "--http", "127.0.0.1:0"]);
    for (line, said) in allowed.iter().zip(escape_outcomes(escape(), &allowed)) {
        assert_eq!(said, "done", "{line}");
    }
    for (line, said) in denied.iter().zip(escape_outcomes(escape(), &denied)) {
        assert_eq!(said, "permission denied", "{line}");
    }
    // The operator can allow more, and `--learn` writes next to the grants.
    folder.write_config(&format!(
        "[server]\nconfine_folders = [{:?}]",
        path(far("private"))
    ));
    let more = [
        format!("write {}", path(far("private/new"))),
        format!("write {}", path(folder.plugin_path("new.toml.proposed"))),
    ];
    assert_eq!(
        escape_outcomes(escape(), &more),
        ["done", "permission denied"]
    );
    assert_eq!(
        escape_outcomes(escape().args(["--learn"]), &more),
        ["done", "done"]
    );
}

#[test]
fn a_recording_opens_its_file_but_not_the_rest_of_its_folder() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    // All users may write to the folder, as with /tmp. Like a home directory, it contains files
    // that are not the server's.
    let wide = tempfile::tempdir().unwrap();
    fs::set_permissions(wide.path(), Permissions::from_mode(0o777)).unwrap();
    let file = wide.path().join("calls.jsonl");
    let precious = wide.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    folder.write_config(&format!("[record]\nfile = {file:?}"));
    let lines = [
        format!("write {}", wide.path().join("new").display()),
        format!("write {}", precious.display()),
        format!("read {}", precious.display()),
        format!("remove {}", precious.display()),
        format!("list {}", wide.path().display()),
    ];
    for (line, said) in lines.iter().zip(escape_outcomes(
        ToolbayCommand::new(&folder).args(["escape"]),
        &lines,
    )) {
        assert_eq!(said, "permission denied", "{line}");
    }
    // Once with a new file, and once with a file that already is a recording.
    for calls in 1..=2 {
        let mut server = StdioServer::start(&folder);
        server.wait_for_tool("a");
        server.text("a", json!({"text": "recorded"}));
        server.stop();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text.lines()
                .filter(|line| line.starts_with("{\"call\""))
                .count(),
            calls,
            "{text}"
        );
    }
}

/// A configuration, files, a grant, and the expected reason for a refusal.
type Case<'a> = (&'a str, &'a [(&'a str, String)], &'a str, Option<&'a str>);

#[test]
fn writable_folders_must_not_contain_files_that_decide_permissions() {
    let secret = |words: &str| format!("[secrets.word]\ncommand = {words}\n");
    let mount = |access: &str| {
        format!("[[permissions.mounts]]\nhost = \"../shared\"\nguest = \"/shared\"\n{access}\n")
    };
    let writes = mount("access = \"read-write\"");
    let script = "[\"sh\", \"../shared/print.sh\"]";
    let cases: [Case<'_>; 9] = [
        (
            "[audit]\nfolder = \".\"",
            &[],
            "(the audit log), which contains the plugin folder",
            None,
        ),
        (
            "[state]\nfolder = \"plugins\"",
            &[],
            "(the state of plugins), which is in the plugin folder",
            None,
        ),
        (
            "[server]\nscratch = \"scratch\"\nconfine_folders = [\".\"]",
            &[],
            "(server.confine_folders), which contains the plugin folder",
            None,
        ),
        (
            "[http]\nlisten = \"unix:mcp.sock\"",
            &[],
            "(the folder of the server's Unix socket), which contains the plugin folder",
            None,
        ),
        (
            "[audit]\nfolder = \"shared\"",
            &[("a.toml", secret(script))],
            "(the audit log), which contains the program of secrets.word",
            Some("a.toml"),
        ),
        (
            "[audit]\nfolder = \"shared\"",
            &[("a.toml", secret("[\"../shared/print.sh\"]"))],
            "(the audit log), which contains the program of secrets.word",
            Some("a.toml"),
        ),
        (
            "",
            &[("a.toml", secret(script)), ("b.toml", writes.clone())],
            "(a mount of b.toml, ../shared), which contains the program of secrets.word",
            None,
        ),
        (
            "[audit]\nfolder = \"elsewhere\"",
            &[
                ("a.toml", secret(script)),
                ("b.toml", mount("access = \"read\"")),
            ],
            "",
            None,
        ),
        ("", &[], "", None),
    ];
    for (config, grants, said, of) in cases {
        let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).with_echo().build());
        folder.put("b.wasm", TinyComponent::new(&["b"]).with_echo().build());
        fs::create_dir(folder.sibling_path("shared")).unwrap();
        fs::write(folder.sibling_path("shared/print.sh"), "echo printed-by-it").unwrap();
        fs::set_permissions(
            folder.sibling_path("shared/print.sh"),
            Permissions::from_mode(0o755),
        )
        .unwrap();
        for (name, grant) in grants {
            folder.put(name, grant.clone());
        }
        let configured = |confine: &str| match config.strip_prefix("[server]\n") {
            Some(rest) => folder.write_config(&format!("[server]\nconfine = {confine}\n{rest}")),
            None => folder.write_config(&format!(
                "{config}\n[server]\nconfine = {confine}\nscratch = \"scratch\""
            )),
        };
        configured("\"required\"");
        let required = ToolbayCommand::new(&folder).args(["escape"]).run_with("");
        configured("true");
        let possible = ToolbayCommand::new(&folder).args(["escape"]).run_with("");
        assert_eq!(possible.code, 0, "{config}: {possible}");
        if said.is_empty() {
            assert_eq!(required.code, 0, "{config}: {required}");
            assert!(
                !possible.stderr.contains("change permissions"),
                "{config}: {possible}"
            );
            continue;
        }
        assert_eq!(required.code, 64, "{config}: {required}");
        assert!(
            required
                .stderr
                .contains("server.confine = \"required\": the server may write to "),
            "{required}"
        );
        assert!(required.stderr.contains(said), "{config}: {required}");
        // A problem with a plugin's grant is reported for the plugin.
        match of {
            None if grants.is_empty() => {
                assert!(possible.stderr.contains(said), "{config}: {possible}");
            }
            None => {}
            Some(_) => {
                let mut server = StdioServer::start(&folder);
                server.wait_for_tool("a");
                let line = server.log.wait_for(said);
                assert!(line.contains("WARN"), "{line}");
            }
        }
    }
    // The server does not listen before the check.
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).with_echo().build());
    folder.write_config("[audit]\nfolder = \".\"\n[server]\nconfine = \"required\"");
    let outcome = ToolbayCommand::new(&folder)
        .args(["serve", "--http", "127.0.0.1:0"])
        .run();
    assert_eq!(outcome.code, 64, "{outcome}");
    assert!(!outcome.stderr.contains("serving over HTTP"), "{outcome}");
}

#[test]
fn with_required_confinement_the_server_cannot_write_the_program_that_is_notified() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).with_echo().build());
    fs::create_dir(folder.sibling_path("shared")).unwrap();
    let script = folder.sibling_path("shared/notify.sh");
    fs::write(&script, "cat").unwrap();
    let script = script.display().to_string();
    for command in [vec![script.as_str()], vec!["/bin/sh", &script]] {
        let config = |confine: &str| {
            folder.write_config(&format!(
                "approve = {{ notify = {{ command = {command:?} }} }}\n\
                 [server]\nscratch = \"scratch\"\nconfine = {confine}\nconfine_folders = [\"shared\"]"
            ));
        };
        config("\"required\"");
        let outcome = ToolbayCommand::new(&folder)
            .args(["serve", "--http", "127.0.0.1:0"])
            .run();
        assert_eq!(outcome.code, 64, "{outcome}");
        assert!(
            outcome
                .stderr
                .contains("which contains the program of approve.notify"),
            "{outcome}"
        );
        config("true");
        let possible = ToolbayCommand::new(&folder).args(["escape"]).run_with("");
        assert!(
            possible.stderr.contains("the program of approve.notify"),
            "{possible}"
        );
    }
}

#[test]
fn with_required_confinement_a_later_grant_with_a_writable_program_is_refused() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["a"])
            .with_text("the word is printed-by-it")
            .build(),
    );
    fs::create_dir(folder.sibling_path("shared")).unwrap();
    fs::write(folder.sibling_path("shared/print.sh"), "echo printed-by-it").unwrap();
    let config =
        "[server]\nscratch = \"scratch\"\nconfine = \"required\"\nconfine_folders = [\"shared\"]";
    let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
    folder.put(
        "a.toml",
        "[secrets.word]\ncommand = [\"sh\", \"../shared/print.sh\"]\n",
    );
    let line = wait_for_log(&server, "refused; the previous version stays in service");
    assert!(
        line.contains("server.confine = \"required\": the server may write to "),
        "{line}"
    );
    assert!(
        line.contains("(server.confine_folders), which contains the program of secrets.word"),
        "{line}"
    );
}

/// Returns the ID of the user that runs the tests.
fn user_id() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").unwrap().uid()
}

/// Returns a line of the status of each thread of a process.
fn thread_status_lines(pid: u32, key: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status =
        tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    let line = |status: String| {
        status
            .lines()
            .find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()))
    };
    status.filter_map(line).collect()
}

#[test]
fn every_thread_of_a_server_is_confined_unless_disabled() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    for (config, seccomp, said) in [
        ("", "2", "confined: landlock abi "),
        (
            "[server]\nconfine = \"required\"",
            "2",
            "confined: landlock abi ",
        ),
        (
            "[server]\nconfine = false",
            "0",
            "not confined (server.confine = false)",
        ),
    ] {
        let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
        let line = server.log.wait_for(said);
        assert!(
            !line.contains("WARN") && line.ends_with(", seccomp") == (seccomp == "2"),
            "{line}"
        );
        server.result("tools/call", json!({"name": "a"}));
        let threads = thread_status_lines(server.pid(), "Seccomp:");
        assert!(
            threads.len() > 1 && threads.iter().all(|mode| mode == seccomp),
            "{config}: {threads:?}"
        );
        let threads = thread_status_lines(server.pid(), "NoNewPrivs:");
        assert!(
            threads.iter().all(|set| (set == "1") == (seccomp == "2")),
            "{config}: {threads:?}"
        );
    }
    folder.write_config("[server]\nconfine = \"always\"");
    let outcome = ToolbayCommand::new(&folder).args(["serve"]).run();
    assert_eq!(outcome.code, 64);
    assert!(
        outcome
            .stderr
            .contains("toolbay.toml:2:11: server.confine: expected true, false or \"required\", not \"always\""),
        "{outcome}"
    );
}

/// Waits until the plugin's report in the list of plugins has these words, and returns the line of
/// the log that has them.
fn wait_for_log(server: &HttpServer, words: &str) -> String {
    let begun = Instant::now();
    let line = server.log.wait_for(words);
    assert!(begun.elapsed() < DEADLINE);
    line
}

#[test]
fn a_later_grant_can_use_confine_folders_and_is_otherwise_refused() {
    let folder = Folder::with("hostile.wasm", hostile());
    let elsewhere = tempfile::tempdir().unwrap();
    for name in ["kept", "other"] {
        fs::create_dir(elsewhere.path().join(name)).unwrap();
        fs::write(elsewhere.path().join(name).join("file"), name).unwrap();
    }
    let kept = elsewhere.path().join("kept");
    let server =
        HttpServer::start_with_config(&folder, &format!("[server]\nconfine_folders = [{kept:?}]"))
            .wait_until_ready();
    folder.put(
        "hostile.toml",
        mount(
            elsewhere.path().join("other").to_str().unwrap(),
            "/data",
            "read",
        ),
    );
    let line = wait_for_log(&server, "refused; the previous version stays in service");
    let path = elsewhere.path().join("other").display().to_string();
    let expected = format!(
        "hostile.toml:2: permissions.mounts: the server cannot read {path}: when it started, it confined itself to what the \
         grants needed; restart it, or name a folder in which later grants may have mounts in server.confine_folders"
    );
    assert!(line.contains(&expected), "{line}");
    // A subfolder of a folder that stayed accessible.
    fs::create_dir(kept.join("deep")).unwrap();
    folder.put(
        "hostile.toml",
        mount(kept.to_str().unwrap(), "/data", "read-write"),
    );
    let begun = Instant::now();
    let read = || {
        let call = json!({"name": "read_file", "arguments": {"path": "/data/file"}});
        server.result("tools/call", call)
    };
    while read()["isError"] == Value::Bool(true) {
        assert!(
            begun.elapsed() < DEADLINE,
            "{}\n{}",
            read(),
            server.log.text()
        );
    }
    assert_eq!(result_text(&read()), "kept");
}

#[test]
fn a_replaced_plugin_folder_and_an_external_link_are_still_read() {
    let folder = Folder::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let built = elsewhere.path().join("linked.wasm");
    fs::create_dir(elsewhere.path().join("x")).unwrap();
    fs::write(&built, TinyComponent::new(&["linked"]).with_echo().build()).unwrap();
    folder.link("linked.wasm", &built);
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("linked");
    // As compilers do: another file with the same name.
    fs::write(
        elsewhere.path().join("next"),
        TinyComponent::new(&["relinked"]).with_echo().build(),
    )
    .unwrap();
    fs::rename(elsewhere.path().join("next"), &built).unwrap();
    server.wait_for_tool("relinked");
    fs::rename(folder.plugin_folder(), folder.sibling_path("old")).unwrap();
    fs::create_dir(folder.plugin_folder()).unwrap();
    folder.put("new.wasm", TinyComponent::new(&["new"]).with_echo().build());
    server.wait_for_tool("new");
}

#[test]
fn a_program_of_a_later_grant_is_run_only_by_the_worker() {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a"])
            .with_text("the word is s3cret-of-a-program")
            .build(),
    );
    let mut server = StdioServer::start(&folder);
    assert_eq!(
        server.text("a", json!({})),
        "the word is s3cret-of-a-program"
    );
    // The server could not run this program, as it is not a program of the system.
    let program = folder.sibling_path("print-it");
    fs::write(&program, "#!/bin/sh\necho s3cret-of-a-program\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    folder.put("tiny.toml", "[secrets.word]\ncommand = [\"../print-it\"]\n");
    server.wait_for_text(
        "a",
        "the word is [secret:word]",
        &["the word is s3cret-of-a-program"],
    );
}
