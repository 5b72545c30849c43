//! Property test: for every configuration, an edit can be undone by another one, and nothing else
//! changes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value};
use toolbay_install::{
    ConfigurationScope, ConfigurationText, EditOutcome, EntryFormat, PathEnvironment, ServerEntry,
    client_with_id,
};

/// Choices, one byte each. After the end, every choice is the simplest one.
struct Tape<'a> {
    bytes: std::slice::Iter<'a, u8>,
    comments: usize,
}

impl Tape<'_> {
    fn pick(&mut self, of: u8) -> u8 {
        self.bytes.next().copied().unwrap_or_default() % of
    }

    fn comment(&mut self) -> usize {
        self.comments += 1;
        self.comments
    }

    /// Writes a gap between two tokens of JSON.
    fn gap(&mut self, out: &mut String) {
        match self.pick(9) {
            0 | 1 => {}
            2 => out.push(' '),
            3 => out.push_str("\n  "),
            4 => out.push_str("\n\n\t"),
            5 => {
                let _ = write!(out, "/* c{}; */", self.comment());
            }
            6 => {
                let _ = write!(out, "\n    /* c{}; \"mcpServers\": {{ */\n", self.comment());
            }
            7 => {
                let _ = writeln!(out, " // c{}; \"toolbay\"", self.comment());
            }
            _ => {
                let _ = write!(out, "\n  // c{}; }}\n  ", self.comment());
            }
        }
    }

    fn value(&mut self, out: &mut String, depth: u8) {
        match self.pick(if depth > 3 { 6 } else { 8 }) {
            0 => out.push_str("{}"),
            1 => out.push_str("-1.50e2"),
            2 => out.push_str(r#""te\"xt // \u00e9 /* \\""#),
            3 => out.push_str("null"),
            4 => out.push_str("true"),
            5 => out.push_str("[]"),
            6 => {
                let values = self.pick(4);
                self.list(out, ('[', ']'), values, |tape, out, _| {
                    tape.value(out, depth + 1);
                });
            }
            _ => {
                let members = self.pick(4);
                self.list(out, ('{', '}'), members, |tape, out, n| {
                    tape.name(out, &format!("k{n}"));
                    tape.value(out, depth + 1);
                });
            }
        }
    }

    fn name(&mut self, out: &mut String, name: &str) {
        let _ = write!(out, "\"{name}\"");
        self.gap(out);
        out.push(':');
        self.gap(out);
    }

    fn list(
        &mut self,
        out: &mut String,
        braces: (char, char),
        items: u8,
        mut item: impl FnMut(&mut Self, &mut String, u8),
    ) {
        out.push(braces.0);
        for n in 0..items {
            self.gap(out);
            item(self, out, n);
            self.gap(out);
            if n + 1 < items || self.pick(3) == 1 {
                out.push(',');
            }
        }
        self.gap(out);
        out.push(braces.1);
    }

    /// Returns a configuration. The object of its servers can be anywhere in it, or missing.
    fn json(&mut self) -> String {
        let mut out = String::new();
        if self.pick(20) == 19 {
            self.gap(&mut out);
            return out;
        }
        self.gap(&mut out);
        let members = self.pick(5);
        let place = self.pick(6);
        self.list(&mut out, ('{', '}'), members, |tape, out, n| {
            if n != place {
                tape.name(out, &format!("m{n}"));
                return tape.value(out, 0);
            }
            tape.name(out, "mcpServers");
            let servers = tape.pick(4);
            tape.list(out, ('{', '}'), servers, |tape, out, n| {
                tape.name(out, &format!("s{n}"));
                let members = tape.pick(3);
                tape.list(out, ('{', '}'), members, |tape, out, n| {
                    tape.name(out, ["command", "args", "env"][usize::from(n)]);
                    tape.value(out, 1);
                });
            });
        });
        self.gap(&mut out);
        out
    }

    /// Returns a configuration of Codex.
    fn toml(&mut self) -> String {
        let mut out = String::new();
        let lines = self.pick(12);
        // Keys of the root come first. Then each table has one header.
        let mut root = true;
        let inline = self.pick(8) == 7;
        for n in 0..lines {
            match self.pick(9) {
                0 | 1 => {
                    let _ = writeln!(
                        out,
                        "k{n} = {}",
                        ["1", "\"te # xt\"", "[1, # c0;\n  2]"][usize::from(self.pick(3))]
                    );
                }
                2 => out.push('\n'),
                3 => {
                    let _ = writeln!(out, "# c{}; [mcp_servers.toolbay]", self.comment());
                }
                4 => {
                    let _ = writeln!(out, "k{n} = true # c{};", self.comment());
                }
                5 if !inline => {
                    root = false;
                    let _ = writeln!(out, "[mcp_servers.s{n}] # c{};", self.comment());
                }
                6 if !inline => {
                    root = false;
                    let _ = writeln!(out, "[mcp_servers.s{n}.env]\nA = 1979-05-27");
                }
                7 if root && inline && !out.contains("mcp_servers =") => {
                    let _ = writeln!(
                        out,
                        "mcp_servers = {{ s = {{ command = 'x' }} }} # c{};",
                        self.comment()
                    );
                }
                _ => {
                    root = false;
                    let _ = writeln!(out, "[t{n}]");
                }
            }
        }
        if self.pick(4) == 3 {
            out.truncate(out.trim_end().len());
        }
        if self.pick(3) == 2 {
            out.replace('\n', "\r\n")
        } else {
            out
        }
    }
}

