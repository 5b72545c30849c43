//! The sources of secrets: each source supplies only the requests that the grant names. A request
//! whose secret has no value is not sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::http::auth::token;
use crate::requests::Site;
use crate::support::{
    Folder, HttpServer, StdioServer, ToolbayCommand, error_kind_and_text, hostile, web,
};

/// Puts a file that only its owner can read into the plugin folder. As the book recommends, the
/// file is written elsewhere and then renamed.
fn put_secret(folder: &Folder, path: &str, value: &str) {
    let path = folder.plugin_path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let staged = folder.sibling_path("staged-secret");
    fs::write(&staged, value).unwrap();
    fs::set_permissions(&staged, Permissions::from_mode(0o600)).unwrap();
    fs::rename(staged, path).unwrap();
}

fn folder(site: &Site, secrets: &str) -> Folder {
    let folder = Folder::with("web.wasm", web());
    folder.put("web.toml", format!("{}{secrets}", site.grant()));
    folder
}

/// Returns the section of a secret with the keys `source`, which requests to the site carry.
fn secret_section(site: &Site, name: &str, source: &str) -> String {
    format!(
        "[secrets.{name}]\n{source}\nheader = \"x-{name}\"\norigins = [\"http://{}\"]\n",
        site.address
    )
}

fn toolbay(folder: &Folder) -> ToolbayCommand {
    // `PATH` has the programs of secrets and a keyring that the test creates.
    let path = format!(
        "{}:{}",
        folder.sibling_path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    ToolbayCommand::new(folder).env("PATH", &path)
}

fn serve(command: ToolbayCommand) -> StdioServer {
    let mut server =
        StdioServer::run(command.args(["serve", "--log", "debug"])).with_handshake("2025-11-25");
    server.wait_for_tool("send");
    server
}

fn try_to_send(server: &mut StdioServer, site: &Site) -> String {
    server.text("try_to_send", json!({"url": site.url("/hello")}))
}

const DENIED: &str = "The request is denied.";

#[test]
fn the_value_of_each_source_reaches_only_the_request() {
    let site = Site::start();
    let secrets = [
        secret_section(&site, "variable", "environment = \"WEB_TOKEN\""),
        secret_section(&site, "file", "file = \"secrets/api\""),
        secret_section(
            &site,
            "command",
            "command = [\"sh\", \"-c\", \"printf 's3cret-%s-%s' \\\"$0\\\" \\\"$#\\\"\", \"of-command\"]",
        ),
        secret_section(
            &site,
            "keyring",
            "keyring = { service = \"api.example.com\", user = \"ada\" }",
        ),
        secret_section(&site, "own", "caller_folder = \"secrets/own\""),
    ];
    let folder = folder(&site, &secrets.concat());
    put_secret(&folder, "secrets/api", "s3cret-of-the-file\n");
    put_secret(&folder, "secrets/own/stdio", "s3cret-of-the-caller\n");
    fs::create_dir(folder.sibling_path("bin")).unwrap();
    let keyring = "#!/bin/sh\n[ \"$*\" = 'lookup service api.example.com username ada' ] && echo s3cret-of-the-keyring\n";
    fs::write(folder.sibling_path("bin/secret-tool"), keyring).unwrap();
    fs::set_permissions(
        folder.sibling_path("bin/secret-tool"),
        Permissions::from_mode(0o755),
    )
    .unwrap();
    let mut server = serve(toolbay(&folder).env("WEB_TOKEN", "s3cret-of-the-variable"));
    let result = server.call("send", json!({"url": site.url("/echo")}));
    let text = result["structuredContent"]["text"]
        .as_str()
        .unwrap()
        .to_ascii_lowercase();
    let seen = site.requests.recv().unwrap().to_ascii_lowercase();
    for (name, value) in [
        ("variable", "s3cret-of-the-variable"),
        ("file", "s3cret-of-the-file"),
        ("command", "s3cret-of-command-0"),
        ("keyring", "s3cret-of-the-keyring"),
        ("own", "s3cret-of-the-caller"),
    ] {
        assert!(
            seen.contains(&format!("\r\nx-{name}: {value}\r\n")),
            "{name}: {seen}"
        );
        assert!(
            text.contains(&format!("x-{name}: [secret:{name}]")),
            "{name}: {text}"
        );
        let backwards: String = value.chars().rev().collect();
        let searched = json!({"url": site.url("/hello"), "backwards": backwards});
        assert_eq!(
            server.text("send_and_search", searched),
            "status 200, 0 in memory, 0 in variables",
            "{name}"
        );
    }
    // Verifies that the search works: this text is in the URL.
    let searched =
        json!({"url": site.url("/hello?needle-in-the-url"), "backwards": "lru-eht-ni-eldeen"});
    let found = server.text("send_and_search", searched);
    assert!(!found.contains(" 0 in memory"), "{found}");
    let listed = toolbay(&folder)
        .env("WEB_TOKEN", "s3cret-of-the-variable")
        .args(["list"])
        .run();
    assert!(
        listed
            .raw_stdout
            .contains("redacted secrets: command, file, keyring, own, variable\n"),
        "{listed}"
    );
    assert!(!listed.raw_stdout.contains('!'), "{listed}");
    let (answers, _) = server.stop();
    server.log.wait_for_end();
    let said = format!(
        "{answers:?}{}{}{}",
        server.log.text(),
        listed.raw_stdout,
        listed.stderr
    );
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn a_request_whose_secret_has_no_value_is_not_sent() {
    let site = Site::start();
    for (source, why) in [
        (
            "environment = \"WEB_TOKEN\"",
            "the environment variable WEB_TOKEN is not set",
        ),
        (
            "file = \"secrets/api\"",
            "the file secrets/api does not exist",
        ),
        (
            "file = \"secrets/open\"",
            "the file secrets/open is open to other users (mode 0644); make it 0600",
        ),
        (
            "file = \"secrets/link\"",
            "the file secrets/link is reached through a symbolic link",
        ),
        (
            "file = \"secrets\"",
            "the file secrets is not a regular file",
        ),
        (
            "file = \"secrets/short\"",
            "the file secrets/short has fewer than 8 bytes",
        ),
        (
            "file = \"secrets/long\"",
            "the file secrets/long is larger than 64 KiB",
        ),
        (
            "command = [\"sh\", \"-c\", \"echo s3cret-of-a-failure; echo s3cret >&2; exit 3\"]",
            "the command sh exited with code 3",
        ),
        (
            "command = [\"no-such-program\"]",
            "the command no-such-program was not found",
        ),
        (
            "keyring = { service = \"a\", user = \"b\" }",
            "the keyring entry of \"b\" for \"a\" does not exist, or the keyring is locked",
        ),
    ] {
        let folder = folder(&site, &secret_section(&site, "token", source));
        put_secret(&folder, "secrets/open", "s3cret-of-all");
        fs::set_permissions(
            folder.plugin_path("secrets/open"),
            Permissions::from_mode(0o644),
        )
        .unwrap();
        put_secret(&folder, "secrets/short", "s3cret");
        put_secret(&folder, "secrets/long", &"s3cret".repeat(11_000));
        symlink("long", folder.plugin_path("secrets/link")).unwrap();
        fs::create_dir(folder.sibling_path("bin")).unwrap();
        fs::write(
            folder.sibling_path("bin/secret-tool"),
            "#!/bin/sh\nexit 1\n",
        )
        .unwrap();
        fs::set_permissions(
            folder.sibling_path("bin/secret-tool"),
            Permissions::from_mode(0o755),
        )
        .unwrap();
        let mut server = serve(toolbay(&folder));
        server
            .log
            .wait_for(&format!("web.toml: secrets.token: {why}"));
        assert_eq!(try_to_send(&mut server, &site), DENIED, "{source}");
        let result = server.call("send", json!({"url": site.url("/hello")}));
        let told = format!(
            "The request is denied.\nA request to http://{} must carry the secret \"token\", which has no value on this \
             server.",
            site.address
        );
        assert_eq!(
            error_kind_and_text(&result),
            ("denied".into(), told),
            "{source}"
        );
        // `list` runs no programs, so only `check-config` reports why one prints no value.
        let is_program = source.starts_with("command") || source.starts_with("keyring");
        let line = format!("web.toml: secrets.token: {why}");
        let listed = toolbay(&folder).args(["list"]).run();
        assert_eq!(
            listed.raw_stdout.contains(&format!("! {line}")),
            !is_program,
            "{source}: {listed}"
        );
        if is_program {
            let checked = toolbay(&folder).args(["check-config"]).run();
            assert!(checked.raw_stdout.contains(&line), "{source}: {checked}");
        }
        server.stop();
        server.log.wait_for_end();
        assert!(
            !format!("{}{listed}", server.log.text()).contains("s3cret"),
            "{source}: {}",
            server.log.text()
        );
    }
    assert!(site.requests.try_recv().is_err());
}

#[test]
fn a_new_value_of_a_file_is_used_by_the_next_call() {
    let site = Site::start();
    let folder = folder(
        &site,
        &secret_section(&site, "token", "file = \"secrets/api\""),
    );
    put_secret(&folder, "secrets/api", "s3cret-value-one");
    let mut server = serve(toolbay(&folder));
    let sent = |server: &mut StdioServer| {
        server.call("send", json!({"url": site.url("/echo")}));
        let seen = site.requests.recv().unwrap();
        seen.lines()
            .find_map(|line| line.strip_prefix("x-token: "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(sent(&mut server), "s3cret-value-one");
    for number in 0..5 {
        let value = format!("s3cret-value-two-{number}");
        put_secret(&folder, "secrets/api", &value);
        assert_eq!(sent(&mut server), value);
    }
    fs::remove_file(folder.plugin_path("secrets/api")).unwrap();
    assert_eq!(try_to_send(&mut server, &site), DENIED);
    server.log.wait_for(
        "web.toml: secrets.token: the file secrets/api does not exist, so requests to its origins are denied",
    );
    put_secret(&folder, "secrets/api", "s3cret-value-three");
    assert_eq!(sent(&mut server), "s3cret-value-three");
    assert!(
        !server.log.text().contains("s3cret"),
        "{}",
        server.log.text()
    );
}

#[test]
fn a_running_call_keeps_its_value_and_is_redacted_with_it() {
    let site = Site::start();
    let gate = TcpListener::bind("127.0.0.1:0").unwrap();
    let slow = gate.local_addr().unwrap();
    let folder = Folder::with("web.wasm", web());
    folder.put(
        "web.toml",
        format!(
            "[permissions]\nhttp = [\"http://{slow}\"]\nprivate_networks = [\"127.0.0.1\"]\n[secrets.token]\n\
             file = \"secrets/api\"\nheader = \"x-token\"\norigins = [\"http://{slow}\"]\n"
        ),
    );
    put_secret(&folder, "secrets/api", "s3cret-value-one");
    let mut server = serve(toolbay(&folder));
    let call = server.start_call("send", json!({"url": format!("http://{slow}/")}));
    let (mut stream, _) = gate.accept().unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map(Result::unwrap);
    let own = lines.find(|line| line.starts_with("x-token: ")).unwrap();
    assert_eq!(own, "x-token: s3cret-value-one");
    put_secret(&folder, "secrets/api", "s3cret-value-two");
    // Another call has the new value read meanwhile. The server still replaces the old value in the
    // response to the first call.
    assert_eq!(
        try_to_send(&mut server, &site),
        DENIED,
        "the site is not among the origins"
    );
    server
        .log
        .wait_for("web.toml: secrets.token: the file secrets/api was read");
    let body = "s3cret-value-one";
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let result = server.finish_call(call);
    assert_eq!(
        result["structuredContent"]["text"], "[secret:token]",
        "{result}"
    );
}

#[test]
fn a_caller_without_its_own_value_gets_no_other_value() {
    let site = Site::start();
    let own = secret_section(&site, "own", "caller_folder = \"secrets/own\"");
    let plugins = folder(&site, &own);
    put_secret(&plugins, "secrets/own/token/ada", "s3cret-of-ada");
    let told = |why: &str| {
        format!(
            "The request is denied.\nA request to http://{} {why}.",
            site.address
        )
    };
    let mut server = serve(toolbay(&plugins));
    let result = server.call("send", json!({"url": site.url("/hello")}));
    let why =
        told("must carry the caller's own secret \"own\", and this caller has none on this server");
    assert_eq!(error_kind_and_text(&result), ("denied".into(), why));
    server
        .log
        .wait_for("web.toml: secrets.own: the file secrets/own/stdio does not exist");
    put_secret(&plugins, "secrets/own/stdio", "s3cret-of-stdio");
    assert_eq!(try_to_send(&mut server, &site), "status 200");
    server.stop();
    // A caller that is identified by its address is not authenticated.
    let server = HttpServer::start(&plugins).wait_until_ready();
    let result = server.result(
        "tools/call",
        json!({"name": "send", "arguments": {"url": site.url("/hello")}}),
    );
    let why =
        told("must carry the caller's own secret \"own\", and the caller is not authenticated");
    assert_eq!(error_kind_and_text(&result), ("denied".into(), why));
    drop(server);
    let seen: Vec<String> = site.requests.try_iter().collect();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].contains("x-own: s3cret-of-stdio\r\n"), "{seen:?}");
}

/// Observations of a server: the credentials for each path, and how many different credentials
/// arrived over one connection.
#[derive(Default)]
struct ObservedCredentials {
    by_path: BTreeMap<String, BTreeMap<String, usize>>,
    most_on_a_connection: usize,
}

/// Starts a web server that counts the credentials of requests.
fn start_counting_server() -> (SocketAddr, Arc<Mutex<ObservedCredentials>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(ObservedCredentials::default()));
    let all = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let seen = Arc::clone(&seen);
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut here = BTreeSet::new();
                loop {
                    let mut path = String::new();
                    let mut credential = String::new();
                    loop {
                        let mut line = String::new();
                        if reader.read_line(&mut line).is_ok_and(|count| count == 0) {
                            return;
                        }
                        let line = line.trim_end();
                        if line.is_empty() {
                            break;
                        }
                        if let Some(rest) = line.strip_prefix("GET ") {
                            rest.split(' ').next().unwrap().clone_into(&mut path);
                        }
                        if let Some(value) = line.strip_prefix("authorization: ") {
                            value.clone_into(&mut credential);
                        }
                    }
                    here.insert(credential.clone());
                    let mut seen = seen.lock();
                    *seen
                        .by_path
                        .entry(path)
                        .or_default()
                        .entry(credential)
                        .or_default() += 1;
                    seen.most_on_a_connection = seen.most_on_a_connection.max(here.len());
                    drop(seen);
                    // One write: the second of two would wait for the acknowledgment of the first.
                    if stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    (address, all)
}

#[test]
fn the_credentials_of_two_callers_are_never_mixed_in_ten_thousand_requests() {
    const THREADS: usize = 4;
    const CALLS: usize = 25;
    const REQUESTS: usize = 50;
    let (address, seen) = start_counting_server();
    let folder = Folder::with("web.wasm", web());
    folder.put(
        "web.toml",
        format!(
            "[permissions]\nhttp = [\"http://{address}\"]\nprivate_networks = [\"127.0.0.1\"]\n[secrets.own]\n\
             caller_folder = \"secrets/github\"\nheader = \"Authorization\"\n\
             format = \"Bearer {{}}\"\norigins = [\"http://{address}\"]\n"
        ),
    );
    let mut config = String::new();
    let mut callers = Vec::new();
    for name in ["ada", "bob"] {
        let (token, lines) = token(name, "");
        config += &lines;
        put_secret(
            &folder,
            &format!("secrets/github/token/{name}"),
            &format!("s3cret-of-{name}"),
        );
        callers.push((name, format!("Bearer {token}")));
    }
    let server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let call = |name: &str, bearer: &str, again: usize| {
        let arguments = json!({"url": format!("http://{address}/{name}"), "again": again});
        let params = json!({"name": "send", "arguments": arguments});
        server
            .post_stateless("tools/call", params, &[("Authorization", bearer)])
            .response_message()
    };
    thread::scope(|threads| {
        for (name, bearer) in callers.iter().cycle().take(2 * THREADS) {
            threads.spawn(move || {
                for _ in 0..CALLS {
                    let answer: Value = call(name, bearer, REQUESTS - 1);
                    assert_eq!(
                        answer["result"]["structuredContent"]["text"], "ok",
                        "{answer}"
                    );
                }
            });
        }
    });
    let seen = seen.lock();
    let each = |name: &str| {
        let credential = format!("Bearer s3cret-of-{name}");
        (
            format!("/{name}"),
            BTreeMap::from([(credential, THREADS * CALLS * REQUESTS)]),
        )
    };
    assert_eq!(seen.by_path, BTreeMap::from([each("ada"), each("bob")]));
    assert_eq!(
        seen.most_on_a_connection, 1,
        "a connection carried the credentials of both"
    );
    let log = server.log.text();
    assert!(
        !log.contains("s3cret")
            && callers
                .iter()
                .all(|(_, bearer)| !log.contains(&bearer[7..])),
        "{log}"
    );
}

#[test]
fn a_request_without_room_for_its_parameter_is_not_sent() {
    let site = Site::start();
    let keys = format!(
        "[secrets.key]\nenvironment = \"WEB_KEY\"\nquery = \"key\"\norigins = [\"http://{}\"]\n",
        site.address
    );
    let folder = folder(&site, &keys);
    // A plugin can write a path of 16 KiB, and a whole URL must be shorter than 64 KiB.
    let value = "s3cret-of-the-query-".repeat(2_500);
    let mut server = serve(toolbay(&folder).env("WEB_KEY", &value));
    let long = site.url(&format!("/hello?{}", "x".repeat(16_000)));
    let result = server.call("send", json!({"url": long}));
    let told = format!(
        "The request is denied.\nA request to http://{} must carry the secret \"key\", but its URL would be too long.",
        site.address
    );
    assert_eq!(error_kind_and_text(&result), ("denied".into(), told));
    assert!(site.requests.try_recv().is_err());
    server.call("send", json!({"url": site.url("/echo?a=1")}));
    let seen = site.requests.recv().unwrap();
    assert!(
        seen.starts_with(&format!("GET /echo?a=1&key={value} HTTP/1.1\r\n")),
        "{seen:.200}"
    );
}

#[test]
fn no_mount_reaches_a_secret() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("other.wasm", web());
    put_secret(&folder, "secrets/api", "s3cret-of-the-file");
    put_secret(&folder, "secrets/own/token/ada", "s3cret-of-ada");
    put_secret(
        &folder,
        "bin/print",
        "#!/bin/sh\necho > was-run; echo s3cret-of-the-program\n",
    );
    fs::set_permissions(
        folder.plugin_path("bin/print"),
        Permissions::from_mode(0o700),
    )
    .unwrap();
    let file = "[secrets.api]\nfile = \"secrets/api\"\n";
    let own = "[secrets.own]\ncaller_folder = \"secrets/own\"\n";
    let program = "[secrets.printed]\ncommand = [\"bin/print\"]\n";
    let mount = |host: &str, access: &str, more: &str| {
        format!(
            "[[permissions.mounts]]\nhost = {host:?}\nguest = \"/data\"\naccess = {access:?}\n{more}\n"
        )
    };
    let problems = |id: &str| {
        let outcome = ToolbayCommand::new(&folder)
            .env("PATH", &std::env::var("PATH").unwrap())
            .args(["list", "--json"])
            .run();
        let listed: Value = serde_json::from_str(&outcome.raw_stdout).unwrap();
        let plugin = &listed["plugins"][id];
        let first = plugin["problems"]
            .as_array()
            .and_then(|problems| problems.first().cloned());
        (
            plugin["status"].as_str().unwrap().to_owned(),
            first.map(|first| first.as_str().unwrap().to_owned()),
        )
    };
    let cases = [
        (
            file,
            "secrets",
            "read",
            "contains the file of secrets.api",
            "read",
        ),
        (
            file,
            "secrets",
            "read-write",
            "contains the file of secrets.api",
            "change",
        ),
        (
            own,
            "secrets",
            "read",
            "contains the folder of secrets.own",
            "read",
        ),
        (
            own,
            "secrets/own",
            "read",
            "is in the folder of secrets.own",
            "read",
        ),
        (
            own,
            "secrets/own/token",
            "read-write",
            "is in the folder of secrets.own",
            "change",
        ),
        (
            program,
            "bin",
            "read-write",
            "contains the program of secrets.printed",
            "change",
        ),
    ];
    for (secret, host, access, what, verb) in cases {
        // The plugin's own secret, and then the secret of another plugin.
        for (grants, of) in [
            (
                [
                    ("hostile", mount(host, access, "") + secret),
                    ("other", String::new()),
                ],
                "",
            ),
            (
                [
                    ("hostile", mount(host, access, "")),
                    ("other", secret.to_owned()),
                ],
                " of plugin \"other\"",
            ),
        ] {
            for (id, grant) in grants {
                folder.put(&format!("{id}.toml"), grant);
            }
            let (status, problem) = problems("hostile");
            let problem = problem.unwrap_or_default();
            // If the folder itself is mounted, both descriptions are true.
            let told = |what: &str| {
                format!(
                    "hostile.toml:2: the mount of {host} {what}{of}, so the plugin could {verb} it; "
                )
            };
            let other = what.replace("is in", "contains");
            assert!(
                problem.starts_with(&told(what)) || problem.starts_with(&told(&other)),
                "{what}{of}: {problem}"
            );
            assert_eq!(status, "refused");
            if secret == program {
                // This command runs programs, unlike `list`.
                let checked = ToolbayCommand::new(&folder)
                    .env("PATH", &std::env::var("PATH").unwrap())
                    .args(["check-config"])
                    .run();
                assert!(checked.raw_stdout.contains(&told(what)), "{checked}");
            }
            assert!(
                !of.is_empty() || !folder.plugin_path("was-run").exists(),
                "the plugin could have replaced the program"
            );
        }
        folder.put("other.toml", "");
        folder.put(
            "hostile.toml",
            mount(host, access, "unsafe = true") + secret,
        );
        let (status, problem) = problems("hostile");
        assert_eq!(status, "ready", "{problem:?}");
        assert!(
            problem.unwrap().contains(&format!("is unsafe: it {what}")),
            "{what}"
        );
    }
    // A file that is not a secret can be read, and a file next to a secret can be changed.
    fs::create_dir(folder.plugin_path("data")).unwrap();
    for (host, access, secret) in [("bin", "read", program), ("data", "read-write", file)] {
        folder.put("hostile.toml", mount(host, access, "") + secret);
        assert_eq!(problems("hostile"), ("ready".to_owned(), None), "{host}");
    }
}
