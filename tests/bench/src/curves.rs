//! The growth of costs with tools, calls in flight, bytes, clients, plugins and changed files.

mod clients;
mod files;
mod flight;
mod payload;
mod plugins;
mod stand;
mod tools;

use std::path::PathBuf;

use anstream::{eprintln, println};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::stand::Stand;
use toolbay_report::{Lines, Machine, Page};

/// How to measure curves.
#[derive(Args)]
pub(crate) struct Options {
    /// Measure for shorter and leave out the longest rows; the figures vary more
    #[arg(long)]
    quick: bool,
    /// How many rounds to measure, one after the other
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure these curves only
    #[arg(long, value_name = "CURVE", value_enum, value_delimiter = ',')]
    only: Vec<Curve>,
    /// Measure this server; build none
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// Write tables and charts into the book
    #[arg(long)]
    book: bool,
}

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Curve {
    /// Tools that are served, to 10,000
    Tools,
    /// Calls that one client has open, to 1,000
    Flight,
    /// Bytes of a message, to 1 MiB
    Payload,
    /// Clients that are connected over HTTP, to 500
    Clients,
    /// Plugins, to 5,000
    Plugins,
    /// Files that are changed at once, to 5,000
    Files,
}

impl Curve {
    /// Returns its name, which is also its part of the page.
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Flight => "flight",
            Self::Payload => "payload",
            Self::Clients => "clients",
            Self::Plugins => "plugins",
            Self::Files => "files",
        }
    }

    fn measure(self, stand: &Stand) -> Result<Vec<Lines>> {
        match self {
            Self::Tools => tools::measure(stand),
            Self::Flight => flight::measure(stand),
            Self::Payload => payload::measure(stand),
            Self::Clients => clients::measure(stand),
            Self::Plugins => plugins::measure(stand),
            Self::Files => files::measure(stand),
        }
    }
}

/// Measures the curves.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = CargoWorkspace::load()?;
    let machine = Machine::now(&workspace.root)?;
    let mut builder = WorkspaceBuilder::new(&workspace);
    let server = match &options.server {
        Some(server) => std::fs::canonicalize(server)
            .with_context(|| format!("no server {}", server.display()))?,
        None => builder.build_server(BuildProfile::Release)?,
    };
    let plugin = builder.build_guest("echo")?.join("echo.wasm");
    let stand = Stand::new(server, plugin, options.rounds, options.quick);
    let curves = if options.only.is_empty() {
        Curve::value_variants()
    } else {
        &options.only
    };
    let page = Page::of(&workspace.root);
    for curve in curves {
        eprintln!("{}", terminal::dim(format!("measuring {} …", curve.name())));
        let charts = curve
            .measure(&stand)
            .with_context(|| format!("the curve of {}", curve.name()))?;
        let mut parts = vec![format!("{} {} rounds.", machine.words(), options.rounds)];
        for (number, lines) in charts.iter().enumerate() {
            println!("{}\n\n{}", lines.title, lines.table());
            if options.book {
                let name = format!("{}-{}", curve.name(), number + 1);
                let chart = page.chart(&name, &lines.title, &lines.svg())?;
                parts.push(format!("{chart}\n{}", lines.table()));
            }
        }
        if options.book {
            page.write(curve.name(), &parts.join("\n\n"))?;
        }
    }
    println!("{} {} rounds.", machine.words(), options.rounds);
    Ok(())
}
