//! Rejected calls are logged in separate files, and repeated ones are counted.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use super::{
    CONFIG, events, files, files_of, lines_of, outcomes, sha256, verify, verify_intact,
    wait_for_event,
};
use crate::support::{Folder, HttpServer, StdioServer, TinyComponent, ToolbayCommand, web};

#[test]
fn a_caller_whose_calls_are_rejected_displaces_no_line_of_others() {
    const HONEST: usize = 16;
    const CALLS: usize = 25;
    const ATTACKS: usize = 8_000;
    let folder = Folder::with("a.wasm", TinyComponent::new(&["echo"]).with_echo().build());
    folder.put("b.wasm", TinyComponent::new(&["erase"]).build());
    folder.put("b.toml", "require_approval = \"always\"\n");
    let token = |name: &str, more: &str| {
        format!(
            "[[http.tokens]]\nname = {name:?}\nsha256 = {:?}\n{more}\n",
            sha256(format!("secret-of-{name}"))
        )
    };
    let honest: Vec<String> = (0..HONEST).map(|n| format!("honest-{n}")).collect();
    let tokens: String = honest.iter().map(|name| token(name, "")).collect();
    let rates = "[rate_limit]\ncalls = 1_000_000\nper = \"1m\"\n[caller_rate_limit]\ncalls = 1_000_000\nper = \"1m\"\n";
    // All lines of honest callers fit. Lines about all rejected calls would need more than twice
    // the space.
    let config = format!(
        "{CONFIG}files = 2\nrejected_files = 2\n{rates}{tokens}{}",
        token("restricted", "tools = [\"none\"]")
    );
    let mut server = HttpServer::start_with_config(&folder, &config).wait_until_ready();
    let call = |caller: &str, tool: &str, meta: Value| {
        let authorization = format!("Bearer secret-of-{caller}");
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        server
            .post_stateless("tools/call", params, &[("Authorization", &authorization)])
            .response_message()
    };
    thread::scope(|scope| {
        for attacker in 0..2 {
            let call = &call;
            scope.spawn(move || {
                for n in 0..ATTACKS / 2 {
                    let name = if n % 2 == 0 {
                        "echo".to_owned()
                    } else {
                        format!("made-up-{attacker}-{n}")
                    };
                    let answer = call("restricted", &name, json!({}));
                    assert!(answer.get("error").is_some(), "{answer}");
                }
            });
        }
        for caller in &honest {
            let call = &call;
            scope.spawn(move || {
                let forms = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
                let asked = call(caller, "erase", forms);
                assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
                for _ in 1..CALLS {
                    let answer = call(caller, "echo", json!({}));
                    assert!(answer["result"].is_object() && answer["result"].get("isError").is_none(), "{answer}");
                }
            });
        }
    });
    assert_eq!(server.stop(), Some(0));
    let report = verify_intact(&folder);
    assert_eq!(
        (&report["lost"], report["parts"].as_array().unwrap().len()),
        (&json!(0), 2),
        "{report}"
    );
    let main = lines_of(&folder, "audit");
    for caller in &honest {
        let of = |event: &str| {
            let mine = |line: &&Value| {
                line["event"] == event && line["caller"] == format!("token:{caller}")
            };
            main.iter().filter(mine).count()
        };
        assert_eq!((of("call"), of("approval")), (CALLS, 1), "{caller}");
    }
    // The earliest lines are still there, and there is no line of the attacker.
    let has = |event: &str| main.iter().any(|line| line["event"] == event);
    assert!(has("start") && has("load"), "{report}");
    assert!(main.iter().all(|line| line["caller"] != "token:restricted"));
    assert_eq!(outcomes(&folder)["unknown-tool"], ATTACKS as u64);
    let counted = events(&folder, "rejected");
    assert!(
        counted
            .iter()
            .all(|line| line["caller"] == "token:restricted"),
        "{counted:?}"
    );
    // At most one line per second: far fewer lines than calls.
    assert!(counted.len() * 20 < ATTACKS, "{}", counted.len());
}

