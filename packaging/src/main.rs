//! Builds the packages, then installs and uses each of them as a user would. `cargo xtask dist`
//! starts it.
//!
//! ```text
//! build ──► content ──► make (one module per format) ──► checksums ──► trial (one per format) ──► table
//! ```
//!
//! Every package contains the same files: the program and the files that [`content`] adds. Each
//! format is written by its official tool (`npm pack`, hatchling, `dpkg-deb`, `rpmbuild`, `mcpb
//! pack`), so that the result is what installers expect. The tar archives and the image are written
//! by [`tarred`]. Nothing is published.

mod build;
mod checksums;
mod content;
mod format;
mod kit;
mod machine;
mod make;
mod release;
mod table;
mod tarred;
mod tools;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use anstream::{eprintln, println};
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::build::Target;
use self::format::{FORMATS, Format};
use self::kit::Kit;
use self::table::Row;

/// Makes the packages that people install. Nothing is published
#[derive(Parser)]
#[command(name = "cargo xtask dist", bin_name = "cargo xtask dist")]
struct Options {
    /// Build for this machine
    #[arg(long, value_enum, default_value = "x86-64", conflicts_with = "binary")]
    target: Target,
    /// Package this program instead of building one. One that needs the libraries of this machine
    /// makes packages that are good for tests alone
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Make only this format; may be repeated
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    only: Vec<String>,
    /// Install and use each package on this machine
    #[arg(long)]
    test: bool,
    /// Where the files of the release will be downloaded from
    #[arg(long, value_name = "URL", default_value = release::DOWNLOADS)]
    url: String,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{} {error:#}", terminal::red("error:"));
            ExitCode::FAILURE
        }
    }
}

/// Returns a parser for the name of a format.
fn format() -> impl clap::builder::TypedValueParser<Value = String> {
    let names = FORMATS
        .iter()
        .map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(names).map(|name| name)
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = CargoWorkspace::load()?;
    let kit = Kit::new(
        &workspace,
        options.binary.as_deref(),
        options.target,
        &options.url,
    )?;
    let wanted = |format: &&Format| {
        options.only.is_empty() || options.only.iter().any(|name| name == format.name)
    };
    let mut rows = Vec::new();
    for format in FORMATS.iter().filter(wanted) {
        println!("{}", terminal::bold(format!("\n==> {}", format.about)));
        let made = (format.make)(&kit).with_context(|| format!("the format {}", format.name))?;
        for file in &made {
            println!("{}", file.display());
        }
        rows.push(Row::new(format.name, made)?);
    }
    checksums::write(&kit.out)?;
    let mut passed = 0_usize;
    let mut failed = 0_usize;
    if options.test {
        for (format, row) in FORMATS.iter().filter(wanted).zip(&mut rows) {
            let Some(install) = format.install else {
                continue;
            };
            println!(
                "{}",
                terminal::bold(format!("\n==> Installing and using {}", format.name))
            );
            match trial::run(&kit, install, &row.files) {
                Ok(seen) => {
                    passed += seen.checks;
                    row.seen = Some(seen);
                }
                Err(error) => {
                    failed += 1;
                    eprintln!("{} {}: {error:#}", terminal::red("error:"), format.name);
                }
            }
        }
    }
    println!(
        "\nThe program: {}\nThe packages: {}\n",
        kit.describe()?,
        kit.out.display()
    );
    println!("{}", table::of(&rows));
    if !options.test {
        return Ok(ExitCode::SUCCESS);
    }
    println!("\n{passed} passed, {failed} failed");
    if failed > 0 {
        return Ok(ExitCode::FAILURE);
    }
    if passed == 0 {
        bail!("nothing was tested: these formats are not installed on a machine");
    }
    Ok(ExitCode::SUCCESS)
}
