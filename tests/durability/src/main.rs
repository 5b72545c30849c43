//! Repeatedly kills a process that stores state. Each time, it checks that exactly the acknowledged
//! operations are stored, that quotas hold, and that no owner can read the state of another.
//!
//! The process that is killed runs the same program (`writer`). It reports completed operations on
//! standard output. All reported operations must be stored, and at most one more for each task.

mod operation;
mod verdict;
mod writer;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use anstream::{eprintln, println};
use anyhow::{Context as _, Result, bail};
use clap::Parser;

use self::operation::Task;
use self::verdict::verify;

/// Kills a process that keeps state, and checks that all it acknowledged is there
#[derive(Parser)]
struct Options {
    /// Operations in all
    #[arg(long, default_value_t = 1_000_000)]
    operations: u64,
    /// How often the process is killed
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// Tasks that work at once, each with a state of its own and all with one that they share
    #[arg(long, default_value_t = 32)]
    tasks: usize,
    /// Decides when the process is killed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Be the process that is killed: keep state in this folder
    #[arg(long, hide = true, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// The first operation of each task
    #[arg(long, hide = true, value_delimiter = ',')]
    from: Vec<u64>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match &options.write {
        Some(folder) => writer::run(folder, &options.from),
        None => run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let state = folder.path().join("state");
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut tasks: Vec<Task> = (0..options.tasks).map(Task::new).collect();
    let started = Instant::now();
    let mut done = 0;
    let mut kills = 0;
    while done < options.operations || kills < options.kills {
        let share = 2 * options.operations / options.kills.max(1);
        done += until_killed(&state, &mut tasks, random.u64(1..=share.max(1)))?;
        kills += 1;
        let more = verify(&state, &mut tasks)
            .with_context(|| format!("after kill {kills}, with {done} operations"))?;
        done += more;
        if kills.is_power_of_two() {
            println!(
                "{done} operations and {kills} kills after {:.0?}",
                started.elapsed()
            );
        }
    }
    println!(
        "{done} operations, {kills} kills: all that was acknowledged is there, and quotas hold"
    );
    Ok(())
}

/// Runs the process until it has reported this number of operations, and kills it. Returns how many
/// it reported.
fn until_killed(state: &Path, tasks: &mut [Task], operations: u64) -> Result<u64> {
    let from: Vec<String> = tasks.iter().map(|task| task.done().to_string()).collect();
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--write")
        .arg(state)
        .args(["--from", &from.join(",")]);
    let mut child = Killed(
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut lines = BufReader::new(child.0.stdout.take().context("no standard output")?).lines();
    let mut said = 0;
    for line in &mut lines {
        note(tasks, &line?)?;
        said += 1;
        if said == operations {
            child.0.kill()?;
            break;
        }
    }
    if said < operations {
        bail!("the process ended by itself after {said} operations");
    }
    // Reads the operations that it reported before it was killed.
    for line in lines {
        let line = line?;
        // The last line may be truncated.
        if line.ends_with('.') {
            note(tasks, &line)?;
            said += 1;
        }
    }
    Ok(said)
}

/// Records a completed operation: `TASK NUMBER.`
fn note(tasks: &mut [Task], line: &str) -> Result<()> {
    let parts = line.strip_suffix('.').and_then(|line| line.split_once(' '));
    let (task, number) = parts.with_context(|| format!("not an operation: {line:?}"))?;
    let task = tasks
        .get_mut(task.parse::<usize>()?)
        .context("an unknown task")?;
    task.acknowledge(number.parse()?)
}

/// A child process that is killed when this value is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // The process may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
