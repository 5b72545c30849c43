//! Follows the page "Getting started" of the book: runs its commands in order, and compares what
//! they print.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolbay_testkit::markdown::code_blocks;

use crate::requests::Site;
use crate::support::{Folder, ToolbayCommand, example, sample};

/// The site of the page, which the test replaces by a local one.
const SITE: &str = "https://doc.rust-lang.org";

/// A step of the page.
#[derive(Debug)]
enum Step {
    /// A command, and the lines that it prints at least. `…` stands for any text.
    Run(String, Vec<String>),
    /// The content of `plugins/fetch.toml`.
    Grant(String),
}

fn steps() -> Vec<Step> {
    let page = include_str!("../../docs/src/getting-started.md");
    let mut steps = Vec::new();
    for block in code_blocks(page) {
        match block.language() {
            "console" => {
                for line in block.text.lines() {
                    match (line.strip_prefix("$ "), steps.last_mut()) {
                        (Some(command), _) => {
                            steps.push(Step::Run(command.to_owned(), Vec::new()));
                        }
                        (None, Some(Step::Run(_, printed))) => printed.push(line.to_owned()),
                        (None, _) => panic!("output without a command: {line}"),
                    }
                }
            }
            "toml" => steps.push(Step::Grant(block.text.clone())),
            _ => {}
        }
    }
    steps
}

/// Returns whether `text` contains the parts of `pattern` between `…` in this order, on one line.
pub(crate) fn has_line(text: &str, pattern: &str) -> bool {
    text.lines().any(|line| {
        let mut rest = line;
        pattern.split('…').all(|part| {
            rest.find(part.trim()).is_some_and(|at| {
                rest = &rest[at + part.trim().len()..];
                true
            })
        })
    })
}

/// Copies the samples of the page into one folder, as a package has them.
fn samples(folder: &Folder) -> PathBuf {
    let samples = folder.sibling_path("samples");
    fs::create_dir(&samples).unwrap();
    let calculator = sample("calculator");
    fs::write(samples.join("calculator.wasm"), calculator).unwrap();
    let fetch = example("fetch");
    fs::write(samples.join("fetch.wasm"), fetch).unwrap();
    let grant = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fetch/fetch.toml");
    fs::copy(grant, samples.join("fetch.toml.proposed")).unwrap();
    samples
}

#[test]
fn each_step_of_the_page_does_what_the_page_says() {
    let folder = Folder::new();
    let samples = samples(&folder);
    let site = Site::start();
    let origin = site.url("");
    let home = folder.sibling_path("home");
    fs::create_dir(&home).unwrap();
    // The client is installed.
    fs::write(home.join(".claude.json"), "{}").unwrap();
    let (program, _folder) = ToolbayCommand::new(&folder).into_parts();
    let toolbay = program.get_program().to_owned();
    let mut current = folder.sibling_path("");
    let mut commands = 0;
    for step in steps() {
        let (command, expected) = match step {
            Step::Grant(text) => {
                let local = text.replace(SITE, &origin);
                let grant = format!("{local}private_networks = [\"127.0.0.1\"]\n");
                fs::write(current.join("plugins/fetch.toml"), grant).unwrap();
                continue;
            }
            Step::Run(command, expected) => (command, expected),
        };
        commands += 1;
        if let Some(name) = command.strip_prefix("cd ") {
            current.push(name);
            continue;
        }
        let script = command
            .replace(SITE, &origin)
            .replace(
                "toolbay init",
                &format!("toolbay init --from '{}'", samples.display()),
            )
            .replacen("toolbay", "\"$TOOLBAY\"", 1);
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(&current)
            .env("TOOLBAY", &toolbay)
            .env("HOME", &home)
            .env("XDG_CACHE_HOME", home.join("cache"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        for line in expected.iter().filter(|line| !line.is_empty()) {
            assert!(
                has_line(&printed, &line.replace(SITE, &origin)),
                "$ {command}\nexpected the line: {line}\nprinted:\n{printed}"
            );
        }
    }
    assert_eq!(commands, 7, "the page has another number of commands");
    // The proposal was never applied.
    assert!(current.join("plugins/fetch.toml.proposed").exists());
}
