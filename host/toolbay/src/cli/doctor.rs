//! `toolbay doctor`: checks what the machine offers a server, and which clients start one.

mod clients;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use bytesize::ByteSize;
use rustix::process::{Resource, getrlimit};
use toolbay_catalog::FolderWatcher;
use toolbay_confine::{ConfinementPlan, confine};
use toolbay_sandbox::Sandbox;

use super::check_report::{CheckReport, CheckStatus};
use super::common::{Common, Listen, block_on};
use super::output::print;
use crate::config::Config;
use crate::process::machine_limits::{COMMON_DESCRIPTORS, COMMON_THREADS, available_memory};

/// Option of the child process that tries to confine itself.
const CONFINEMENT_OPTION: &str = "--confinement-only";

pub(super) fn run(common: &Common, as_json: bool) -> anyhow::Result<ExitCode> {
    let config = common.load_config(true, &Listen::default())?;
    let mut report = CheckReport::default();
    report.add(CheckStatus::Ok, "program", program_text());
    report.add(CheckStatus::Ok, "kernel", kernel_text());
    report.add(CheckStatus::Ok, "configuration", config.source_message());
    check_limits(&mut report);
    check_folder_watching(&config, &mut report);
    check_confinement(&config, &mut report);
    block_on(async {
        check_sandbox(&config, &mut report);
        Ok(())
    })?;
    clients::check_clients(&mut report);
    report.print(as_json)
}

/// Confines this process, and prints the missing restrictions, if there are any. The process must
/// have one thread.
pub(super) fn run_confinement() -> ExitCode {
    if let Some(missing) = confine(&ConfinementPlan::default()).missing_restrictions() {
        print(&missing);
    }
    ExitCode::SUCCESS
}

fn program_text() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match std::env::current_exe() {
        Ok(path) => format!("toolbay {version} at {}", path.display()),
        Err(_) => format!("toolbay {version}"),
    }
}

fn kernel_text() -> String {
    let system = rustix::system::uname();
    format!(
        "{} {} on {}",
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        system.machine().to_string_lossy()
    )
}

/// Checks the limits that the shell or the service manager set for this process.
fn check_limits(report: &mut CheckReport) {
    let descriptors = getrlimit(Resource::Nofile).maximum;
    report.add(
        at_least(descriptors, COMMON_DESCRIPTORS),
        "open files",
        limit_text(
            descriptors,
            COMMON_DESCRIPTORS,
            "ulimit -n",
            "files, sockets and plugins",
        ),
    );
    let threads = getrlimit(Resource::Nproc).maximum;
    report.add(
        at_least(threads, COMMON_THREADS),
        "threads",
        limit_text(
            threads,
            COMMON_THREADS,
            "ulimit -u",
            "threads of all programs of this account",
        ),
    );
    match getrlimit(Resource::As).current {
        None => report.add(CheckStatus::Ok, "address space", "is unlimited"),
        Some(limit) => report.add(
            CheckStatus::Warning,
            "address space",
            format!(
                "is limited to {} (ulimit -v); sandboxes reserve address space in advance, so remove this limit, and limit \
                 memory with a control group",
                ByteSize::b(limit).display().iec()
            ),
        ),
    }
    match available_memory() {
        0 => report.add(CheckStatus::Warning, "memory", "its size cannot be read"),
        bytes => report.add(
            CheckStatus::Ok,
            "memory",
            format!("{} for this process", ByteSize::b(bytes).display().iec()),
        ),
    }
}

fn at_least(limit: Option<u64>, common: u64) -> CheckStatus {
    if limit.is_none_or(|limit| limit >= common) {
        CheckStatus::Ok
    } else {
        CheckStatus::Warning
    }
}

fn limit_text(limit: Option<u64>, common: u64, command: &str, counted: &str) -> String {
    match limit {
        None => format!("no limit of {counted}"),
        Some(limit) if limit >= common => format!("at most {limit} {counted}"),
        Some(limit) => {
            format!("at most {limit} {counted}; a server needs about {common}, see `{command}`")
        }
    }
}

/// Checks that the plugin folder exists, and that changes of it are noticed at once.
fn check_folder_watching(config: &Config, report: &mut CheckReport) {
    let folder = config.plugins.display();
    match fs::read_dir(&config.plugins) {
        Ok(_) => report.add(CheckStatus::Ok, "plugin folder", folder.to_string()),
        Err(error) => {
            return report.add(
                CheckStatus::Error,
                "plugin folder",
                format!("cannot read {folder}: {}", error.kind()),
            );
        }
    }
    match FolderWatcher::new(&config.plugins) {
        Ok(_) => report.add(CheckStatus::Ok, "folder events", watch_limits()),
        Err(error) => report.add(
            CheckStatus::Warning,
            "folder events",
            format!("{error}; changes are found within 2 s instead of at once"),
        ),
    }
}

/// Returns the kernel's limits of folder watches.
fn watch_limits() -> String {
    let limit = |name: &str| {
        let path = Path::new("/proc/sys/fs/inotify").join(name);
        fs::read_to_string(path)
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok())
    };
    match (limit("max_user_instances"), limit("max_user_watches")) {
        (Some(instances), Some(watches)) => format!(
            "the kernel reports changes (at most {instances} watching programs and {watches} watches for each account)"
        ),
        _ => "the kernel reports changes".to_owned(),
    }
}

/// Checks in a child process whether the kernel can confine a server.
fn check_confinement(config: &Config, report: &mut CheckReport) {
    let output = Command::new("/proc/self/exe")
        .args(["doctor", CONFINEMENT_OPTION])
        .env_clear()
        .output();
    let setting = config.server.confine;
    match output {
        Ok(output) if output.status.success() => {
            let missing = String::from_utf8_lossy(&output.stdout);
            if missing.trim().is_empty() {
                report.add(
                    CheckStatus::Ok,
                    "confinement",
                    format!("the kernel supports all restrictions (server.confine is {setting})"),
                );
            } else {
                report.add(
                    CheckStatus::Warning,
                    "confinement",
                    format!("the kernel cannot confine a server completely: {missing}"),
                );
            }
        }
        Ok(output) => report.add(
            CheckStatus::Warning,
            "confinement",
            format!("its check failed: {}", output.status),
        ),
        Err(error) => report.add(
            CheckStatus::Warning,
            "confinement",
            format!("cannot be checked: {}", error.kind()),
        ),
    }
}

/// Checks that sandboxes can be created, and that compiled code is stored.
fn check_sandbox(config: &Config, report: &mut CheckReport) {
    let created = config
        .sandbox_settings()
        .map_err(|error| error.to_string())
        .and_then(|settings| Sandbox::new(settings).map_err(|error| format!("{error:#}")));
    match created {
        Err(error) => report.add(
            CheckStatus::Error,
            "sandbox",
            format!("cannot be created: {error}"),
        ),
        Ok(sandbox) => {
            report.add(CheckStatus::Ok, "sandbox", "can be created");
            match sandbox.cache_off_reason() {
                Some(reason) => report.add(
                    CheckStatus::Warning,
                    "compile cache",
                    format!("{reason}; each start compiles all plugins"),
                ),
                None => report.add(
                    CheckStatus::Ok,
                    "compile cache",
                    config.compile.cache().map_or_else(
                        || "is used".to_owned(),
                        |(folder, _)| folder.display().to_string(),
                    ),
                ),
            }
        }
    }
}
