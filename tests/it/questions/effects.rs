//! What a call does before it asks happens once, however often the call begins again.

use std::sync::mpsc::TryRecvError;

use super::*;

/// A grant for requests to `site`, for state, and for a folder.
fn grant(site: &Site) -> String {
    format!(
        "{}tcp = [\"{}\"]\n[permissions.state]\n[[permissions.mounts]]\nhost = \"{{folder}}\"\nguest = \"/data\"\naccess = \"read-write\"\n",
        site.grant(),
        site.address
    )
}

const CONFIG: &str =
    "[state]\nfolder = \"kept\"\n[ceilings]\nask_rounds = 1000\njournal = \"8MiB\"\n";

fn served(site: &Site, more: &str) -> HttpServer {
    let folder = Folder::with("asker.wasm", asker());
    std::fs::create_dir(folder.sibling_path("data")).unwrap();
    let data = folder.sibling_path("data").display().to_string();
    folder.put(
        "asker.toml",
        format!("{}{more}", grant(site).replace("{folder}", &data)),
    );
    configured(&folder, CONFIG)
}

/// The methods of the requests that have reached the site.
fn reached(site: &Site) -> Vec<String> {
    let mut reached = Vec::new();
    loop {
        match site.requests.try_recv() {
            Ok(request) => reached.push(request.split(' ').next().unwrap().to_owned()),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return reached,
        }
    }
}

#[test]
fn a_request_that_changes_something_is_sent_once_and_its_response_is_there_again() {
    let site = Site::start();
    let server = served(&site, "");
    let call = steps(json!([
        {"send": ["POST", site.url("/echo/first")]},
        {"send": ["GET", site.url("/hello")]},
        {"count": "n"},
        {"rounds": 3},
        {"count": "n"},
        {"send": ["DELETE", site.url("/hello")]},
    ]));
    let (result, rounds) = answering(&server, "tools/call", &call, &mut |key, _| accepted(key));
    assert_eq!(rounds, 3);
    let said = said(&result);
    assert!(
        said[0].starts_with("200 POST /echo/first HTTP/1.1"),
        "{said:?}"
    );
    assert_eq!(
        (&*said[1], &*said[2], &*said[4], &*said[5]),
        ("200 hello", "1", "2", "200 hello")
    );
    assert_eq!(
        reached(&site),
        ["POST", "GET", "GET", "GET", "GET", "DELETE"]
    );
    // Another call is another one.
    let (result, _) = answering(&server, "tools/call", &call, &mut |key, _| accepted(key));
    assert_eq!(super::said(&result)[2], "3");
}

/// The server is another one every hundred rounds; a state outlives it.
#[test]
fn over_a_thousand_rounds_with_restarts_everything_happens_once() {
    const ROUNDS: u32 = 1_000;
    let site = Site::start();
    let mut server = served(&site, "[limits]\nask_rounds = 1000\njournal = \"8MiB\"\n");
    let call = steps(
        json!([{"send": ["POST", site.url("/hello")]}, {"count": "n"}, {"rounds": ROUNDS}, {"count": "n"}]),
    );
    let mut sent = call.clone();
    let mut rounds = 0;
    let result = loop {
        let mut response = stateless(&server, "tools/call", sent, &everything());
        let result = response["result"].take();
        if result["resultType"] != "input_required" {
            break result;
        }
        rounds += 1;
        sent = again(&call, &result, &mut |_, _| accepted(""));
        if rounds % 100 == 0 {
            let folder = server.folder().clone();
            server.stop();
            server = configured(&folder, CONFIG);
        }
    };
    assert_eq!(rounds, ROUNDS, "{result}");
    assert_eq!(
        (said(&result)[1].as_str(), said(&result)[3].as_str()),
        ("1", "2")
    );
    assert_eq!(reached(&site), ["POST"]);
}