#[test]
fn repeated_rejections_of_a_caller_are_counted_for_each_reason() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_for_tool("one");
    for n in 0..50 {
        server.request_and_wait("tools/call", json!({"name": "none", "arguments": {}}));
        server.request_and_wait(
            "tools/call",
            json!({"name": format!("none-{n}"), "arguments": {}}),
        );
    }
    // The counts are written without another call, and before the server ends.
    wait_for_event(&mut server, &folder, "rejected", 1);
    server.stop();
    verify_intact(&folder);
    assert_eq!(outcomes(&folder)["unknown-tool"], 100);
    assert!(
        lines_of(&folder, "audit")
            .iter()
            .all(|line| line["event"] != "call")
    );
    let first = &lines_of(&folder, "rejected")
        .into_iter()
        .find(|line| line["event"] == "call")
        .unwrap();
    assert_eq!(
        (&first["tool"], &first["outcome"], &first["caller"]),
        (&json!("none"), &json!("unknown-tool"), &json!("stdio"))
    );
    let shown = ToolbayCommand::new(&folder)
        .args(["audit", "show", "--event", "rejected"])
        .run();
    assert!(
        shown.raw_stdout.contains("rejected")
            && shown.raw_stdout.contains("unknown-tool")
            && shown.raw_stdout.contains("count "),
        "{shown}"
    );
    let wrong = ToolbayCommand::new(&folder)
        .args(["audit", "show", "--event", "rejektion"])
        .run();
    assert!(
        wrong.code != 0 && wrong.stderr.contains("is not an event"),
        "{wrong}"
    );
}

#[test]
fn verify_finds_changes_to_the_files_of_rejections() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.text("one", json!({}));
    server.request_and_wait("tools/call", json!({"name": "none", "arguments": {}}));
    server.stop();
    verify_intact(&folder);
    let outcome = ToolbayCommand::new(&folder).args(["audit", "verify"]).run();
    assert!(
        outcome.raw_stdout.contains("  audit-*") && outcome.raw_stdout.contains("  rejected-*"),
        "{outcome}"
    );
    let [file] = &files_of(&folder, "rejected")[..] else {
        panic!("{:?}", files_of(&folder, "rejected"))
    };
    let text = fs::read_to_string(file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let head = folder.sibling_path("log/rejected-head");
    let signed = fs::read(&head).unwrap();
    let found = || {
        let report = verify(&folder);
        assert_eq!(report["intact"], false, "{report}");
        report["findings"].to_string()
    };
    fs::write(
        file,
        text.replacen("\"tool\":\"none\"", "\"tool\":\"nine\"", 1),
    )
    .unwrap();
    let said = found();
    assert!(
        said.contains(name)
            && said.contains("was changed: its contents do not match its recorded hash"),
        "{said}"
    );
    let kept: Vec<&str> = text.lines().take(2).collect();
    fs::write(file, kept.join("\n") + "\n").unwrap();
    assert!(
        found().contains("are missing at the end of the log of rejections"),
        "{}",
        found()
    );
    fs::remove_file(file).unwrap();
    assert!(
        found().contains("are missing at the end of the log of rejections"),
        "{}",
        found()
    );
    // Without any of the files of rejections, as if there had never been any.
    fs::remove_file(&head).unwrap();
    let said = found();
    assert!(
        said.contains("the file `rejected-head`, which signs the newest line, is missing"),
        "{said}"
    );
    assert!(
        said.contains("does not match the hash in other lines of the log"),
        "{said}"
    );
    // A server that continues the log does not repair it.
    StdioServer::start_with_config(&folder, CONFIG).stop();
    let said = found();
    assert!(said.contains("was replaced since"), "{said}");
    // Lines of one part are not valid in the other.
    fs::write(file, fs::read(&files(&folder)[0]).unwrap()).unwrap();
    fs::write(&head, signed).unwrap();
    found();
}

#[test]
fn denials_displace_no_calls_and_their_oldest_files_are_deleted() {
    // Enough to fill more than four files of denials, whose lines have long names.
    const CALLS: usize = 5_500;
    let url = format!("https://{}/", vec!["a".repeat(60); 4].join("."));
    for (files_key, kept) in [("rejected_files = 2", 2), ("", 4)] {
        let folder = Folder::with("web.wasm", web());
        let mut server = StdioServer::start_with_config(&folder, &format!("{CONFIG}{files_key}\n"));
        server.wait_for_tool("try_to_send");
        for _ in 0..CALLS / 50 {
            let ids: Vec<u64> = (0..50)
                .map(|_| server.start_call("try_to_send", json!({"url": url})))
                .collect();
            for id in ids {
                server.finish_call(id);
            }
        }
        server.stop();
        assert_eq!(files_of(&folder, "rejected").len(), kept, "{files_key}");
        let report = verify_intact(&folder);
        assert_eq!(report["lost"], 0, "{report}");
        let calls = lines_of(&folder, "audit")
            .into_iter()
            .filter(|line| line["event"] == "call");
        assert_eq!(calls.count(), CALLS);
        assert!(events(&folder, "denied").len() < CALLS);
    }
}
