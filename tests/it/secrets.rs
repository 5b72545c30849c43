//! A secret appears in no result, notification or log line.

use serde_json::json;

use crate::support::{
    Folder, StdioServer, ToolbayCommand, error_kind_and_text, hostile, result_text,
};

const VALUE: &str = "hunter2-hunter2";

const GRANT: &str = "[permissions]\nenvironment = [\"SECRET\"]\n[limits]\nconcurrency = 1\n[secrets.token]\nenvironment = \"SECRET\"";

fn toolbay(folder: &Folder) -> ToolbayCommand {
    ToolbayCommand::new(folder).env("SECRET", VALUE)
}

fn serve(folder: &Folder) -> StdioServer {
    let mut server = StdioServer::run(toolbay(folder).args(["serve", "--log", "debug"]))
        .with_handshake("2025-11-25");
    server.wait_for_tool("tell");
    server
}

fn folder(grant: &str) -> Folder {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", grant);
    folder
}

#[test]
fn a_secret_is_redacted_everywhere() {
    let folder = folder(GRANT);
    let mut server = serve(&folder);
    let mut tell = |how: &str| {
        let id = server.start_call_with_progress("tell", json!({"text": how}));
        server.finish_call(id)
    };
    assert_eq!(result_text(&tell("content")), "it is [secret:token]");
    let link = &tell("link")["content"][0];
    assert_eq!(
        (&link["uri"], &link["name"]),
        (
            &json!("https://a.example/[secret:token]"),
            &json!("[secret:token]")
        )
    );
    assert_eq!(
        error_kind_and_text(&tell("image")).1,
        "The tool returned invalid output: content[0] contains a secret in `data`."
    );
    assert_eq!(
        error_kind_and_text(&tell("failure")).1,
        "it is [secret:token]"
    );
    assert_eq!(
        error_kind_and_text(&tell("refusal")).1,
        "it is [secret:token]"
    );
    let (kind, said) = error_kind_and_text(&tell("panic"));
    assert_eq!(kind, "trap");
    assert!(said.contains("it is [secret:token]"), "{said}");
    let (kind, said) = error_kind_and_text(&tell("hidden"));
    assert_eq!(
        (kind.as_str(), said.contains("it is [secret:token]")),
        ("trap", true),
        "{said}"
    );
    for how in ["output", "error", "log", "progress"] {
        assert_eq!(result_text(&tell(how)), "told", "{how}");
    }
    let (answers, _) = server.stop();
    server.log.wait_for_end();
    let all = format!("{answers:?} {}", server.log.text());
    assert!(
        !all.contains(VALUE) && !all.contains("h\\0u") && !all.contains("h\\u{0}"),
        "{all}"
    );
    let told = server.log.text().matches("it is [secret:token]").count();
    assert!(
        told >= 3,
        "standard output, standard error and the log: {}",
        server.log.text()
    );
    assert!(
        server
            .log
            .text()
            .contains("redacted secrets in the plugin's output"),
        "{}",
        server.log.text()
    );
}

#[test]
fn values_that_are_not_secrets_are_not_redacted() {
    let mut server = serve(&folder("[permissions]\nenvironment = [\"SECRET\"]"));
    assert_eq!(
        server.text("tell", json!({"text": "content"})),
        format!("it is {VALUE}")
    );
}

#[test]
fn a_secret_alone_gives_the_plugin_no_access_to_the_variable() {
    let mut server = serve(&folder("[secrets.token]\nenvironment = \"SECRET\""));
    assert_eq!(server.text("tell", json!({"text": "content"})), "it is ");
}

#[test]
fn a_secret_that_cannot_be_redacted_is_reported_to_the_operator() {
    let unset = folder("[secrets.token]\nenvironment = \"ABSENT\"");
    let listed = toolbay(&unset).args(["list"]).run();
    assert!(
        listed.stdout.contains(
            "hostile.toml: secrets.token: the environment variable ABSENT is not set, so there is nothing to redact"
        ),
        "{listed}"
    );
    let short = folder("[secrets.pin]\nenvironment = \"PIN\"");
    let listed = toolbay(&short).env("PIN", "1234").args(["list"]).run();
    let why = "hostile.toml: secrets.pin: the environment variable PIN has fewer than 8 bytes, too few to redact reliably";
    assert!(listed.stdout.contains(why), "{listed}");
    let both = folder(GRANT);
    let listed = toolbay(&both).args(["list"]).run();
    assert!(
        listed.stdout.contains("redacted secrets: token"),
        "{listed}"
    );
}
