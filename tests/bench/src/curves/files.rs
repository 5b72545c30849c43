//! The time until clients observe files that change at once.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use toolbay_testkit::{TinyComponent, TinyTool};

use super::stand::{Growing, Stand, ms, start};
use crate::serving;
use toolbay_load::pause;
use toolbay_load::{Server, Via};
use toolbay_report::{Lines, Unit};

/// Maximum time for a change.
const PATIENCE: Duration = Duration::from_mins(10);

/// The kind of the changed files.
#[derive(Clone, Copy)]
enum Kind {
    /// Prompts, which are text files.
    Prompt,
    /// Plugins, which are compiled.
    Plugin,
}

pub(super) fn measure(stand: &Stand) -> Result<Vec<Lines>> {
    let prompts = stand.points(&[1, 10, 100, 1_000, 5_000], 1_000);
    let plugins = stand.points(&[1, 10, 100, 1_000], 10);
    let lines = |title: &str, across: &str, growing: Growing| Lines {
        title: title.to_owned(),
        across: across.to_owned(),
        unit: Unit::Milliseconds,
        series: growing.done(),
    };
    Ok(vec![
        lines(
            "From the last changed prompt until all are listed",
            "prompts changed at once",
            all(stand, &prompts, Kind::Prompt)?,
        ),
        lines(
            "From the last changed plugin until all are listed",
            "plugins changed at once",
            all(stand, &plugins, Kind::Plugin)?,
        ),
    ])
}

fn all(stand: &Stand, points: &[u32], kind: Kind) -> Result<Growing> {
    let mut growing = Growing::new(&["until listed"]);
    for count in points {
        let folder = serving::folder(&stand.server)?;
        if let Kind::Prompt = kind {
            fs::create_dir(folder.plugin_path("many.prompts"))?;
        }
        let change = |version: u32| -> Result<()> {
            let staged: Vec<_> = (0..*count)
                .map(|number| kind.file(number, version))
                .collect();
            for (name, bytes) in &staged {
                fs::write(folder.sibling_path(&name.replace('/', "-")), bytes)?;
            }
            // All files change at once: they are written next to the folder, and then renamed.
            for (name, _) in &staged {
                fs::rename(
                    folder.sibling_path(&name.replace('/', "-")),
                    folder.plugin_path(name),
                )?;
            }
            Ok(())
        };
        change(0)?;
        let mut server = start(&folder, Via::Stdio)?;
        kind.wait(&mut server, *count, 0)?;
        for version in 1..=stand.rounds {
            change(version)?;
            let began = Instant::now();
            kind.wait(&mut server, *count, version)?;
            growing.add(*count, &[ms(began.elapsed())]);
        }
        ensure!(
            Path::new(&folder.plugin_folder()).is_dir(),
            "the folder has gone"
        );
    }
    Ok(growing)
}

impl Kind {
    /// Returns the name and the content of a file.
    fn file(self, number: u32, version: u32) -> (String, Vec<u8>) {
        let about = about(number, version);
        match self {
            Self::Prompt => {
                let text = format!("---\ndescription: {about}\n---\nSay {number}.\n");
                (
                    format!("many.prompts/prompt_{number}.md"),
                    text.into_bytes(),
                )
            }
            Self::Plugin => {
                let tool = TinyTool {
                    description: Some(about),
                    ..TinyTool::new(&format!("tool_{number}"))
                };
                (
                    format!("plugin-{number}.wasm"),
                    TinyComponent::with_tools(vec![tool]).build(),
                )
            }
        }
    }

    /// Waits until all items are listed in this version.
    fn wait(self, server: &mut Server, count: u32, version: u32) -> Result<()> {
        let (method, member) = match self {
            Self::Prompt => ("prompts/list", "prompts"),
            Self::Plugin => ("tools/list", "tools"),
        };
        let ending = ending(version);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut listed = 0;
            let mut params = json!({});
            loop {
                let page = server.ask(method, params)?;
                let items = page
                    .get(member)
                    .and_then(Value::as_array)
                    .context("a list without items")?;
                let is_new = |item: &&Value| {
                    item.get("description")
                        .and_then(Value::as_str)
                        .is_some_and(|about| about.ends_with(&ending))
                };
                let new = items.iter().filter(is_new).count();
                listed += new;
                match page.get("nextCursor") {
                    // The list is not up to date if one page contains an old item.
                    Some(cursor) if new == items.len() => params = json!({"cursor": cursor}),
                    _ => break,
                }
            }
            if listed == count as usize {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{listed} of {count} are listed");
            pause(Duration::from_millis(2));
        }
    }
}

fn about(number: u32, version: u32) -> String {
    format!("Number {number}{}", ending(version))
}

fn ending(version: u32) -> String {
    format!(", version {version}.")
}