#[test]
fn what_cannot_happen_once_bars_a_call_from_asking() {
    let site = Site::start();
    let server = served(&site, "[limits]\njournal = \"1KiB\"\n");
    let ask = json!({"ask": [form("who")]});
    for (before, words) in [
        (
            json!({"write": "/data/a"}),
            "the call changed files before this question",
        ),
        (
            json!({"connect": site.address.to_string()}),
            "the call made a TCP connection before this question",
        ),
        (
            json!({"send": ["POST", site.url("/large")]}),
            "too large to store (limits.journal)",
        ),
        (
            json!({"send": ["POST", site.url(&format!("/echo/{}", "x".repeat(1_000)))]}),
            "too large to store (limits.journal)",
        ),
    ] {
        let result = stateless(
            &server,
            "tools/call",
            steps(json!([before, ask])),
            &everything(),
        );
        assert!(
            result_text(&result["result"]).contains(words),
            "{before}: {result}"
        );
        // Without a question, nothing is barred.
        let result = stateless(&server, "tools/call", steps(json!([before])), &everything());
        assert!(
            !result_text(&result["result"]).contains(words),
            "{before}: {result}"
        );
    }
    // What was refused, and what changes nothing, bars nothing.
    for before in [
        json!({"exists": "/data/a"}),
        json!({"send": ["GET", site.url("/hello")]}),
        json!({"keep": "n"}),
        json!({"send-unread": ["POST", site.url("/hello")]}),
    ] {
        let (result, rounds) = answering(
            &server,
            "tools/call",
            &steps(json!([before, ask])),
            &mut |key, _| accepted(key),
        );
        assert_eq!((rounds, said(&result).len()), (1, 2), "{before}");
    }
}

#[test]
fn a_call_that_does_something_else_after_its_question_fails_and_says_what() {
    let site = Site::start();
    let server = served(&site, "");
    let call =
        steps(json!([{"send-anywhere": ["POST", site.url("/echo/")]}, {"ask": [form("who")]}]));
    let (result, _) = answering(&server, "tools/call", &call, &mut |key, _| accepted(key));
    let words = result_text(&result);
    assert!(
        words.contains("did something different") && words.contains("POST http://127.0.0.1:"),
        "{words}"
    );
    assert_eq!(reached(&site).len(), 1);
}

#[test]
fn a_response_that_failed_fails_again_without_another_attempt() {
    let site = Site::start();
    let server = served(&site, "");
    let before = json!({"send": ["POST", site.url("/short")]});
    let failed = stateless(&server, "tools/call", steps(json!([before])), &everything());
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert_eq!(reached(&site), ["POST"]);
}

/// Secrets on a request are neither in the state nor in what is compared.
#[test]
fn a_secret_of_a_request_is_not_in_what_is_remembered() {
    let site = Site::start();
    let secret = format!(
        "[secrets.token]\nenvironment = \"TOKEN\"\nquery = \"key\"\norigins = [\"http://{}\"]\n",
        site.address
    );
    let folder = Folder::with("asker.wasm", asker());
    folder.put("asker.toml", format!("{}{secret}", site.grant()));
    let command = crate::support::ToolbayCommand::new(&folder)
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("TOKEN", "hunter2-hunter2");
    let server = HttpServer::run(command).wait_until_ready();
    while !server.result("tools/list", json!({}))["tools"]
        .as_array()
        .unwrap()
        .iter()
        .any(|tool| tool["name"] == "ask")
    {
        std::thread::yield_now();
    }
    let call = steps(json!([{"send": ["POST", site.url("/echo")]}, {"ask": [form("who")]}]));
    let (result, rounds) = answering(&server, "tools/call", &call, &mut |key, _| accepted(key));
    assert_eq!(rounds, 1);
    assert!(
        said(&result)[0].starts_with("200 POST /echo?key="),
        "{result}"
    );
    let request = site.requests.recv().unwrap();
    assert!(
        request.starts_with("POST /echo?key=hunter2-hunter2 "),
        "{request}"
    );
    assert_eq!(reached(&site), Vec::<String>::new());
}
