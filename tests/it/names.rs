//! Generates the page of the book with every name: the program itself lists its names, and each
//! must be on the page that explains it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use toolbay::{Config, Flags};
use toolbay_audit::AuditEvent;
use toolbay_catalog::Grant;
use toolbay_model::{ErrorKind, is_reserved_meta};

use crate::metrics::current_table;
use crate::support::{Folder, ToolbayCommand};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const INTRODUCTION: &str = "\
# Names

All names that you write, read or count, in one place. A test obtains them from the program, and compares them with this
page.
";

/// A key that no table has. No key resembles it, so the error lists the valid ones.
const NO_KEY: &str = "q_q_q_q_q";

/// The pages that explain the keys of the configuration, by a prefix of the key. The longest prefix
/// wins.
const CONFIG_PAGES: &[(&str, &str)] = &[
    ("", "configuration"),
    ("require_approval", "approve"),
    ("approve_by", "approve"),
    ("approve", "approve"),
    ("server", "limits"),
    ("server.scratch", "configuration"),
    ("server.confine", "service"),
    ("server.confine_folders", "service"),
    ("server.arguments", "schemas"),
    ("server.schemas", "schemas"),
    ("server.instructions", "configuration"),
    ("server.title", "configuration"),
    ("server.description", "configuration"),
    ("server.website", "configuration"),
    ("server.icons", "configuration"),
    ("server.request_state_key_variable", "approve"),
    ("limits", "limits"),
    ("ceilings", "limits"),
    ("client_rate_limit", "limits"),
    ("rate_limit", "limits"),
    ("circuit_breaker", "limits"),
    ("describe", "limits"),
    ("compile", "limits"),
    ("engine", "async"),
    ("http", "http"),
    ("http.tokens[].arguments", "schemas"),
    ("http.tokens[].schemas", "schemas"),
    ("audit", "audit"),
    ("state", "grants"),
    ("tasks", "tasks"),
    ("results", "large-results"),
    ("metrics", "metrics"),
    ("console", "console"),
    ("lock", "lock"),
    ("record", "replay"),
    ("otel", "opentelemetry"),
];

/// Like [`CONFIG_PAGES`], for the keys of a grant.
const GRANT_PAGES: &[(&str, &str)] = &[
    ("", "grants"),
    ("separator", "schemas"),
    ("require_approval", "approve"),
    ("approve_by", "approve"),
    ("arguments", "schemas"),
    ("limits", "limits"),
    ("rate_limit", "limits"),
    ("tools.NAME.limits", "limits"),
    ("tools.NAME.require_approval", "approve"),
    ("tools.NAME.approve_by", "approve"),
    ("tools.NAME.annotations", "plain-functions"),
    ("tools.NAME.task_support", "tasks"),
    ("tools.NAME.input_schema", "plain-functions"),
];

/// The reserved names of the program, with their place and meaning.
const RESERVED: &[(&str, &str, &str)] = &[
    (
        "dev.toolbay/approval",
        "`inputRequests`",
        "The question whether a [call is allowed](approve.md)",
    ),
    (
        "dev.toolbay/client-capabilities",
        "definition",
        "What a [client must support](errors.md#tools-that-need-a-client-capability)",
    ),
    (
        "dev.toolbay/converted",
        "result",
        "The arguments that were [converted](schemas.md#arguments-as-models-write-them)",
    ),
    (
        "dev.toolbay/error",
        "result, or `data` of an error",
        "The [error kind](#error-kinds)",
    ),
    (
        "dev.toolbay/retry-after-ms",
        "result, or `data` of an error",
        "When to [retry](errors.md#failed-results)",
    ),
    (
        "dev.toolbay/task-support",
        "definition of a tool",
        "Whether a call can be a [task](tasks.md#tools-that-support-tasks)",
    ),
    (
        "dev.toolbay/usage",
        "result",
        "What the call [used](limits.md#usage-of-a-call)",
    ),
    (
        "io.modelcontextprotocol/clientCapabilities",
        "request",
        "MCP: what the client supports, in 2026-07-28",
    ),
    (
        "io.modelcontextprotocol/logLevel",
        "request",
        "MCP: the least important log lines that the client wants, in 2026-07-28",
    ),
    (
        "io.modelcontextprotocol/protocolVersion",
        "request",
        "MCP: the revision, in 2026-07-28",
    ),
    (
        "io.modelcontextprotocol/related-task",
        "request, result or notification",
        "MCP: the [task](tasks.md) that a message belongs to",
    ),
    (
        "io.modelcontextprotocol/serverInfo",
        "result",
        "MCP: name and version of the server, in 2026-07-28",
    ),
    (
        "io.modelcontextprotocol/skills",
        "`extensions`",
        "MCP: the extension for [skills](skills.md)",
    ),
    (
        "io.modelcontextprotocol/subscriptionId",
        "notification",
        "MCP: the subscription that a notification belongs to, in 2026-07-28",
    ),
    (
        "io.modelcontextprotocol/tasks",
        "`extensions`",
        "MCP: the extension for [tasks](tasks.md), in 2026-07-28",
    ),
    (
        "io.modelcontextprotocol/ui",
        "`extensions`",
        "MCP: the extension for [views](views.md)",
    ),
    (
        "progressToken",
        "request",
        "MCP: the client wants notifications of progress, which have this token",
    ),
];

