//! State that plugins store between calls: it needs a grant, has quotas, is separate for each
//! plugin, and survives crashes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::http::auth::token;
use crate::support::{
    Folder, HttpServer, StdioServer, ToolbayCommand, error_kind_and_text, hostile, keeper,
    result_text,
};

/// Stores the state of a test in its own folder.
const CONFIG: &str = "[state]\nfolder = \"kept\"";

const GRANT: &str = "[permissions.state]";

/// Creates a folder with the guest `keeper` and this grant.
fn folder_with_grant(grant: &str) -> Folder {
    let folder = Folder::with("keeper.wasm", keeper());
    folder.put("keeper.toml", grant);
    folder.write_config(CONFIG);
    folder
}

/// Runs steps and returns the output of each.
fn run_steps(server: &mut StdioServer, steps: Value) -> Vec<String> {
    step_outputs(&server.call("keep", json!({"steps": steps})))
}

fn step_outputs(result: &Value) -> Vec<String> {
    let said: Value = serde_json::from_str(&result_text(result))
        .unwrap_or_else(|error| panic!("{error}: {result}"));
    said["said"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

fn list_state(folder: &Folder) -> Value {
    let outcome = ToolbayCommand::new(folder)
        .args(["state", "list", "--json"])
        .run();
    serde_json::from_str(&outcome.raw_stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

#[test]
fn without_a_grant_no_state_is_stored_and_the_log_names_the_missing_permission() {
    let folder = Folder::with("keeper.wasm", keeper());
    folder.write_config(CONFIG);
    let mut server = StdioServer::start(&folder);
    let (kind, words) = server.failure("keep", json!({"steps": []}));
    assert_eq!(
        (kind.as_str(), words.as_str()),
        ("denied", "access denied\nThis tool may not keep state.")
    );
    let log =
        "denied: This tool may not keep state. To allow it, add to [permissions] in keeper.toml: ";
    let line = server.log.wait_for(log);
    let remedy = line
        .split_once(log)
        .unwrap()
        .1
        .split(" plugin=")
        .next()
        .unwrap()
        .to_owned();
    let names = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    };
    let [of_this_folder] = &*names(&folder.sibling_path("kept")) else {
        panic!("one folder of plugins")
    };
    assert_eq!(
        names(of_this_folder),
        [of_this_folder.join("requests")],
        "a database that nobody needs"
    );
    folder.put("keeper.toml", format!("[permissions]\n{remedy}"));
    server.wait_until("the grant is loaded", |server| {
        server.call("keep", json!({"steps": []}))["isError"] != true
    });
    assert_eq!(
        run_steps(&mut server, json!([{"set": ["a", "1"]}, {"get": "a"}])),
        ["fine", "some 1"]
    );
}

#[test]
fn a_typo_in_the_grant_names_the_nearest_key() {
    for (grant, said) in [
        (
            "[permissions.stat]",
            "keeper.toml:1:14: permissions: unknown key `stat`; did you mean `state`?",
        ),
        (
            "[permissions.state]\nsise = 1",
            "keeper.toml:2:1: permissions.state: unknown key `sise`; did you mean `size`?",
        ),
        (
            "[permissions.state]\nkey = 1",
            "keeper.toml:2:1: permissions.state: unknown key `key`; did you mean `keys`?",
        ),
        (
            "[permissions.state]\nscop = 1",
            "keeper.toml:2:1: permissions.state: unknown key `scop`; did you mean `scope`?",
        ),
    ] {
        let outcome = ToolbayCommand::new(&folder_with_grant(grant))
            .args(["list"])
            .run();
        let said = said.split_once(": ").unwrap();
        assert!(
            outcome.stdout.contains(said.0)
                && outcome.stdout.contains(said.1.rsplit(": ").next().unwrap()),
            "{outcome}"
        );
    }
    let folder = folder_with_grant(GRANT);
    folder.write_config("[state]\nfoldr = \"kept\"");
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(
        outcome
            .stderr
            .contains("unknown key `foldr`; did you mean `folder`?"),
        "{outcome}"
    );
}

#[test]
fn every_operation_of_both_drafts_works() {
    let mut server = StdioServer::start_with_config(&folder_with_grant(GRANT), CONFIG);
    let steps = json!([
        {"get": "a"}, {"exists": "a"}, {"set": ["a", "1"]}, {"exists": "a"}, {"get": "a"},
        {"set-many": [["b", "2"], ["c", "3"]]}, {"get-many": ["c", "no", "a"]}, {"list": null},
        {"delete": "a"}, {"delete": "a"}, {"delete-many": ["b", "no"]}, {"list": null},
        {"increment": ["n", 3]}, {"increment": ["n", 4]}, {"increment2": ["n", -10]}, {"increment": ["n", 1]},
        {"increment2": ["n", -9_223_372_036_854_775_807_i64]}, {"get": "n"}, {"increment": ["c", 1]},
        {"set": ["c", "x"]}, {"increment": ["c", 1]},
        {"append": ["log", "ab", 3]}, {"get": "log"}, {"clash": "log"}, {"get": "log"},
    ]);
    let expected = [
        "none",
        "false",
        "fine",
        "true",
        "some 1",
        "fine",
        "c=3 none a=1",
        "a b c None",
        "fine",
        "fine",
        "fine",
        "c None",
        "3",
        "7",
        "-3",
        "the number would be out of range",
        "the number would be out of range",
        "some -3",
        "4",
        "fine",
        "the value is not a whole number in decimal digits",
        "fine",
        "some ababab",
        "some theirs",
        "some ours",
    ];
    assert_eq!(run_steps(&mut server, steps), expected);
    let pages = json!([{"fill-many": ["k", 1000]}, {"fill-many": ["l", 1000]}, {"fill-many": ["m", 500]},
        {"count": null}, {"count2": null}, {"list": 2_503}]);
    // With `c`, `log` and `n`. The last page starts after the number of keys in its cursor.
    assert_eq!(
        run_steps(&mut server, without_nulls(pages)),
        ["fine", "fine", "fine", "2503", "2503", " None"]
    );
    let names = |name: &str| json!({"bucket": name, "steps": [{"get": "c"}]});
    assert_eq!(
        step_outputs(&server.call("keep", names("default"))),
        ["some x"],
        "the default bucket has a name"
    );
    assert_eq!(step_outputs(&server.call("keep", names("other"))), ["none"]);
    let (_, words) = server.failure("keep", names(&"x".repeat(65)));
    assert_eq!(words, "no such store");
    let too_large = json!([{"fill": ["k", 1_048_577]}, {"get": "x".repeat(2_000)}, {"set": ["x".repeat(1_025), ""]},
        {"fill-many": ["x", 1_001]}]);
    let [value, absent, key, batch] = &run_steps(&mut server, too_large)[..] else {
        panic!()
    };
    assert_eq!(
        value,
        "the value has 1,048,577 bytes; the largest has 1,048,576"
    );
    assert_eq!(
        (absent.as_str(), key.as_str()),
        ("none", "the key has 1,025 bytes; the longest has 1,024")
    );
    assert_eq!(
        batch,
        "one operation has at most 1,000 keys, and 4.0 MiB of keys and values"
    );
}

/// Converts steps without a value from objects to words.
fn without_nulls(steps: Value) -> Value {
    let steps = steps.as_array().unwrap().iter().map(|step| {
        let (name, value) = step.as_object().unwrap().iter().next().unwrap();
        if value.is_null() {
            json!(name)
        } else {
            step.clone()
        }
    });
    steps.collect()
}

#[test]
fn state_outlives_the_server_and_an_update_and_is_separate_for_each_plugin() {
    let folder = folder_with_grant(GRANT);
    folder.put("other.wasm", keeper());
    folder.put("other.toml", format!("prefix = \"other\"\n{GRANT}"));
    {
        let mut server = StdioServer::start(&folder);
        assert_eq!(
            run_steps(&mut server, json!([{"set": ["mine", "1"]}])),
            ["fine"]
        );
        let others = server.call(
            "other_keep",
            json!({"steps": [{"get": "mine"}, {"set": ["mine", "2"]}, "count"]}),
        );
        assert_eq!(step_outputs(&others), ["none", "fine", "1"]);
        assert_eq!(server.stop().1, Some(0));
    }
    let mut updated = keeper();
    // A custom section named `x` changes the file, but it is the same plugin.
    updated.extend([0, 2, 1, b'x']);
    folder.put("keeper.wasm", updated);
    let mut server = StdioServer::start(&folder);
    assert_eq!(
        run_steps(&mut server, json!([{"get": "mine"}, "count"])),
        ["some 1", "1"]
    );
}

#[test]
fn an_operation_beyond_a_quota_fails_and_names_the_key_to_raise() {
    let folder = folder_with_grant("[permissions.state]\nsize = \"1KiB\"\nkeys = 3");
    let mut server = StdioServer::start(&folder);
    let steps = json!([{"fill": ["a", 1_000]}, {"fill": ["b", 100]}, {"fill": ["a", 10]}, {"fill-many": ["x", 3]},
        {"fill-many": ["x", 2]}, {"set": ["z", ""]}, "count"]);
    let [first, size, smaller, batch, two, keys, count] = &run_steps(&mut server, steps)[..] else {
        panic!()
    };
    assert_eq!([first, smaller, two, count], ["fine", "fine", "fine", "3"]);
    assert_eq!(
        size,
        "the quota of 1.0 KiB is used up (permissions.state.size)"
    );
    assert_eq!(
        [batch, keys],
        ["the quota of 3 keys is used up (permissions.state.keys)"; 2]
    );
    let strictly = |step: Value| json!({"strict": true, "steps": [step]});
    let (kind, words) = server.failure("keep", strictly(json!({"fill": ["a", 5_000]})));
    assert_eq!(kind, "limit");
    assert_eq!(
        words,
        "The tool tried to keep more than 1.0 KiB of state (to allow more, raise permissions.state.size)."
    );
    let (kind, words) = server.failure("keep", strictly(json!({"set": ["y", ""]})));
    assert_eq!(kind, "limit");
    assert_eq!(
        words,
        "The tool tried to keep more than 3 keys of state (to allow more, raise permissions.state.keys)."
    );
    let mut server = StdioServer::start_with_config(
        &folder_with_grant(GRANT),
        &format!("{CONFIG}\nsize = \"10KiB\""),
    );
    let (kind, words) = server.failure("keep", strictly(json!({"fill": ["a", 10_000]})));
    assert_eq!(kind, "limit");
    assert!(
        words.contains("(to allow more, raise state.size, which applies to all plugins)"),
        "{words}"
    );
}

#[test]
fn a_quota_is_enforced_during_eight_parallel_calls() {
    let folder = folder_with_grant("[permissions.state]\nsize = \"64KiB\"\nkeys = 100");
    let mut server = StdioServer::start(&folder);
    let calls: Vec<u64> = (0..8)
        .map(|writer| {
            let steps: Vec<Value> = (0..40)
                .map(|n| json!({"fill": [format!("{writer}-{n}"), 211 * (n % 9)]}))
                .collect();
            server.start_call("keep", json!({"steps": steps}))
        })
        .collect();
    let mut accepted = 0;
    for call in calls {
        for word in step_outputs(&server.finish_call(call)) {
            assert!(
                word == "fine" || word.starts_with("the quota of "),
                "{word}"
            );
            accepted += usize::from(word == "fine");
        }
    }
    assert_eq!(
        run_steps(&mut server, json!(["count"])),
        [accepted.to_string()]
    );
    let kept = &list_state(&folder)["state"][0];
    assert_eq!(kept["keys"], accepted);
    assert!(
        accepted <= 100 && kept["bytes"].as_u64().unwrap() <= 64 << 10,
        "{kept}"
    );
    assert!(
        accepted == 100 || kept["bytes"].as_u64().unwrap() > 60 << 10,
        "the quota can be used: {kept}"
    );
}

#[test]
fn parallel_increments_and_swaps_lose_nothing() {
    let mut server = StdioServer::start(&folder_with_grant(GRANT));
    let steps: Vec<Value> = (0..50)
        .map(|_| json!({"increment": ["n", 1]}))
        .chain([json!({"append": ["s", "x", 10]})])
        .collect();
    let calls: Vec<u64> = (0..8)
        .map(|_| server.start_call("keep", json!({"strict": true, "steps": steps})))
        .collect();
    for call in calls {
        step_outputs(&server.finish_call(call));
    }
    let expected = ["some 400".to_owned(), format!("some {}", "x".repeat(80))];
    assert_eq!(
        run_steps(&mut server, json!([{"get": "n"}, {"get": "s"}])),
        expected
    );
}

#[test]
fn each_caller_has_a_separate_state_if_the_grant_has_that_scope() {
    let folder = folder_with_grant("[permissions.state]\nscope = \"caller\"\nkeys = 1");
    let (ada, first) = token("ada", "");
    let (bob, second) = token("bob", "");
    let server = HttpServer::start_with_config(&folder, &format!("{CONFIG}\n{first}{second}"))
        .wait_until_ready();
    let call = |token: &str, steps: Value| {
        let params = json!({"name": "keep", "arguments": {"steps": steps}});
        let answer = server
            .post_stateless(
                "tools/call",
                params,
                &[("Authorization", &format!("Bearer {token}"))],
            )
            .response_message();
        step_outputs(&answer["result"])
    };
    assert_eq!(call(&ada, json!([{"set": ["a", "ada's"]}])), ["fine"]);
    let full = "the quota of 1 keys is used up (permissions.state.keys)";
    assert_eq!(
        call(
            &bob,
            json!([{"get": "a"}, {"set": ["b", "bob's"]}, {"set": ["c", ""]}])
        ),
        ["none", "fine", full]
    );
    assert_eq!(
        call(&ada, json!([{"get": "a"}, "count"])),
        ["some ada's", "1"]
    );
    let get = |caller: &str, key: &str| {
        ToolbayCommand::new(&folder)
            .args(["state", "get", "keeper", key, "--caller", caller])
            .run()
    };
    assert_eq!(get("token:bob", "b").raw_stdout, "bob's");
    assert_eq!(get("token:bob", "a").code, 1);
    let outcome = ToolbayCommand::new(&folder)
        .args(["state", "clear", "keeper", "--caller", "token:ada"])
        .run();
    assert_eq!(outcome.stdout, "deleted 1 key, 6 B\n");
    assert_eq!(call(&ada, json!([{"get": "a"}])), ["none"]);
    assert_eq!(call(&bob, json!([{"get": "b"}])), ["some bob's"]);
}

#[test]
fn without_scope_all_callers_share_the_state() {
    let folder = folder_with_grant(GRANT);
    let (ada, first) = token("ada", "");
    let (bob, second) = token("bob", "");
    let server = HttpServer::start_with_config(&folder, &format!("{CONFIG}\n{first}{second}"))
        .wait_until_ready();
    let call = |token: &str, step: Value| {
        let params = json!({"name": "keep", "arguments": {"steps": [step]}});
        let answer = server
            .post_stateless(
                "tools/call",
                params,
                &[("Authorization", &format!("Bearer {token}"))],
            )
            .response_message();
        step_outputs(&answer["result"])
    };
    assert_eq!(call(&ada, json!({"set": ["a", "hers"]})), ["fine"]);
    assert_eq!(call(&bob, json!({"get": "a"})), ["some hers"]);
}

#[test]
fn without_size_and_keys_the_default_quotas_apply() {
    let mut server = StdioServer::start(&folder_with_grant(GRANT));
    let full: Vec<Value> = (0..10)
        .map(|n| json!({"fill": [format!("{n}"), 1 << 20]}))
        .collect();
    let said = run_steps(&mut server, Value::from(full));
    assert_eq!(
        said.iter().filter(|word| *word == "fine").count(),
        9,
        "{said:?}"
    );
    assert_eq!(
        said[9],
        "the quota of 10.0 MiB is used up (permissions.state.size)"
    );
    let mut server = StdioServer::start(&folder_with_grant(GRANT));
    let many: Vec<Value> = (0..11)
        .map(|n| json!({"fill-many": [format!("{n}-"), 1_000]}))
        .collect();
    let said = run_steps(&mut server, Value::from(many));
    assert_eq!(
        said.iter().filter(|word| *word == "fine").count(),
        10,
        "{said:?}"
    );
    assert_eq!(
        said[10],
        "the quota of 10,000 keys is used up (permissions.state.keys)"
    );
}

#[test]
fn a_caller_who_is_not_authenticated_has_no_state() {
    let folder = folder_with_grant("[permissions.state]\nscope = \"caller\"");
    let server = HttpServer::start_with_config(&folder, CONFIG).wait_until_ready();
    let answer = server
        .post_stateless(
            "tools/call",
            json!({"name": "keep", "arguments": {"steps": []}}),
            &[],
        )
        .response_message();
    let (kind, words) = error_kind_and_text(&answer["result"]);
    assert_eq!(kind, "denied");
    assert!(
        words.starts_with(
            "This tool keeps state for each caller, and this caller is not authenticated."
        ),
        "{words}"
    );
    assert_eq!(list_state(&folder)["state"], json!([]));
    // The only caller over standard input and output is authenticated.
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    assert_eq!(
        run_steps(&mut server, json!([{"set": ["a", "1"]}])),
        ["fine"]
    );
    assert_eq!(list_state(&folder)["state"][0]["caller"], "stdio");
}

#[test]
fn acknowledged_changes_survive_a_killed_server() {
    const PARALLEL: usize = 4;
    let folder = folder_with_grant("[permissions.state]\nkeys = 100000\n[limits]\nlog = \"8MiB\"");
    let mut acknowledged = [0_u64; PARALLEL];
    let mut kept = 0;
    for round in 0..5 {
        let mut server = StdioServer::start(&folder);
        for (writer, acknowledged) in acknowledged.iter_mut().enumerate() {
            let n = format!("n{writer}");
            let found = run_steps(&mut server, json!([{"increment": [n, 0]}]))[0]
                .parse::<u64>()
                .unwrap();
            // One more change may be on disk without a response.
            assert!(
                (*acknowledged..=*acknowledged + 1).contains(&found),
                "round {round}: {acknowledged} {found}"
            );
            *acknowledged = found;
        }
        // Each call writes a log line after each change, and runs until the server is killed.
        let steps = |writer: usize| -> Vec<Value> {
            let change = |n: u64| {
                [
                    json!({"increment": [format!("n{writer}"), 1]}),
                    json!({"say": format!("w{writer}={n}.")}),
                ]
            };
            (acknowledged[writer] + 1..acknowledged[writer] + 2_000)
                .flat_map(change)
                .collect()
        };
        for writer in 0..PARALLEL {
            server.start_call("keep", json!({"strict": true, "steps": steps(writer)}));
        }
        let last = acknowledged
            .iter()
            .enumerate()
            .map(|(writer, before)| format!("w{writer}={}.", before + 20 + round));
        for line in last.collect::<Vec<_>>() {
            server.log.wait_for(&line);
        }
        let log = server.log.clone();
        server.kill();
        for (writer, acknowledged) in acknowledged.iter_mut().enumerate() {
            let mark = format!("w{writer}=");
            let text = log.text();
            let told = text
                .match_indices(&mark)
                .filter_map(|(at, _)| text[at + mark.len()..].split('.').next()?.parse().ok());
            *acknowledged = told.max().unwrap_or(*acknowledged);
            kept += 1;
        }
    }
    assert_eq!(kept, 5 * PARALLEL);
    let total = &list_state(&folder)["state"][0];
    assert_eq!(total["keys"], PARALLEL);
}

#[test]
fn a_cancelled_or_timed_out_call_leaves_the_state_consistent() {
    let folder = folder_with_grant("[permissions.state]\n[limits]\ntimeout = \"500ms\"");
    let mut server = StdioServer::start(&folder);
    for n in 0..5 {
        let call = server.start_call(
            "keep",
            json!({"steps": [{"say": format!("began {n}")}, {"forever": "a"}]}),
        );
        server.log.wait_for(&format!("began {n}"));
        server.notify("notifications/cancelled", json!({"requestId": call}));
    }
    let (kind, _) = server.failure("keep", json!({"steps": [{"forever": "a"}]}));
    assert_eq!(kind, "deadline");
    // On a busy machine, half a second is too short for the following steps.
    server.stop();
    folder.put("keeper.toml", GRANT);
    let mut server = StdioServer::start(&folder);
    assert_eq!(
        run_steps(
            &mut server,
            json!([{"get": "a"}, {"set": ["b", "1"]}, "count"])
        ),
        ["some again", "fine", "2"]
    );
    assert_eq!(
        list_state(&folder)["state"][0]["bytes"],
        "a".len() + "again".len() + "b".len() + 1
    );
}

#[test]
fn reads_and_handles_count_against_the_limits_of_the_call() {
    let folder = folder_with_grant(GRANT);
    let mut server = StdioServer::start(&folder);
    assert_eq!(
        run_steps(
            &mut server,
            json!([{"fill": ["large", 1_000_000]}, {"get": "large"}])
        ),
        ["fine", "1000000 bytes"]
    );
    let (kind, _) = server.failure("keep", json!({"steps": [{"hoard": 5_000}]}));
    assert_eq!(kind, "limit");
    folder.put(
        "keeper.toml",
        format!("{GRANT}\n[limits]\nmemory = \"2MiB\""),
    );
    server.wait_until("the grant is loaded", |server| {
        let result = server.call("keep", json!({"steps": [{"get": "large"}]}));
        result["isError"] == true && error_kind_and_text(&result).0 == "memory"
    });
    assert_eq!(
        run_steps(&mut server, json!([{"exists": "large"}])),
        ["true"]
    );
}

#[test]
fn the_operator_can_list_and_clear_state_while_a_server_runs() {
    let folder = folder_with_grant(GRANT);
    let toolbay = |args: &[&str]| {
        ToolbayCommand::new(&folder)
            .args(["state"])
            .args(args)
            .run()
    };
    assert!(
        toolbay(&["list"])
            .stdout
            .starts_with("no plugin has state in ")
    );
    assert!(
        !folder.sibling_path("kept").exists(),
        "to look creates nothing"
    );
    let mut server = StdioServer::start(&folder);
    run_steps(
        &mut server,
        json!([{"set": ["a", "12345"]}, {"set": ["b", "1"]}]),
    );
    server.call(
        "keep",
        json!({"bucket": "other", "steps": [{"set": ["c", "\u{1b}[1mx"]}]}),
    );
    insta::assert_snapshot!(toolbay(&["list"]).stdout, @r"
    keeper  3 keys, 14 B, of at most 10,000 keys and 10.0 MiB
        default  2 keys, 8 B
        other  1 key, 6 B
    ");
    let used = |keys: u64, bytes: u64| json!({"keys": keys, "bytes": bytes});
    let expected = json!([{
        "plugin": "keeper",
        "caller": null,
        "keys": 3,
        "bytes": 14,
        "buckets": {"default": used(2, 8), "other": used(1, 6)},
        "quota": {"size": 10 << 20, "keys": 10_000, "scope": "plugin"},
    }]);
    assert_eq!(list_state(&folder)["state"], expected);
    assert_eq!(toolbay(&["get", "keeper", "a"]).raw_stdout, "12345");
    assert_eq!(
        toolbay(&["get", "keeper", "c", "--bucket", "other"]).raw_stdout,
        "\u{1b}[1mx"
    );
    let missing = toolbay(&["get", "keeper", "c"]);
    assert_eq!(
        (missing.code, missing.stderr.as_str()),
        (1, "toolbay: keeper has no key \"c\" in bucket default\n")
    );
    assert_eq!(toolbay(&["get", "nobody", "c"]).code, 1);
    assert_eq!(
        toolbay(&["clear", "keeper", "--bucket", "other"]).stdout,
        "deleted 1 key, 6 B\n"
    );
    assert_eq!(
        run_steps(&mut server, json!(["count"])),
        ["2"],
        "the server goes on"
    );
    assert_eq!(
        toolbay(&["clear", "nobody"]).stdout,
        "deleted 0 keys, 0 B\n"
    );
    folder.remove("keeper.toml");
    assert!(
        toolbay(&["list"])
            .stdout
            .contains("which its grant does not allow")
    );
    assert_eq!(
        toolbay(&["clear", "keeper"]).stdout,
        "deleted 2 keys, 8 B\n"
    );
    assert_eq!(list_state(&folder)["state"], json!([]));
    let listed = ToolbayCommand::new(&folder_with_grant(GRANT))
        .args(["list"])
        .run();
    assert!(
        listed
            .stdout
            .contains("    + state: 10.0 MiB and 10,000 keys\n"),
        "{listed}"
    );
}

#[test]
fn two_servers_can_use_one_state_in_turns() {
    let folder = folder_with_grant(GRANT);
    let mut first = StdioServer::start(&folder);
    let mut second = StdioServer::start(&folder);
    for n in 1..=2 {
        assert_eq!(
            run_steps(&mut first, json!([{"increment": ["n", 1]}])),
            [(2 * n - 1).to_string()]
        );
        assert_eq!(
            run_steps(&mut second, json!([{"increment": ["n", 1]}])),
            [(2 * n).to_string()]
        );
    }
}

#[test]
fn no_state_is_stored_if_the_folder_is_empty_or_unusable() {
    let folder = folder_with_grant(GRANT);
    let mut server = StdioServer::start_with_config(&folder, "[state]\nfolder = \"\"");
    let (kind, words) = server.failure("keep", json!({"steps": []}));
    assert_eq!(kind, "denied");
    assert!(words.starts_with("The server keeps no state"), "{words}");
    assert_eq!(
        ToolbayCommand::new(&folder)
            .args(["state", "list"])
            .run()
            .code,
        1
    );
    folder.write_config(CONFIG);
    fs::create_dir_all(folder.sibling_path("kept/toolbay-state")).unwrap();
    fs::write(
        folder.sibling_path("kept/toolbay-state/state.redb"),
        "no database",
    )
    .unwrap();
    let mut server = StdioServer::start(&folder);
    // The problem is reported when the grant is loaded, before any call.
    server.log.wait_for("state.redb");
    let unavailable =
        "the state is not available at the moment; the server's log states the reason";
    assert_eq!(
        run_steps(&mut server, json!([{"get": "a"}, {"set": ["a", "1"]}])),
        [unavailable; 2]
    );
    assert_eq!(
        fs::read_to_string(folder.sibling_path("kept/toolbay-state/state.redb")).unwrap(),
        "no database"
    );
}

#[test]
fn exported_state_can_be_imported_within_the_quota_of_the_grant() {
    let folder = folder_with_grant(GRANT);
    let mut server = StdioServer::start(&folder);
    let steps =
        json!([{"set": ["a", "1"]}, {"set": ["\u{fc}\n\"", "two"]}, {"fill": ["big", 100_000]}]);
    assert_eq!(run_steps(&mut server, steps), ["fine"; 3]);
    drop(server);
    let state = |args: &[&str]| ToolbayCommand::new(&folder).args(["state"]).args(args);
    let exported = state(&["export"]).run();
    assert_eq!(exported.code, 0, "{exported}");
    let lines: Vec<Value> = exported
        .raw_stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[0],
        json!({"plugin": "keeper", "bucket": "default", "key": "a", "value": "MQ=="})
    );
    assert_eq!(state(&["export", "other"]).run().raw_stdout, "");
    fs::write(folder.sibling_path("copy.jsonl"), &exported.raw_stdout).unwrap();
    let before = list_state(&folder);

    assert_eq!(state(&["clear", "keeper"]).run().code, 0);
    let imported = state(&["import", "copy.jsonl"]).run();
    assert_eq!(imported.stdout, "set 3 keys\n", "{imported}");
    assert_eq!(list_state(&folder), before);
    assert_eq!(
        state(&["get", "keeper", "\u{fc}\n\""]).run().raw_stdout,
        "two"
    );
    // The same copy again changes nothing.
    assert_eq!(
        state(&["import", "-"]).run_with(&exported.raw_stdout).code,
        0
    );
    assert_eq!(list_state(&folder), before);

    let refused = |input: &str, words: &str| {
        let outcome = state(&["import", "-"]).run_with(input);
        assert!(
            outcome.code == 1 && outcome.stderr.contains(words),
            "{words}: {outcome}"
        );
    };
    let line = |change: Value| {
        let mut line = lines[0].clone();
        line.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        line.to_string() + "\n"
    };
    refused(
        "nonsense\n",
        "-:1, after 0 keys: expected a line of `toolbay state export`",
    );
    refused(
        &(line(json!({})) + &line(json!({"value": "?"}))),
        "-:2, after 1 keys: the value is not base64",
    );
    refused(
        &line(json!({"plugin": "other"})),
        "the grant of other does not allow state",
    );
    refused(
        &line(json!({"plugin": "../keeper"})),
        "does not allow state",
    );
    refused(
        &line(json!({"caller": "stdio"})),
        "allows state that callers share",
    );
    refused(&line(json!({"extra": 1})), "expected a line of");
    folder.put("keeper.toml", "[permissions.state]\nkeys = 3\n");
    refused(&line(json!({"key": "fourth"})), "quota of 3 keys");
    assert_eq!(list_state(&folder)["state"][0]["keys"], 3);
}

#[test]
fn a_variable_sets_the_folder() {
    let folder = Folder::with("keeper.wasm", keeper());
    folder.put("keeper.toml", GRANT);
    let kept = folder.sibling_path("by-variable");
    let command = ToolbayCommand::new(&folder)
        .args(["serve"])
        .env("TOOLBAY_STATE_FOLDER", kept.to_str().unwrap());
    let mut server = StdioServer::run(command).with_handshake("2025-11-25");
    assert_eq!(
        run_steps(&mut server, json!([{"set": ["a", "1"]}])),
        ["fine"]
    );
    assert!(kept.join("toolbay-state/state.redb").exists());
}

#[test]
fn no_mount_contains_the_state() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.write_config(CONFIG);
    fs::create_dir_all(folder.sibling_path("kept/toolbay-state")).unwrap();
    for host in ["../kept", "../kept/toolbay-state"] {
        for access in ["read", "read-write"] {
            let mount = format!(
                "[[permissions.mounts]]\nhost = \"{host}\"\nguest = \"/data\"\naccess = \"{access}\""
            );
            folder.put("hostile.toml", mount);
            let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
            assert!(
                outcome
                    .stdout
                    .contains("contains the state of plugins, so the plugin could"),
                "{outcome}"
            );
        }
    }
}
