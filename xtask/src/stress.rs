//! `cargo xtask stress`: runs the black-box tests and the clients on a busy machine.

mod busy_loops;

use std::process::ExitCode;

use anstream::println;
use anyhow::Result;
use clap::Args;
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::{CargoWorkspace, HOST_PACKAGE};

use self::busy_loops::BusyLoops;
use crate::tally::TestCounts;
use crate::{build, clients, nextest};

/// How often and against how much load the tests run.
#[derive(Args)]
pub(crate) struct StressOptions {
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Number of threads that compute without end while the tests run
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    loops: u16,
    /// Run only the black-box tests whose names contain this text, and no clients
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// Runs `cargo xtask stress`.
pub(crate) fn run(workspace: &CargoWorkspace, options: &StressOptions) -> Result<ExitCode> {
    // The build runs before the loops start, because it would take three times as long with them.
    let built = build::build(workspace)?;
    let mut select = vec!["--package", HOST_PACKAGE, "--test", "it"];
    nextest::build_tests(workspace, &select)?;
    select.extend(options.filter.as_deref());
    let clients = options.filter.is_none().then_some(&built);
    let mut failures = Vec::new();
    let mut total = TestCounts::default();
    for round in 1..=options.rounds {
        println!(
            "{}",
            terminal::bold(format!("\n==> round {round} of {}", options.rounds))
        );
        let mut tally = TestCounts::default();
        for error in run_round(workspace, options.loops, &select, clients, &mut tally) {
            failures.push(format!("round {round}: {error:#}"));
        }
        total += tally;
    }
    println!("\n{total}");
    for failure in &failures {
        println!("{}", terminal::red(failure));
    }
    Ok(if failures.is_empty() && total.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs the tests and the clients once. The loops stop at the end.
fn run_round(
    workspace: &CargoWorkspace,
    loops: u16,
    select: &[&str],
    clients: Option<&BuildOutput>,
    tally: &mut TestCounts,
) -> Vec<anyhow::Error> {
    let _busy = BusyLoops::start(loops);
    let it = nextest::run_tests(workspace, tally, select);
    let clients = clients.map(|built| clients::run(workspace, built, tally));
    [Some(it), clients]
        .into_iter()
        .flatten()
        .filter_map(Result::err)
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        options: StressOptions,
    }

    fn options(args: &[&str]) -> Option<StressOptions> {
        Alone::try_parse_from(std::iter::once("stress").chain(args.iter().copied()))
            .ok()
            .map(|alone| alone.options)
    }

    #[test]
    fn three_rounds_and_four_loops_are_usual() {
        let usual = options(&[]).unwrap();
        assert_eq!((usual.rounds, usual.loops, usual.filter), (3, 4, None));
        let named = options(&["--rounds", "1", "--loops", "8", "--filter", "audit"]).unwrap();
        assert_eq!(
            (named.rounds, named.loops, named.filter.as_deref()),
            (1, 8, Some("audit"))
        );
    }

    #[test]
    fn no_round_and_no_loop_are_refused() {
        for args in [
            ["--rounds", "0"],
            ["--loops", "0"],
            ["--loops", "257"],
            ["--rounds", "many"],
        ] {
            assert!(options(&args).is_none(), "{args:?}");
        }
    }
}
