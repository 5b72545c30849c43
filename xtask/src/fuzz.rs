//! `cargo xtask fuzz`: runs each fuzz target for a limited time. Most targets run under a
//! sanitizer. Two targets attack a real server with random input: guests that call the host, and
//! clients.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use toolbay_testkit::command;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

/// What to run, and for how long.
#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// The target; by default all of them, one after the other
    target: Option<FuzzTarget>,
    /// How long to run each, such as 90s or 15m
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = humantime::parse_duration)]
    time: Duration,
    /// Seed of the random numbers, to repeat a run of hostcalls or clients; the other targets keep
    /// what they find
    #[arg(long)]
    seed: Option<u64>,
}

/// A fuzz target.
#[derive(Clone, Copy, ValueEnum)]
enum FuzzTarget {
    /// What a client sends
    Request,
    /// Grants, configuration and variables
    Grant,
    /// Schemas, and values that are checked with them
    Schema,
    /// Files in the plugin folder
    Component,
    /// Calls of guests to the host, in a real server
    Hostcalls,
    /// What clients do to a real server, over HTTP and over standard input and output
    Clients,
}

impl FuzzTarget {
    fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Grant => "grant",
            Self::Schema => "schema",
            Self::Component => "component",
            Self::Hostcalls => "hostcalls",
            Self::Clients => "clients",
        }
    }

    /// Returns the package of a target that is a separate program and does not use a sanitizer.
    fn program(self) -> Option<&'static str> {
        match self {
            Self::Hostcalls => Some("toolbay-hostcalls"),
            Self::Clients => Some("toolbay-hostile-clients"),
            Self::Request | Self::Grant | Self::Schema | Self::Component => None,
        }
    }

    /// Returns the maximum size of an input in bytes, and the timeout for an input in seconds.
    fn input_limits(self) -> (u32, u32) {
        match self {
            Self::Request | Self::Grant => (4096, 10),
            Self::Schema => (8192, 30),
            Self::Component => (8192, 60),
            // These targets generate their own inputs.
            Self::Hostcalls | Self::Clients => (0, 0),
        }
    }

    fn run(self, workspace: &CargoWorkspace, time: Duration, seed: Option<u64>) -> Result<()> {
        if let Some(program) = self.program() {
            let mut cargo = command::cargo(&workspace.root);
            cargo.args(["run", "--quiet", "--package", program, "--"]);
            cargo.arg(format!("--time={}s", time.as_secs()));
            cargo.args(seed.map(|seed| format!("--seed={seed}")));
            return command::run(&mut cargo);
        }
        let name = self.name();
        let (length, timeout) = self.input_limits();
        let fuzz = workspace.root.join("fuzz");
        // New inputs are stored separately, to keep the corpus in the repository small.
        let found = fuzz.join("target/corpus").join(name);
        std::fs::create_dir_all(&found)
            .with_context(|| format!("failed to create {}", found.display()))?;
        // The cargo that runs this belongs to another toolchain.
        let mut cargo = Command::new("cargo");
        cargo
            .arg("+nightly")
            .args(["fuzz", "run", name])
            .arg(found)
            .arg(fuzz.join("corpus").join(name))
            .arg("--");
        cargo.arg(format!("-max_total_time={}", time.as_secs()));
        cargo.args([format!("-max_len={length}"), format!("-timeout={timeout}")]);
        cargo.args(["-rss_limit_mb=4096", "-print_final_stats=1"]);
        let dictionary = fuzz.join("dictionaries").join(name).with_extension("dict");
        if dictionary.is_file() {
            cargo.arg(format!("-dict={}", dictionary.display()));
        }
        // Schema validation measures the stack depth by the addresses of local variables. This
        // option would move them off the stack.
        cargo.env("ASAN_OPTIONS", "detect_stack_use_after_return=0");
        // A list of known findings in dependencies, with the reasons.
        let known = fuzz.join("leaks.txt");
        cargo.env(
            "LSAN_OPTIONS",
            format!("suppressions={}:print_suppressions=0", known.display()),
        );
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            // The targets create and delete thousands of plugins and compiled files.
            cargo.env("TMPDIR", memory);
        }
        // These variables of cargo and rustup would select this toolchain again.
        cargo
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            .current_dir(&workspace.root);
        command::run(&mut cargo)
    }
}

/// Runs `cargo xtask fuzz`.
pub(crate) fn run(workspace: &CargoWorkspace, options: &FuzzOptions) -> Result<()> {
    let targets = options.target.map_or_else(
        || FuzzTarget::value_variants().to_vec(),
        |target| vec![target],
    );
    if targets.iter().any(|target| target.program().is_none()) {
        ensure_tools()?;
    }
    for target in targets {
        println!("{}", terminal::bold(format!("\n==> {}", target.name())));
        let begun = Instant::now();
        target
            .run(workspace, options.time, options.seed)
            .context("fuzz/README.md says what to do with a finding")?;
        println!(
            "{}",
            terminal::bold(format!(
                "<== {}: no finding in {} s",
                target.name(),
                begun.elapsed().as_secs()
            ))
        );
    }
    Ok(())
}

fn ensure_tools() -> Result<()> {
    command::output(
        Command::new("cargo")
            .args(["+nightly", "--version"])
            .env_remove("RUSTUP_TOOLCHAIN"),
    )
    .context(
        "fuzzing needs a nightly toolchain: rustup toolchain install nightly --profile minimal",
    )?;
    command::output(Command::new("cargo-fuzz").args(["fuzz", "--version"])).context(
        "fuzzing needs cargo-fuzz and a C++ compiler: cargo install cargo-fuzz --locked",
    )?;
    Ok(())
}
