//! `cargo xtask bench metering`: the same computations as native code, in wasmtime without and with
//! metering, and in Toolbay.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program talks to the person who runs it"
)]

mod bare;
#[path = "../../guests/kernels/src/kernels.rs"]
mod kernels;

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{eprintln, println};
use anyhow::{Context, Result, ensure};
use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, json};
use toolbay_inside::Inside;
use toolbay_model::{CallReply, CallResult, ContentBody};
use toolbay_report::{Machine, Markdown, Page, Sample, Unit, number};
use toolbay_testkit::build::WorkspaceBuilder;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::bare::{Bare, Metering};

/// The computations and their sizes.
const KERNELS: [(&str, u32); 5] = [
    ("fib", 32),
    ("sha256", 16_384),
    ("sort", 500_000),
    ("json", 60_000),
    ("regex", 40_000),
];

/// Measure what metering costs.
#[derive(Parser)]
#[command(name = "cargo xtask bench metering", version)]
struct Cli {
    /// How many rounds to measure, one after the other; every second one in reverse order
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Write the table into the book
    #[arg(long)]
    book: bool,
}

fn main() -> ExitCode {
    terminal::exit_code(run(&Cli::parse()))
}

/// The environment of a computation.
enum Place {
    Native,
    Bare(Box<Bare>),
    Toolbay(Box<Inside>),
}

fn run(cli: &Cli) -> Result<()> {
    let workspace = CargoWorkspace::load()?;
    let machine = Machine::now(&workspace.root)?;
    let guest = fs::read(
        WorkspaceBuilder::new(&workspace)
            .build_guest("kernels")?
            .join("kernels.wasm"),
    )?;
    let inside = Inside::new()?;
    inside.offer(&[("kernels", &guest)])?;
    let mut places = vec![("native".to_owned(), Place::Native)];
    for metering in Metering::ALL {
        places.push((
            metering.words().to_owned(),
            Place::Bare(Box::new(Bare::new(&guest, metering)?)),
        ));
    }
    places.push(("Toolbay".to_owned(), Place::Toolbay(Box::new(inside))));
    let mut samples: Vec<Vec<Sample>> = vec![vec![Sample::default(); places.len()]; KERNELS.len()];
    for round in 1..=cli.rounds {
        eprintln!(
            "{}",
            terminal::dim(format!("measuring round {round} of {} …", cli.rounds))
        );
        for ((kernel, size), samples) in KERNELS.into_iter().zip(&mut samples) {
            let expected = kernels::compute(kernel, size).context("no such kernel")?;
            let mut turn: Vec<_> = places.iter().zip(samples).collect();
            if round % 2 == 0 {
                turn.reverse();
            }
            for ((name, place), sample) in turn {
                let before = cpu();
                let said = place.compute(kernel, size)?;
                sample.add(cpu().saturating_sub(before).as_secs_f64() * 1e3);
                ensure!(
                    said == expected,
                    "{kernel} gave {said} in {name}, and {expected} natively"
                );
            }
        }
    }
    let names: Vec<&str> = places.iter().map(|(name, _)| name.as_str()).collect();
    let how = format!(
        "{} Processor time of the whole process, medians of {} rounds.",
        machine.words(),
        cli.rounds
    );
    let table = table(&names, &samples);
    println!("{table}\n{how}");
    if cli.book {
        Page::of(&workspace.root).write("metering", &format!("{how}\n\n{table}"))?;
    }
    Ok(())
}

/// Returns the medians, and for metered environments the overhead compared with the unmetered ones.
fn table(names: &[&str], samples: &[Vec<Sample>]) -> Markdown {
    let mut table = Markdown::new(std::iter::once("").chain(names.iter().copied()));
    for ((kernel, _), samples) in KERNELS.iter().zip(samples) {
        let unmetered = samples.get(1);
        let cells = samples.iter().enumerate().map(|(place, sample)| {
            let Some(median) = sample.median() else {
                return String::new();
            };
            let words = Unit::Milliseconds.words(median);
            match unmetered.and_then(|unmetered| sample.ratio(unmetered)) {
                Some(ratio) if place != 1 => format!("{words} ({})", number(ratio)),
                _ => words,
            }
        });
        table.row(std::iter::once((*kernel).to_owned()).chain(cells));
    }
    table
}

impl Place {
    fn compute(&self, kernel: &str, size: u32) -> Result<String> {
        match self {
            Self::Native => kernels::compute(kernel, size).context("no such kernel"),
            Self::Bare(bare) => bare.compute(kernel, size),
            Self::Toolbay(inside) => {
                let mut arguments = Map::new();
                arguments.insert("kernel".to_owned(), json!(kernel));
                arguments.insert("size".to_owned(), json!(size));
                text(inside.call("compute", &arguments))
            }
        }
    }
}

/// Returns the text of a result.
fn text(answer: CallResult) -> Result<String> {
    let reply = answer
        .result
        .map_err(|failure| anyhow::anyhow!("the call failed: {failure:?}"))?;
    let CallReply::Tool(output) = reply else {
        anyhow::bail!("no result of a tool")
    };
    let [content] = output.content.as_slice() else {
        anyhow::bail!("not one block")
    };
    let ContentBody::Text(text) = &content.body else {
        anyhow::bail!("no text")
    };
    Ok(text.clone())
}

/// Returns the CPU time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computations_give_the_same_natively_and_in_wasmtime() {
        let guest = toolbay_testkit::guests::guest("kernels").unwrap();
        for metering in Metering::ALL {
            let bare = Bare::new(&guest, metering).unwrap();
            for (kernel, _) in KERNELS {
                let expected = kernels::compute(kernel, 10).unwrap();
                assert_eq!(
                    bare.compute(kernel, 10).unwrap(),
                    expected,
                    "{kernel}, {metering:?}"
                );
            }
        }
        assert_eq!(kernels::compute("nothing", 1), None);
    }

    #[test]
    fn a_table_compares_with_what_is_not_metered() {
        let samples: Vec<Vec<Sample>> = KERNELS
            .iter()
            .map(|_| {
                [2.0, 4.0, 5.0]
                    .map(|ms| std::iter::once(ms).collect())
                    .to_vec()
            })
            .collect();
        let table = table(&["native", "unmetered", "fuel"], &samples).to_string();
        assert!(
            table.contains("| fib | 2.00 ms (0.500) | 4.00 ms | 5.00 ms (1.25) |"),
            "{table}"
        );
    }
}
