//! Compares Toolbay with servers on the official SDKs: the same tools and the same callers,
//! alternately.

mod figure;
mod list;
mod outcome;
mod round;

use anstream::{eprintln, println};
use anyhow::{Context, Result, ensure};
use clap::Args;
use toolbay_testkit::build::WorkspaceBuilder;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use self::list::Peer;
use self::outcome::Outcome;
use self::round::Plan;
use toolbay_report::{Machine, Page};

/// How to compare.
#[derive(Args)]
pub(crate) struct Options {
    /// Measure for shorter, five minutes in all; the figures vary more
    #[arg(long)]
    pub(crate) quick: bool,
    /// How many rounds to measure, one after the other; every second one in reverse order
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure these servers only, such as toolbay,native
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure this server as Toolbay; build none
    #[arg(long, value_name = "PATH")]
    server: Option<std::path::PathBuf>,
    /// Install what the other servers need, into target/peers
    #[arg(long)]
    install: bool,
    /// Write tables and charts into the book
    #[arg(long)]
    book: bool,
}

impl Options {
    /// Returns the options of `cargo xtask bench --quick`.
    pub(crate) fn quick() -> Self {
        Self {
            quick: true,
            rounds: 7,
            only: Vec::new(),
            server: None,
            install: false,
            book: false,
        }
    }
}

/// Measures all available servers.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = CargoWorkspace::load()?;
    let machine = Machine::now(&workspace.root)?;
    let mut builder = WorkspaceBuilder::new(&workspace);
    let toolbay = list::toolbay(&mut builder, options.server.as_deref())?;
    let mut peers: Vec<Peer> = toolbay;
    for found in list::others(&workspace, options.install) {
        match found {
            Ok(peer) => peers.push(peer),
            Err(why) => eprintln!("{} {why:#}", terminal::dim("skipped:")),
        }
    }
    if !options.only.is_empty() {
        peers.retain(|peer| options.only.iter().any(|name| name == peer.name));
        ensure!(!peers.is_empty(), "none of these servers is there");
    }
    let plan = if options.quick {
        Plan::QUICK
    } else {
        Plan::FULL
    };
    let mut outcome = Outcome::default();
    for peer in &mut peers {
        say(&format!("{}: {}", peer.name, peer.about));
        peer.burn = Some(round::calibrate(&*peer.launch))
            .transpose()
            .with_context(|| format!("{} does not work", peer.name))?;
    }
    for round in 1..=options.rounds {
        let mut turn: Vec<&Peer> = peers.iter().collect();
        if round % 2 == 0 {
            turn.reverse();
        }
        for peer in turn {
            say(&format!(
                "round {round} of {}, {}",
                options.rounds, peer.name
            ));
            outcome.add(peer.name, round::measure(peer, &plan));
        }
    }
    let abouts: Vec<String> = peers
        .iter()
        .map(|peer| format!("`{}`: {}", peer.name, peer.about))
        .collect();
    let names: Vec<&str> = peers.iter().map(|peer| peer.name).collect();
    let how = format!(
        "{} {} rounds, {}.",
        machine.words(),
        options.rounds,
        plan.words()
    );
    println!("{}\n{how}\n\n{}", outcome.tables(&names), abouts.join("\n"));
    for failure in outcome.failures() {
        eprintln!("{} {failure}", terminal::red("failed:"));
    }
    if options.book {
        let page = Page::of(&workspace.root);
        let charts = outcome.charts(&page, &names)?;
        let text = format!(
            "{how}\n\n- {}\n\n{}\n{charts}",
            abouts.join("\n- "),
            outcome.tables(&names)
        );
        page.write("peers", &text)?;
    }
    ensure!(
        outcome.failures().is_empty(),
        "not everything could be measured"
    );
    Ok(())
}

/// Prints the current measurement to standard error. Standard output is for results.
fn say(what: &str) {
    eprintln!("{}", terminal::dim(format!("measuring {what} …")));
}