/// A command of the program, without its subcommands.
struct Command {
    name: String,
    usage: String,
    about: String,
    options: Vec<(String, String)>,
}

/// Returns the entries of a section of a help text: the syntax and the description of each.
fn entries(help: &str, section: &str) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    let lines = help.lines().skip_while(|line| *line != section).skip(1);
    for line in lines.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        let text = line.trim_start();
        // The description of an option can be on the lines after it, indented further.
        if !text.is_empty() && line.len() - text.len() <= 6 {
            let (written, about) = text.split_once("  ").unwrap_or((text, ""));
            entries.push((written.to_owned(), about.trim().to_owned()));
        } else if let Some((_, about)) = entries.last_mut().filter(|_| !text.is_empty()) {
            let gap = if about.is_empty() { "" } else { " " };
            let _ = write!(about, "{gap}{}", text.trim_end());
        }
    }
    entries
}

/// Collects all commands below one.
fn collect_commands(folder: &Folder, name: &str, about: &str, found: &mut Vec<Command>) {
    let outcome = ToolbayCommand::new(folder)
        .args(name.split_whitespace().chain(["-h"]))
        .run();
    assert_eq!(outcome.code, 0, "{outcome}");
    let help = &outcome.stdout;
    let inner = entries(help, "Commands:");
    for (command, about) in inner.iter().filter(|(command, _)| command != "help") {
        collect_commands(folder, format!("{name} {command}").trim(), about, found);
    }
    if inner.is_empty() {
        let usage = help
            .lines()
            .find_map(|line| line.strip_prefix("Usage: "))
            .unwrap_or_else(|| panic!("{outcome}"));
        let mut options = entries(help, "Options:");
        options.retain(|(option, _)| !option.starts_with("-h, "));
        let name = name.to_owned();
        let about = about.to_owned();
        found.push(Command {
            name,
            usage: usage.replace(" [OPTIONS]", ""),
            about,
            options,
        });
    }
}

fn commands(page: &mut String) {
    let mut commands = Vec::new();
    collect_commands(&Folder::new(), "", "", &mut commands);
    page.push_str("\n## Commands\n\nSee [Configuration](configuration.md#commands).\n\n");
    page.push_str("| command | what it does |\n| --- | --- |\n");
    let mut options: Vec<(&(String, String), Vec<&str>)> = Vec::new();
    for command in &commands {
        let _ = writeln!(page, "| `{}` | {} |", command.usage, cell(&command.about));
        for option in &command.options {
            match options.iter_mut().find(|(known, _)| *known == option) {
                Some((_, of)) => of.push(command.name.as_str()),
                None => options.push((option, vec![command.name.as_str()])),
            }
        }
    }
    // Options with the same name are adjacent.
    options.sort_by(|(one, _), (other, _)| long_name(&one.0).cmp(long_name(&other.0)));
    page.push_str("\n## Options\n\nAll commands have `--help`.\n\n");
    page.push_str("| option | of | what it does |\n| --- | --- | --- |\n");
    for ((written, about), of) in options {
        let of: Vec<String> = of.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            page,
            "| `{written}` | {} | {} |",
            of.join(", "),
            cell(about)
        );
    }
}

