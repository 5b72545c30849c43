//! Runs independent steps, two at a time. Most steps wait for one thread or for a download.

use std::collections::VecDeque;
use std::env;
use std::io::{BufRead as _, BufReader, pipe};
use std::process::{Command, Stdio};
use std::thread;

use anstream::println;
use anyhow::{Context as _, Result, bail};
use parking_lot::Mutex;
use toolbay_testkit::terminal;

use super::ended::{StepResult, run_step};
use super::steps::TestStep;
use crate::tally::TestCounts;

/// Maximum number of concurrent steps, which is the number of CPU cores in CI.
const MAX_PARALLEL_STEPS: usize = 2;

/// Runs each step in a separate process and prints its name before each line. Returns the results
/// in the order of `steps`.
pub(super) fn run_steps(steps: &[&TestStep]) -> Vec<StepResult> {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..steps.len()).collect());
    let ended: Mutex<Vec<(usize, StepResult)>> = Mutex::default();
    let lane = || {
        loop {
            let next = queue.lock().pop_front();
            let Some((index, step)) = next.and_then(|index| Some((index, steps.get(index)?)))
            else {
                return;
            };
            let outcome = run_step(step.name, |tally| run_in_process(step.name, tally));
            ended.lock().push((index, outcome));
        }
    };
    thread::scope(|threads| {
        for _ in 0..MAX_PARALLEL_STEPS {
            threads.spawn(lane);
        }
    });
    let mut ended = ended.into_inner();
    ended.sort_by_key(|(index, _)| *index);
    ended.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Runs a step in a separate process and prints its output. The last line with counts contains the
/// counts of the step.
fn run_in_process(name: &str, tally: &mut TestCounts) -> Result<()> {
    let (output, input) = pipe()?;
    let mut program = Command::new(env::current_exe()?);
    program
        .args(["test", "--only", name])
        .stdin(Stdio::null())
        .stdout(input.try_clone()?)
        .stderr(input);
    let mut child = program
        .spawn()
        .with_context(|| format!("failed to start the step {name}"))?;
    // Close the write ends of the pipe in this process. Otherwise, the reader would never reach the
    // end of the output.
    drop(program);
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{} {line}", terminal::dim(format!("{name:>11} |")));
        if let Some(counts) = TestCounts::parse_line(&line) {
            *tally = counts;
        }
    }
    if !child.wait()?.success() {
        bail!("see above, at the lines that begin with {name}");
    }
    Ok(())
}
