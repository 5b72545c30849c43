//! The loop of an author: what `toolbay call` and `toolbay dev` show of a call, the answers to a
//! plugin's questions, and the setup and the check of a project.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{
    CommandOutput, DEADLINE, Folder, TinyComponent, ToolbayCommand, asker, hostile,
};

fn toolbay(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

/// Runs the command on a terminal, whose output is standard output.
fn toolbay_on_terminal(folder: &Folder, args: &[&str], typed: &str) -> CommandOutput {
    ToolbayCommand::new(folder)
        .args(args)
        .with_shell_wrapper("exec script --quiet --return --command \"$*\" /dev/null")
        .run_with(typed)
}

/// Creates a project whose build is a copy of this component.
fn project(folder: &Folder, component: &[u8], more: &str) -> String {
    let at = folder.sibling_path("project");
    fs::create_dir(&at).unwrap();
    fs::write(at.join("source"), component).unwrap();
    let text = format!(
        "name = \"mine\"\nlanguage = \"none\"\nbuild = [\"cp source made.wasm\"]\noutput = \"made.wasm\"\n\
         watch = [\"source\"]\n{more}"
    );
    fs::write(at.join("plugin.toml"), text).unwrap();
    at.to_str().unwrap().to_owned()
}

fn hello() -> Vec<u8> {
    TinyComponent::new(&["hello"]).with_text("first").build()
}

#[test]
fn call_and_dev_show_what_a_plugin_reports() {
    let folder = Folder::with("mine.wasm", hostile());
    let printed = toolbay(&folder, &["call", "forge_stdout"]);
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (0, "done\n"),
        "{printed}"
    );
    assert_eq!(
        printed.stderr,
        "stdout | {\"jsonrpc\":\"2.0\",\"method\":\"forged\"}\n\
         stdout | {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":true}}\n\
         stderr | {\"jsonrpc\":\"2.0\",\"method\":\"forged\"}\n<used>\n"
    );
    let denied = toolbay(&folder, &["call", "connect"]);
    let lines = "\n    To allow it, add to [permissions] in mine.toml:\n        tcp = [";
    assert!(
        denied.stderr.starts_with("denied: ") && denied.stderr.contains(lines),
        "{denied}"
    );
    let example = "[example]\ntool = \"log_flood\"\narguments = { n = 2 }\n";
    let at = project(&folder, &hostile(), example);
    let logged = toolbay(&folder, &["dev", &at, "--once"]);
    assert_eq!(logged.code, 0, "{logged}");
    assert!(
        logged.stderr.contains("info | line 0 xxx") && logged.stderr.contains("info | line 1 xxx"),
        "{logged}"
    );
    assert!(!logged.stdout.contains("line 0"), "{logged}");
    // The log does not repeat the messages, unless that is what the filter asks for.
    let count = |log: &str| {
        let logged = toolbay(&folder, &["call", "log_flood", r#"{"n": 1}"#, "--log", log]);
        logged.stderr.matches("line 0 xxx").count()
    };
    assert_eq!(["debug", "off,toolbay::guest=info"].map(count), [1, 2]);
}

#[test]
fn problems_of_a_plugin_are_shown_once() {
    let folder = Folder::with("a.wasm", hello());
    let two = TinyComponent::new(&["hello", "other"]).build();
    folder.put("b.wasm", &two);
    for args in [&["call", "other"][..], &["call", "other", "--log", "info"]] {
        let called = toolbay(&folder, args);
        assert_eq!(
            called.stderr.matches("is not offered").count(),
            1,
            "{called}"
        );
    }
    let conflicting = TinyComponent::new(&["hello", "third"]).build();
    let at = project(&folder, &conflicting, "[example]\ntool = \"third\"\n");
    for args in [
        &["dev", &at, "--once"][..],
        &["dev", &at, "--once", "--log", "info"],
    ] {
        let built = toolbay(&folder, args);
        let all = format!("{}{}", built.stdout, built.stderr);
        let lines = all.lines().filter(|line| {
            line.contains("is not offered") && (line.contains("\"mine\"") || line.starts_with('!'))
        });
        assert_eq!(lines.count(), 1, "{built}");
    }
}

/// The arguments of a call that asks for a name, and then whether that is right.
fn two_questions() -> String {
    let form = |key: &str, field: &str, kind: Value| {
        let schema = json!({"type": "object", "properties": {field: kind}, "required": [field]});
        json!({"ask": [{"key": key, "kind": "form", "params": {"message": format!("The {field}?"), "requestedSchema": schema}}]})
    };
    json!({"steps": [
        form("who", "name", json!({"type": "string", "minLength": 2})),
        form("sure", "sure", json!({"type": "boolean"})),
    ]})
    .to_string()
}

#[test]
fn questions_are_answered_by_options() {
    let folder = Folder::with("asker.wasm", asker());
    let arguments = two_questions();
    let call = |options: &[&str]| {
        let args = [&["call", "ask", &arguments][..], options].concat();
        toolbay(&folder, &args)
    };
    let unanswered = call(&[]);
    assert_eq!(unanswered.code, 1, "{unanswered}");
    assert_eq!(
        unanswered.stderr,
        "toolbay: the tool asks its user to fill in a form (question \"who\"): The name?\n    Call it from a terminal to \
         answer, or add --answer 'who={\"name\":\"text\"}'\n"
    );
    let half = call(&["--answer", r#"who={"name": "Ada"}"#]);
    assert!(
        half.code == 1 && half.stderr.contains("--answer 'sure={\"sure\":true}'"),
        "{half}"
    );
    let answered = call(&[
        "--answer",
        r#"who={"name": "Ada"}"#,
        "--answer",
        "sure=decline",
        "--answer",
        "surely=cancel",
    ]);
    assert_eq!(answered.code, 0, "{answered}");
    assert!(
        answered.stdout.contains("Ada") && answered.stdout.contains("decline"),
        "{answered}"
    );
    assert!(
        answered
            .stderr
            .contains("toolbay: --answer surely: no question had this key\n"),
        "{answered}"
    );
    let invalid = call(&["--answer", r#"who={"name": "A"}"#]);
    assert!(
        invalid.code == 1
            && invalid.stderr.contains("toolbay: --answer who: The name?")
            && invalid
                .stderr
                .contains("The last answer is invalid: name: "),
        "{invalid}"
    );
    let twice = call(&["--answer", "who=decline", "--answer", "who=cancel"]);
    assert!(
        twice.code == 1 && twice.stderr.contains("two answers with this key"),
        "{twice}"
    );
    let wrong = call(&["--answer", "who=yes"]);
    assert!(
        wrong.code != 0 && wrong.stderr.contains("neither JSON nor accept"),
        "{wrong}"
    );
}

#[test]
fn a_question_that_nobody_can_answer_is_unsupported_if_it_is_optional() {
    let folder = Folder::with("asker.wasm", asker());
    let optional = json!({"steps": [
        {"ask": [{"key": "who", "kind": "sampling", "optional": true,
            "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}}]},
    ]});
    let called = toolbay(&folder, &["call", "ask", &optional.to_string()]);
    assert!(
        called.code == 0 && called.stdout.contains("unsupported"),
        "{called}"
    );
    let answered = toolbay(
        &folder,
        &[
            "call",
            "ask",
            &optional.to_string(),
            "--answer",
            "who=\"words\"",
        ],
    );
    assert!(
        answered.code == 0 && answered.stdout.contains("words"),
        "{answered}"
    );
}

#[test]
fn questions_are_asked_on_a_terminal() {
    let folder = Folder::with("asker.wasm", asker());
    let arguments = two_questions();
    let example = format!(
        "[example]\ntool = \"ask\"\narguments = {}\n",
        toml_value(&serde_json::from_str(&arguments).unwrap())
    );
    let at = project(&folder, &asker(), &example);
    folder.put("mine.toml", "prefix = \"my\"");
    for args in [
        &["call", "ask", &format!("'{arguments}'")][..],
        &["dev", &at, "--once"],
    ] {
        // The first name is too short.
        let answered = toolbay_on_terminal(&folder, args, "A\nAda\ny\n");
        assert_eq!(answered.code, 0, "{answered}");
        for text in [
            "The tool asks (question \"who\"):",
            "    | The name?",
            "name (a text)",
            "Not accepted: ",
            "sure (y or n)",
        ] {
            assert!(answered.stdout.contains(text), "{text}: {answered}");
        }
        let result = answered.stdout.lines().find(|line| line.contains("said"));
        assert!(
            result.is_some_and(|line| line.contains("Ada") && line.contains("true")),
            "{answered}"
        );
        let cancelled = toolbay_on_terminal(&folder, args, ":cancel\n:decline\n");
        let result = cancelled.stdout.lines().find(|line| line.contains("said"));
        assert!(
            result.is_some_and(|line| line.contains("cancel") && line.contains("decline")),
            "{cancelled}"
        );
    }
}

/// Writes JSON as an inline value of TOML.
fn toml_value(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, member)| format!("{name:?} = {}", toml_value(member)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
fn the_setup_runs_again_when_its_inputs_change() {
    let folder = Folder::new();
    let at = project(
        &folder,
        &hello(),
        "setup = [\"test ! -e bad\", \"echo set up\"]\n",
    );
    let runs_setup = || {
        let done = toolbay(&folder, &["dev", &at, "--once"]);
        (done.code, done.stdout.contains("$ echo set up\n"))
    };
    assert_eq!(runs_setup(), (0, true));
    assert_eq!(runs_setup(), (0, false));
    fs::write(format!("{at}/requirements.txt"), "pyyaml\n").unwrap();
    // A setup that failed is not a success, and runs until it is one.
    fs::write(format!("{at}/bad"), "").unwrap();
    assert_eq!(runs_setup(), (1, false));
    assert_eq!(runs_setup(), (1, false));
    fs::remove_file(format!("{at}/bad")).unwrap();
    assert_eq!(runs_setup(), (0, true));
    assert_eq!(runs_setup(), (0, false));
    // The record is not part of the project.
    let ignored = fs::read_to_string(format!("{at}/.toolbay/.gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
}

#[test]
fn dev_watches_the_dependencies() {
    let folder = Folder::new();
    let at = project(
        &folder,
        &hello(),
        "setup = [\"cat requirements.txt package-lock.json; date >> package-lock.json\"]\n",
    );
    fs::write(format!("{at}/requirements.txt"), "first requirement\n").unwrap();
    let (mut command, _folder) = ToolbayCommand::new(&folder).args(["dev", &at]).into_parts();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if tx.send(line).is_err() {
                return;
            }
        }
    });
    // Returns the lines before the wanted one.
    let wait_for = |wanted: &str| {
        let lines = std::iter::from_fn(|| Some(rx.recv_timeout(DEADLINE).unwrap()));
        lines
            .take_while(|line| line != wanted)
            .collect::<Vec<String>>()
    };
    wait_for("first requirement");
    wait_for("Waiting for changes. Press Ctrl-C to stop.");
    fs::write(format!("{at}/requirements.txt"), "second requirement\n").unwrap();
    // The lock file that the setup wrote did not start another build.
    let between = wait_for("second requirement");
    assert_eq!(
        between
            .iter()
            .filter(|line| line.starts_with("built in"))
            .count(),
        0,
        "{between:?}"
    );
    wait_for("Waiting for changes. Press Ctrl-C to stop.");
    // A change of only the sources does not run the setup.
    fs::write(format!("{at}/source"), hello()).unwrap();
    let between = wait_for("Waiting for changes. Press Ctrl-C to stop.");
    assert!(
        between.iter().any(|line| line.starts_with("built in"))
            && !between.iter().any(|line| line == "second requirement"),
        "{between:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_check_that_fails_is_shown_and_the_plugin_is_served() {
    let folder = Folder::new();
    let more =
        "check = [\"echo a type is wrong; exit 3\", \"echo fine\"]\n[example]\ntool = \"hello\"\n";
    let at = project(&folder, &hello(), more);
    let done = toolbay(&folder, &["dev", &at, "--once"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stdout.ends_with("> hello {}\nfirst\n"), "{done}");
    assert!(
        done.stderr.contains(
            "a type is wrong\ntoolbay: `echo a type is wrong; exit 3` failed; the plugin stays in service if it was built\n"
        ),
        "{done}"
    );
    assert!(!done.stderr.contains("fine"), "{done}");
    assert!(folder.plugin_path("mine.wasm").exists());
}

#[test]
fn new_lists_the_languages_and_asks_on_a_terminal() {
    let folder = Folder::new();
    let at = folder.sibling_path("my-plugin");
    let at = at.to_str().unwrap();
    let listed = toolbay(&folder, &["new", at]);
    assert_eq!(listed.code, 1);
    insta::assert_snapshot!(listed.stderr, @r"
    toolbay: add --language with one of these:
        rust        Uses the toolbay-plugin crate
        javascript  Uses componentize-qjs from npm
        typescript  Uses componentize-qjs from npm
        python      Uses componentize-py from PyPI
        go          Uses the Go compiler
        c           Uses zig cc or clang
        cpp         Uses zig c++ or clang
        zig         Uses the Zig compiler
        kotlin      Uses the Kotlin compiler, from Maven Central
    ");
    let asked = toolbay_on_terminal(&folder, &["new", at], "go\n");
    assert!(
        asked.code == 0 && asked.stdout.contains("Created a go plugin"),
        "{asked}"
    );
    let other = folder.sibling_path("other");
    let wrong = toolbay_on_terminal(&folder, &["new", other.to_str().unwrap()], "cobol\n");
    assert!(
        wrong.code == 1
            && wrong
                .stdout
                .contains("\"cobol\" is not one of the languages"),
        "{wrong}"
    );
    assert!(!other.exists());
    let server = folder.sibling_path("my-server");
    let made = toolbay(&folder, &["new", "--server", server.to_str().unwrap()]);
    assert!(
        made.code == 0 && server.join("src/server.ts").exists() && server.join("build.js").exists(),
        "{made}"
    );
    let refused = toolbay(&folder, &["new", "x", "--server", "--language", "go"]);
    assert!(
        refused
            .stderr
            .contains("--server is not available for go; it is for typescript"),
        "{refused}"
    );
}