/// Returns an option without its short form.
fn long_name(written: &str) -> &str {
    written.find("--").map_or(written, |at| &written[at..])
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn flags() -> Flags {
    // The folder must exist.
    Flags {
        plugins: Some(env!("CARGO_MANIFEST_DIR").into()),
        ..Flags::default()
    }
}

/// Returns the error of a configuration.
fn config_mistake(text: &str, variables: &[(String, String)]) -> String {
    Config::from_text(text, variables, &flags())
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

fn grant_mistake(text: &str) -> String {
    Grant::parse("plugin.toml", text, Path::new("plugins"))
        .err()
        .unwrap_or_default()
}

/// Collects all keys of a table and of the tables in it. Returns whether it is a table.
fn collect_keys(
    name: &str,
    head: &str,
    mistake: &dyn Fn(&str) -> String,
    found: &mut Vec<String>,
) -> bool {
    let mistake_here = mistake(&format!("{head}{NO_KEY} = 1\n"));
    let Some((_, keys)) =
        mistake_here.split_once(&format!("unknown key `{NO_KEY}`; valid keys are "))
    else {
        return false;
    };
    for key in keys.lines().next().unwrap_or_default().split(", ") {
        let key = if name.is_empty() {
            key.to_owned()
        } else {
            format!("{name}.{key}")
        };
        let path = key.replace("[]", "");
        if collect_keys(&key, &format!("[{path}]\n"), mistake, found)
            || collect_keys(
                &format!("{key}.NAME"),
                &format!("[{path}.NAME]\n"),
                mistake,
                found,
            )
        {
            continue;
        }
        found.push(key.clone());
        collect_keys(
            &format!("{key}[]"),
            &format!("[[{path}]]\n"),
            mistake,
            found,
        );
    }
    true
}

/// Returns the environment variable of a key, if there is one.
fn variable(key: &str) -> Option<String> {
    if key.contains("[]") || key.contains("NAME") {
        return None;
    }
    let name = format!("TOOLBAY_{}", key.replace('.', "_").to_uppercase());
    let mistake = config_mistake("", &[(name.clone(), "q".to_owned())]);
    // The value of a variable is text, and never a list or a table.
    let denials = [
        "unknown key `",
        "is not a variable of Toolbay",
        "expected a list, not",
        "expected a table, not",
    ];
    let exists = denials.iter().all(|denial| !mistake.contains(denial));
    exists.then_some(name)
}

/// Returns whether a key is `begin` or is in the table of that name.
fn is_within(key: &str, begin: &str) -> bool {
    let rest = key.strip_prefix(begin);
    rest.is_some_and(|rest| begin.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns a link to the page that explains a key.
fn page_link(key: &str, pages: &[(&str, &str)]) -> String {
    let fitting = pages.iter().filter(|entry| is_within(key, entry.0));
    let page = fitting.max_by_key(|entry| entry.0.len()).unwrap().1;
    let text = fs::read_to_string(page_path(page)).unwrap();
    let word = key.rsplit('.').next().unwrap_or(key);
    let is_named = text.match_indices(word).any(|(at, _)| {
        let before = &text[..at];
        let after = &text[at + word.len()..];
        !before.ends_with(|char: char| char.is_alphanumeric() || char == '_')
            && ["`", " = ", "]"].iter().any(|end| after.starts_with(end))
    });
    assert!(
        is_named,
        "docs/src/{page}.md has no {key}: explain it there, or correct the table in tests/it/names.rs"
    );
    let title = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("# "))
        .unwrap();
    format!("[{title}]({page}.md)")
}

/// Returns the path of a page.
fn page_path(page: &str) -> PathBuf {
    Path::new(WORKSPACE)
        .join("docs/src")
        .join(page)
        .with_extension("md")
}

fn keys(page: &mut String) {
    let mut keys = Vec::new();
    assert!(collect_keys(
        "",
        "",
        &|text: &str| config_mistake(text, &[]),
        &mut keys
    ));
    assert!(keys.len() > 150, "{keys:?}");
    page.push_str(
        "\n## Keys of the configuration\n\n\
         They are in `toolbay.toml`, see [Configuration](configuration.md). `http.tokens[].name` is the key `name` of\n\
         each `[[http.tokens]]`. `TOOLBAY_CONFIG` names the file, and is not a key.\n\n\
         | key | environment variable | explained in |\n| --- | --- | --- |\n",
    );
    for key in keys {
        let variable = variable(&key).map_or_else(|| "–".to_owned(), |name| format!("`{name}`"));
        let _ = writeln!(
            page,
            "| `{key}` | {variable} | {} |",
            page_link(&key, CONFIG_PAGES)
        );
    }
    let mut keys = Vec::new();
    assert!(collect_keys("", "", &grant_mistake, &mut keys));
    assert!(keys.len() > 70, "{keys:?}");
    page.push_str(
        "\n## Keys of a grant\n\nThey are in `<plugin>.toml`, see [Grants](grants.md). You choose each `NAME`.\n\n\
         | key | explained in |\n| --- | --- |\n",
    );
    for key in keys {
        let _ = writeln!(page, "| `{key}` | {} |", page_link(&key, GRANT_PAGES));
    }
}

/// Returns the second cell of a row of a page: the first row that begins with this name, after a
/// line that begins with `head`.
fn row_description(page: &str, head: &str, name: &str) -> String {
    let text = fs::read_to_string(page_path(page)).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with(head))
        .filter_map(|line| line.strip_prefix("| "));
    let mut rows = rows.filter_map(|row| row.split_once(" | "));
    let row = rows.find(|(first, _)| first.contains(&format!("`{name}`")));
    let (_, rest) = row.unwrap_or_else(|| panic!("docs/src/{page}.md has no row for {name}"));
    let meaning = rest.split(" | ").next().unwrap_or(rest);
    meaning
        .trim_end_matches(" |")
        .replace("](#", &format!("]({page}.md#"))
}

/// Returns the names in the source of the host that only the protocol or Toolbay defines.
fn reserved_names() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![Path::new(WORKSPACE).join("host")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // The test kit acts as a client.
                folders.extend(Some(path).filter(|path| !path.ends_with("testkit")));
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            for line in fs::read_to_string(&path).unwrap().lines() {
                let value = line
                    .split_once(": &str = \"")
                    .or_else(|| line.split_once("rename = \""));
                let name = value
                    .and_then(|(_, rest)| rest.split_once('"'))
                    .map_or("", |(name, _)| name);
                // This keyword is internal to the validator of schemas.
                if is_reserved_meta(name) && name != "dev.toolbay/step" {
                    found.insert(name.to_owned());
                }
            }
        }
    }
    found
}

