//! `cargo xtask measure`: how the host's sources read, in numbers: sizes of files, names of types,
//! wording of comments and messages.

mod figure;
mod literals;
mod names;
mod prose;
mod sizes;
mod source;

use std::process::ExitCode;

use anstream::println;
use anyhow::{Result, ensure};
use clap::Args;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::figure::Measure;
use self::source::SourceFile;

/// What to list in addition to the numbers.
#[derive(Args)]
pub(crate) struct Options {
    /// List the places that each measure counts
    #[arg(long)]
    list: bool,
    /// Measure only the files whose paths contain this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// `cargo xtask measure`. Fails if a measure exceeds its limit.
pub(crate) fn run(workspace: &CargoWorkspace, options: &Options) -> Result<ExitCode> {
    let files = source::host(workspace)?;
    let files: Vec<SourceFile> = files
        .into_iter()
        .filter(|file| {
            options
                .only
                .as_ref()
                .is_none_or(|text| file.path.contains(text))
        })
        .collect();
    let measures: Vec<Measure> = [
        sizes::measure(&files),
        names::measure(&files),
        prose::measure(&files),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut table = Table::new();
    table
        .load_style(ASCII_MARKDOWN)
        .set_header(["measure", "value", "limit", ""]);
    for measure in &measures {
        let verdict = if measure.is_met() { "" } else { "exceeded" };
        let [value, limit] = [measure.tenths, measure.limit_tenths]
            .map(|tenths| format!("{}.{}", tenths / 10, tenths % 10));
        table.add_row([measure.name, &value, &limit, verdict]);
    }
    for column in [1, 2] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    if options.list {
        for measure in &measures {
            println!("{}", terminal::bold(format!("\n{}", measure.name)));
            measure
                .places
                .iter()
                .for_each(|place| println!("  {place}"));
        }
    }
    println!("{table}");
    Ok(if measures.iter().all(Measure::is_met) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Checks the phrases in the host's comments and messages. Prints the places that count if a limit
/// is exceeded.
///
/// # Errors
///
/// Fails if a limit is exceeded.
pub(crate) fn check_wording(workspace: &CargoWorkspace) -> Result<()> {
    let measures = prose::measure_phrases(&source::host(workspace)?);
    let exceeded: Vec<&Measure> = measures
        .iter()
        .filter(|measure| !measure.is_met())
        .collect();
    for place in exceeded.iter().flat_map(|measure| &measure.places) {
        println!("{place}");
    }
    let names: Vec<&str> = exceeded.iter().map(|measure| measure.name).collect();
    ensure!(names.is_empty(), "too many: {}", names.join(", "));
    Ok(())
}
