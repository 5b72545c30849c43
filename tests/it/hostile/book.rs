//! Generates the page of the book with the table of the corpus.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::run::Run;
use super::{AttackStage, Case, Expected, MAX_GROWTH, THEMES};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/hostile.md");

const INTRODUCTION: &str = "\
# Hostile plugins

This page lists hostile plugins and the outcome of each. Each of the COUNT rows is a test. The test copies the plugin into
the folder of a running server that has another plugin. Afterwards the other plugin must still respond, and the server may
use at most 5 MiB of memory more than before. If a row names a setting, the test uses it to reach the outcome sooner; all
other limits have their [defaults](limits.md). `…` stands for text that varies. During a call, the memory use of the server
may grow at most by the call's memory limit and 32 MiB: each test has the kernel measure the peak. It also pings the server
during the call. The last three columns are that peak, the maximum time of 99 of 100 pings, and the time from copying the
file to the outcome, including compiling and loading, in one run of all tests, two at a time, on two cores.

Each plugin that can be loaded is tested twice: once as it is, and once in the [engine of components with async
functions](async.md#cost), where its outcome must be the same.

A row that lists steps has the result of each step as its outcome. None of these steps reads or writes a byte outside the
mounted folder, and each attempt is made with a [quota](grants.md#quotas) as well.

";

#[test]
fn the_book_has_every_case_and_its_outcome() {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, page).unwrap();
        return;
    }
    let found = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        without_measurements(&found) == without_measurements(&page),
        "docs/src/hostile.md is stale: cargo test -p toolbay --test it hostile, then the same with UPDATE_DOCS=1 and book"
    );
}

/// Returns the page without its last three columns, which differ between runs.
fn without_measurements(page: &str) -> String {
    let lines = page.lines().map(|line| {
        match line
            .strip_suffix(" |")
            .and_then(|row| row.rsplitn(4, " | ").last())
        {
            Some(row) => row,
            None => line,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the path where a test records the measurements of its case, from which the page is
/// generated later.
fn measurements_path(case: &Case) -> PathBuf {
    let name: String = case
        .what
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("hostile")
        .join(name)
}

/// Records how long a case took, by how many KiB the server grew meanwhile, and how long pings
/// took.
pub(super) fn record_measurements(case: &Case, time: Duration, run: &Run) {
    let notes = measurements_path(case);
    fs::create_dir_all(notes.parent().unwrap()).unwrap();
    fs::write(
        notes,
        format!(
            "{} {} {}",
            time.as_millis(),
            run.growth,
            run.ping.as_micros()
        ),
    )
    .unwrap();
}

/// Returns the measurements of a case's last run in round numbers: peak memory, pings, and time.
fn measurements(case: &Case) -> String {
    let notes = fs::read_to_string(measurements_path(case)).unwrap_or_default();
    let notes: Vec<u64> = notes
        .split(' ')
        .filter_map(|number| number.parse().ok())
        .collect();
    let &[milliseconds, growth, ping] = notes.as_slice() else {
        return "not run | not run | not run".to_owned();
    };
    let time = match milliseconds {
        ms @ 0..10 => format!("{ms} ms"),
        ms @ 10..995 => format!("{} ms", (ms + 5) / 10 * 10),
        ms => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
    };
    let ping = match ping {
        0 => "–".to_owned(),
        ping => format!("{} ms", ping.div_ceil(1000)),
    };
    format!("{} MiB | {ping} | {time}", growth.div_ceil(1 << 10))
}

#[test]
fn no_two_cases_are_the_same() {
    let mut all: Vec<&str> = THEMES
        .iter()
        .flat_map(|(_, cases)| cases.iter().map(|case| case.what))
        .collect();
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
        let _ = writeln!(
            page,
            "{gap}## {title}\n\n| the plugin | stage | outcome | peak | ping | time |\n| --- | --- | --- | --- | --- | --- |"
        );
        for case in *cases {
            let what = format!("{}{}", case.what, steps(case));
            let settings = settings(case);
            let stage = stage(case);
            let outcome = outcome(case);
            let took = measurements(case);
            let _ = writeln!(page, "| {what}{settings} | {stage} | {outcome} | {took} |");
        }
    }
    page
}

/// Returns the steps of a case, if its arguments list steps.
fn steps(case: &Case) -> String {
    if case.tool != "file_steps" {
        return String::new();
    }
    let arguments: serde_json::Value = serde_json::from_str(case.arguments).unwrap();
    let step = |words: &serde_json::Value| {
        let words: Vec<&str> = words
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        format!("`{}`", words.join(" "))
    };
    let steps: Vec<String> = arguments["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(step)
        .collect();
    format!(": {}", steps.join(", "))
}

/// Returns the limits that a case sets, as keys.
fn settings(case: &Case) -> String {
    let mut all = Vec::new();
    for text in [case.grant, case.config] {
        let mut table = "";
        for line in text.lines() {
            match line
                .strip_prefix('[')
                .and_then(|line| line.strip_suffix(']'))
            {
                Some(name) => table = name,
                None if table.starts_with('[') => {}
                None => all.push(format!("`{table}.{line}`")),
            }
        }
    }
    if case.growth != MAX_GROWTH {
        all.push(format!("{} MiB more memory allowed", case.growth >> 10));
    }
    if all.is_empty() {
        String::new()
    } else {
        format!(" ({})", all.join(", "))
    }
}

fn stage(case: &Case) -> &'static str {
    match case.stage {
        AttackStage::Folder => "folder",
        AttackStage::Compile => "compiling",
        AttackStage::Load => "loading",
        AttackStage::ListTools => "listing tools",
        AttackStage::Call => "call",
        AttackStage::HostCall => "host call",
    }
}

fn outcome(case: &Case) -> String {
    let cell = |text: &str| {
        text.replace('\n', "; ")
            .replace('|', "\\|")
            .replace('<', "\\<")
    };
    match case.expected {
        Expected::Noted(why) => format!("not a plugin: {}", cell(why)),
        Expected::Refused(why) => format!("refused: {}", cell(why)),
        Expected::Fails("none", text) => format!("reports a failure: {}", cell(text)),
        Expected::Fails(kind, text) => format!("`{kind}`: {}", cell(text)),
        Expected::Answers(text) => format!("harmless: {}", cell(text)),
    }
}
