//! The table of the corpus as a page of the book.

use std::fmt::Write as _;
use std::fs;

use super::{Case, Expected, GROWTH, Strikes, THEMES};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/hostile.md");

const INTRODUCTION: &str = "\
# Hostile plugins

What plugins do that mean no good, and what becomes of it. Each of the COUNT rows is a test: the plugin is dropped into
the folder of a running server that has another plugin. Afterwards the other plugin answers, and the server holds at
most 5 MiB of memory more than before. Where a row names a setting, the test has it set so, to see the end of it sooner;
everything else is as [Limits](limits.md) says. `…` stands for what differs from case to case.

";

#[test]
fn the_book_has_every_case_and_its_outcome() {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, page).unwrap();
        return;
    }
    let found = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(found == page, "docs/src/hostile.md is stale: UPDATE_DOCS=1 cargo test -p toolbay --test it book");
}

#[test]
fn no_two_cases_are_the_same() {
    let mut all: Vec<&str> = THEMES.iter().flat_map(|(_, cases)| cases.iter().map(|case| case.what)).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

fn page() -> String {
    let count: usize = THEMES.iter().map(|(_, cases)| cases.len()).sum();
    let mut page = INTRODUCTION.replace("COUNT", &count.to_string());
    for (at, (title, cases)) in THEMES.iter().enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        let _ = writeln!(page, "{gap}## {title}\n\n| the plugin | strikes | outcome |\n| --- | --- | --- |");
        for case in *cases {
            let _ = writeln!(page, "| {}{} | {} | {} |", case.what, settings(case), strikes(case), outcome(case));
        }
    }
    page
}

/// The limits that a case has set, as keys.
fn settings(case: &Case) -> String {
    let mut all = Vec::new();
    for text in [case.grant, case.config] {
        let mut table = "";
        for line in text.lines() {
            match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                Some(name) => table = name,
                None if table.starts_with('[') => {}
                None => all.push(format!("`{table}.{line}`")),
            }
        }
    }
    if case.growth != GROWTH {
        all.push(format!("{} MiB of memory more", case.growth >> 10));
    }
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}

fn strikes(case: &Case) -> &'static str {
    match case.strikes {
        Strikes::Folder => "in the folder",
        Strikes::Compile => "when compiled",
        Strikes::Load => "when loaded",
        Strikes::ListTools => "when listing its tools",
        Strikes::Call => "in a call",
        Strikes::HostCall => "in a host call",
    }
}

fn outcome(case: &Case) -> String {
    let cell = |text: &str| text.replace('\n', "; ").replace('|', "\\|").replace('<', "\\<");
    match case.expected {
        Expected::Noted(why) => format!("no plugin, and noted: {}", cell(why)),
        Expected::Refused(why) => format!("refused: {}", cell(why)),
        Expected::Fails("none", text) => format!("fails by itself: {}", cell(text)),
        Expected::Fails(kind, text) => format!("`{kind}`: {}", cell(text)),
        Expected::Answers(text) => format!("goes on, harmless: {}", cell(text)),
    }
}
