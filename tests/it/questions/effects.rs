//! Effects of a call before a question happen once, however often the call is replayed.

use std::sync::mpsc::TryRecvError;

use super::*;

/// Returns a grant for requests to `site`, for state, and for a folder.
fn grant(site: &Site) -> String {
    format!(
        "{}tcp = [\"{}\"]\n[permissions.state]\n[[permissions.mounts]]\nhost = \"{{folder}}\"\nguest = \"/data\"\naccess = \"read-write\"\n",
        site.grant(),
        site.address
    )
}

const CONFIG: &str =
    "[state]\nfolder = \"kept\"\n[ceilings]\nask_rounds = 1000\njournal = \"8MiB\"\n";

fn start_server(site: &Site, more: &str) -> HttpServer {
    let folder = Folder::with("asker.wasm", asker());
    std::fs::create_dir(folder.sibling_path("data")).unwrap();
    let data = folder.sibling_path("data").display().to_string();
    folder.put(
        "asker.toml",
        format!("{}{more}", grant(site).replace("{folder}", &data)),
    );
    start_http_with_config(&folder, CONFIG)
}

/// Returns the methods of the requests that reached the site.
fn sent_methods(site: &Site) -> Vec<String> {
    let mut reached = Vec::new();
    loop {
        match site.requests.try_recv() {
            Ok(request) => reached.push(request.split(' ').next().unwrap().to_owned()),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return reached,
        }
    }
}

#[test]
fn a_request_with_an_effect_is_sent_once_and_its_response_is_replayed() {
    let site = Site::start();
    let server = start_server(&site, "");
    let call = steps(json!([
        {"send": ["POST", site.url("/echo/first")]},
        {"send": ["GET", site.url("/hello")]},
        {"count": "n"},
        {"rounds": 3},
        {"count": "n"},
        {"send": ["DELETE", site.url("/hello")]},
    ]));
    let (result, rounds) = call_and_answer(&server, "tools/call", &call, &mut |key, _| {
        accept_answer(key)
    });
    assert_eq!(rounds, 3);
    let said = step_outputs(&result);
    assert!(
        said[0].starts_with("200 POST /echo/first HTTP/1.1"),
        "{said:?}"
    );
    assert_eq!(
        (&*said[1], &*said[2], &*said[4], &*said[5]),
        ("200 hello", "1", "2", "200 hello")
    );
    assert_eq!(
        sent_methods(&site),
        ["POST", "GET", "GET", "GET", "GET", "DELETE"]
    );
    // Another call sends its own request.
    let (result, _) = call_and_answer(&server, "tools/call", &call, &mut |key, _| {
        accept_answer(key)
    });
    assert_eq!(super::step_outputs(&result)[2], "3");
}

/// The server is replaced every hundred rounds; the request state outlives it.
#[test]
fn over_a_thousand_rounds_with_restarts_every_effect_happens_once() {
    const ROUNDS: u32 = 1_000;
    let site = Site::start();
    let mut server = start_server(&site, "[limits]\nask_rounds = 1000\njournal = \"8MiB\"\n");
    let call = steps(
        json!([{"send": ["POST", site.url("/hello")]}, {"count": "n"}, {"rounds": ROUNDS}, {"count": "n"}]),
    );
    let mut sent = call.clone();
    let mut rounds = 0;
    let result = loop {
        let mut response = send_stateless(&server, "tools/call", sent, &all_capabilities());
        let result = response["result"].take();
        if result["resultType"] != "input_required" {
            break result;
        }
        rounds += 1;
        sent = retry_params(&call, &result, &mut |_, _| accept_answer(""));
        if rounds % 100 == 0 {
            let folder = server.folder().clone();
            server.stop();
            server = start_http_with_config(&folder, CONFIG);
        }
    };
    assert_eq!(rounds, ROUNDS, "{result}");
    assert_eq!(
        (
            step_outputs(&result)[1].as_str(),
            step_outputs(&result)[3].as_str()
        ),
        ("1", "2")
    );
    assert_eq!(sent_methods(&site), ["POST"]);
}

#[test]
fn a_call_cannot_ask_after_an_effect_that_cannot_be_replayed() {
    let site = Site::start();
    let server = start_server(&site, "[limits]\njournal = \"1KiB\"\n");
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
        let result = send_stateless(
            &server,
            "tools/call",
            steps(json!([before, ask])),
            &all_capabilities(),
        );
        assert!(
            result_text(&result["result"]).contains(words),
            "{before}: {result}"
        );
        // Without a question, the effect is allowed.
        let result = send_stateless(
            &server,
            "tools/call",
            steps(json!([before])),
            &all_capabilities(),
        );
        assert!(
            !result_text(&result["result"]).contains(words),
            "{before}: {result}"
        );
    }
    // Denied operations and operations without an effect do not prevent questions.
    for before in [
        json!({"exists": "/data/a"}),
        json!({"send": ["GET", site.url("/hello")]}),
        json!({"keep": "n"}),
        json!({"send-unread": ["POST", site.url("/hello")]}),
    ] {
        let (result, rounds) = call_and_answer(
            &server,
            "tools/call",
            &steps(json!([before, ask])),
            &mut |key, _| accept_answer(key),
        );
        assert_eq!((rounds, step_outputs(&result).len()), (1, 2), "{before}");
    }
}

#[test]
fn a_replayed_call_with_another_effect_fails_and_names_the_effect() {
    let site = Site::start();
    let server = start_server(&site, "");
    let call =
        steps(json!([{"send-anywhere": ["POST", site.url("/echo/")]}, {"ask": [form("who")]}]));
    let (result, _) = call_and_answer(&server, "tools/call", &call, &mut |key, _| {
        accept_answer(key)
    });
    let words = result_text(&result);
    assert!(
        words.contains("did something different") && words.contains("POST http://127.0.0.1:"),
        "{words}"
    );
    assert_eq!(sent_methods(&site).len(), 1);
}

#[test]
fn a_failed_response_is_not_requested_again() {
    let site = Site::start();
    let server = start_server(&site, "");
    let before = json!({"send": ["POST", site.url("/short")]});
    let failed = send_stateless(
        &server,
        "tools/call",
        steps(json!([before])),
        &all_capabilities(),
    );
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert_eq!(sent_methods(&site), ["POST"]);
}

/// The value of a request's secret is neither in the request state nor in the recorded request that
/// a replay is compared with.
#[test]
fn a_secret_of_a_request_is_not_in_the_request_state() {
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
    let (result, rounds) = call_and_answer(&server, "tools/call", &call, &mut |key, _| {
        accept_answer(key)
    });
    assert_eq!(rounds, 1);
    assert!(
        step_outputs(&result)[0].starts_with("200 POST /echo?key="),
        "{result}"
    );
    let request = site.requests.recv().unwrap();
    assert!(
        request.starts_with("POST /echo?key=hunter2-hunter2 "),
        "{request}"
    );
    assert_eq!(sent_methods(&site), Vec::<String>::new());
}