/// Returns the comments of a text, in order.
fn comments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(" c") {
        let rest = &text[at + 1..];
        found.extend(
            rest.find(';')
                .map(|end| &rest[..end])
                .filter(|word| word[1..].bytes().all(|b| b.is_ascii_digit())),
        );
    }
    found
}

fn changed(edit: EditOutcome) -> String {
    match edit {
        EditOutcome::Changed(text) => text,
        EditOutcome::Unchanged => panic!("nothing changed"),
    }
}

fn entry(client: &str) -> (EntryFormat, Map<String, Value>) {
    let client = client_with_id(client).unwrap();
    let spot = client
        .configuration_paths(ConfigurationScope::User, &PathEnvironment::default())
        .swap_remove(0);
    let server = ServerEntry::command(
        Path::new("/opt/tool \"bay\"/toolbay"),
        &["serve"],
        &[("--plugins", Path::new("/p"))],
    );
    (
        spot.entry_format,
        server.unwrap().to_entry(client, &spot, None).unwrap(),
    )
}

/// Checks the property for one text.
fn holds(client: &str, text: &str) {
    let (dialect, entry) = entry(client);
    let before = ConfigurationText::parse(dialect, text)
        .unwrap_or_else(|mistake| panic!("{mistake}\n{text}"));
    assert_eq!(before.entry("toolbay"), None);
    let with = changed(
        before
            .with_server("toolbay", &entry)
            .unwrap_or_else(|mistake| panic!("{mistake}\n{text}")),
    );
    let after = ConfigurationText::parse(dialect, &with).unwrap();
    assert_eq!(after.entry("toolbay"), Some(&entry), "{with}");
    assert_eq!(
        after.with_server("toolbay", &entry).unwrap(),
        EditOutcome::Unchanged,
        "{with}"
    );
    assert_eq!(
        comments(&with),
        comments(text),
        "before:\n{text}\nafter:\n{with}"
    );
    let without = changed(after.without_server("toolbay").unwrap());
    let back = ConfigurationText::parse(dialect, &without).unwrap();
    assert_eq!(back.entry("toolbay"), None);
    assert_eq!(
        comments(&without),
        comments(text),
        "before:\n{text}\nwith:\n{with}\nafter:\n{without}"
    );
    // Each edit verifies that nothing else changed; here this is verified over both.
    assert!(!changed(back.with_server("toolbay", &entry).unwrap()).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_is_as_it_was_but_for_the_entry(bytes in prop::collection::vec(any::<u8>(), 0..200), windows in any::<bool>()) {
        let mut text = Tape { bytes: bytes.iter(), comments: 0 }.json();
        if windows {
            text = text.replace('\n', "\r\n");
        }
        holds("gemini-cli", &text);
    }

    #[test]
    fn toml_is_as_it_was_but_for_the_entry(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        holds("codex", &Tape { bytes: bytes.iter(), comments: 0 }.toml());
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,60}", json in any::<bool>()) {
        let (dialect, entry) = entry(if json { "cursor" } else { "codex" });
        if let Ok(document) = ConfigurationText::parse(dialect, &text) {
            drop(document.with_server("toolbay", &entry));
            drop(document.without_server("toolbay"));
        }
    }
}