fn reserved(page: &mut String) {
    let listed: BTreeSet<String> = RESERVED
        .iter()
        .map(|(name, ..)| (*name).to_owned())
        .collect();
    assert_eq!(
        reserved_names(),
        listed,
        "the sources have other names than the table in tests/it/names.rs"
    );
    page.push_str(
        "\n## Reserved names\n\n\
         They are members of `_meta`, unless the table says otherwise. Toolbay removes all names with these prefixes\n\
         from the output of plugins, see [Reserved members of `_meta`](errors.md#reserved-members-of-_meta).\n\n\
         | name | in | meaning |\n| --- | --- | --- |\n",
    );
    for (name, place, meaning) in RESERVED {
        let _ = writeln!(page, "| `{name}` | {place} | {meaning} |");
    }
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    commands(&mut page);
    keys(&mut page);
    let _ = write!(
        page,
        "\n## Metrics\n\nSee [Metrics](metrics.md).\n\n{}",
        current_table()
    );
    page.push_str("\n## Error kinds\n\nSee [Errors](errors.md#failed-results).\n\n");
    page.push_str("| error kind | cause |\n| --- | --- |\n");
    for kind in ErrorKind::ALL {
        let _ = writeln!(
            page,
            "| `{kind}` | {} |",
            row_description("errors", "| error kind |", kind.as_str())
        );
    }
    page.push_str("\n## Audit events\n\nSee [The audit log](audit.md#format).\n\n");
    page.push_str("| event | when |\n| --- | --- |\n");
    for event in AuditEvent::NAMES {
        let _ = writeln!(
            page,
            "| `{event}` | {} |",
            row_description("audit", "| `event` |", event)
        );
    }
    reserved(&mut page);
    page
}

#[test]
fn the_book_has_every_name() {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(page_path("names"), page).unwrap();
        return;
    }
    let found = fs::read_to_string(page_path("names")).unwrap_or_default();
    assert!(
        found == page,
        "docs/src/names.md is stale: UPDATE_DOCS=1 cargo test -p toolbay --test it names::\n{page}"
    );
}
