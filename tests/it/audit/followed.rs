//! `toolbay audit show --follow`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use super::{CONFIG, events};
use crate::support::{DEADLINE, Folder, StdioServer, TinyComponent, ToolbayCommand};

#[test]
fn a_followed_log_shows_the_newest_lines_and_then_each_new_one() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_for_tool("one");
    for _ in 0..12 {
        server.call("one", json!({}));
    }
    let numbers = |folder: &Folder| -> Vec<u64> {
        let calls = events(folder, "call");
        calls
            .iter()
            .map(|line| line["call"].as_u64().unwrap())
            .collect()
    };
    let before = numbers(&folder);
    let options = ["audit", "show", "--follow", "--event", "call", "--json"];
    let (mut command, _folder) = ToolbayCommand::new(&folder).args(options).into_parts();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let (sender, followed) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line).unwrap();
            let _ = sender.send(line["call"].as_u64().unwrap());
        }
    });
    let take = |count: usize| -> Vec<u64> {
        (0..count)
            .map(|_| followed.recv_timeout(DEADLINE).unwrap())
            .collect()
    };
    assert_eq!(take(10), before[before.len() - 10..]);
    server.call("one", json!({}));
    server.call("one", json!({}));
    let after = take(2);
    assert_eq!(after, numbers(&folder)[before.len()..]);
    child.kill().unwrap();
    child.wait().unwrap();
    // An end and an endless output contradict each other.
    let refused = ToolbayCommand::new(&folder)
        .args(["audit", "show", "--follow", "--until", "2h"])
        .run();
    assert_eq!(refused.code, 2, "{refused}");
}
