//! Calls with questions are recorded with the answers of their client. A replay uses these answers
//! and asks no client.

use super::*;
use crate::support::ToolbayCommand;

#[test]
fn a_recorded_call_with_a_question_is_replayed_with_the_same_results() {
    let site = Site::start();
    let folder = folder(&format!("{}[permissions.state]\n", site.grant()));
    let server = start_http_with_config(
        &folder,
        "[record]\nfile = \"calls.jsonl\"\n[state]\nfolder = \"kept\"\n",
    );
    let params = steps(json!([
        {"send": ["POST", site.url("/hello")]},
        {"send": ["GET", site.url("/hello")]},
        {"count": "n"},
        "random",
        {"ask": [form("one")]},
        "random",
        {"count": "n"},
    ]));
    let (result, rounds) = call_and_answer(&server, "tools/call", &params, &mut |_, _| {
        accept_answer("Ada")
    });
    assert_eq!(rounds, 1);
    let text = result_text(&result);
    assert!(text.contains("Ada"), "{result}");
    let file = folder.sibling_path("calls.jsonl");
    let written = || {
        std::fs::read_to_string(&file)
            .unwrap()
            .matches("{\"call\":")
            .count()
    };
    while written() < 2 {
        std::thread::yield_now();
    }
    drop(server);
    while site.requests.try_recv().is_ok() {}
    let outcome = ToolbayCommand::new(&folder)
        .args(["replay", file.to_str().unwrap()])
        .run();
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(
        outcome
            .stdout
            .contains("2 equal, 0 different, 0 not replayable"),
        "{outcome}"
    );
    assert!(site.requests.try_recv().is_err(), "a request was sent");
}
