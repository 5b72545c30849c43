//! Builds plugins with packages, and calls each package in a plugin and in the reference program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use toolbay_testkit::{ServerProgram, StdioClient, TestFolder, ToolbayCommand, revision};

use super::api_server::ApiServer;
use super::project::PackageProject;
use super::row::{PackageRegistry, PackageRow, RowClaim};
use super::verdict::{self, CallVerdict, FailedStep};
use crate::languages::project::BuildEnvironment;

/// Maximum number of packages in a plugin. A large plugin is built and compiled faster than many
/// small ones, but an error costs more builds.
const MAX_GROUP_SIZE: usize = 12;

/// The outcome of a row.
pub(super) struct RowOutcome<'a> {
    pub(super) row: &'a PackageRow,
    /// The reason for which the outcome contradicts the claim of the row.
    pub(super) contradiction: Option<String>,
}

/// The programs and folders of a run.
pub(super) struct PackageTrials<'a> {
    pub(super) root: &'a Path,
    pub(super) server: &'a Path,
    pub(super) machine: BuildEnvironment,
    /// The folder of projects, below `target`.
    pub(super) projects: PathBuf,
    /// The home folder of servers, with the compile cache.
    pub(super) home: PathBuf,
}

/// A row, the step that failed if one did, and the verdict.
type RowVerdict<'a> = (&'a PackageRow, FailedStep, CallVerdict);

impl PackageTrials<'_> {
    /// Tries the rows of a registry. `name` is the name of the projects' folders. `report` receives
    /// each outcome as soon as it is known.
    pub(super) fn run<'a>(
        &self,
        registry: PackageRegistry,
        name: &str,
        rows: &[&'a PackageRow],
        report: &mut dyn FnMut(RowOutcome<'a>),
    ) -> Result<()> {
        let mut judge = |verdicts: Vec<RowVerdict<'a>>| {
            for (row, step, verdict) in verdicts {
                report(RowOutcome {
                    row,
                    contradiction: verdict::contradiction(row, step, &verdict),
                });
            }
        };
        match registry {
            // The packages are installed together, and a build takes what it needs of them.
            PackageRegistry::Npm => {
                let project = self.install(name, rows)?;
                for group in groups(rows) {
                    judge(self.try_group(&project, &group)?);
                }
            }
            // The versions that packages need of others must agree only within a group.
            PackageRegistry::Pypi => {
                for (index, group) in groups(rows).into_iter().enumerate() {
                    judge(self.install_and_try(&format!("{name}-g{index}"), &group)?);
                }
            }
        }
        Ok(())
    }

    fn install(&self, name: &str, rows: &[&PackageRow]) -> Result<PackageProject> {
        let folder = self.projects.join(name);
        PackageProject::install(self.root, self.server, &self.machine, &folder, rows)
    }

    /// Installs and tries a group. If that fails, each half of it.
    fn install_and_try<'a>(
        &self,
        name: &str,
        rows: &[&'a PackageRow],
    ) -> Result<Vec<RowVerdict<'a>>> {
        let error = match self.install(name, rows) {
            Ok(project) => return self.try_group(&project, rows),
            Err(error) => error,
        };
        match halves(rows) {
            Some((first, second)) => {
                let mut verdicts = self.install_and_try(&format!("{name}a"), first)?;
                verdicts.extend(self.install_and_try(&format!("{name}b"), second)?);
                Ok(verdicts)
            }
            None => Ok(failures(rows, FailedStep::Build, &format!("{error:#}"))),
        }
    }

    /// Tries the rows that work in one plugin, and each other one alone.
    fn try_group<'a>(
        &self,
        project: &PackageProject,
        rows: &[&'a PackageRow],
    ) -> Result<Vec<RowVerdict<'a>>> {
        let (together, alone): (Vec<&PackageRow>, Vec<&PackageRow>) =
            rows.iter().partition(|row| row.claim() == RowClaim::Works);
        let mut verdicts = Vec::new();
        if !together.is_empty() {
            verdicts.extend(self.try_together(project, &together)?);
        }
        for row in alone {
            verdicts.extend(self.try_together(project, &[row])?);
        }
        Ok(verdicts)
    }

    /// Tries rows in one plugin, without those that keep it from being built. If the plugin is not
    /// loaded, tries each half.
    fn try_together<'a>(
        &self,
        project: &PackageProject,
        rows: &[&'a PackageRow],
    ) -> Result<Vec<RowVerdict<'a>>> {
        let mut verdicts = Vec::new();
        let mut buildable = rows.to_vec();
        let mut built = project.build(&self.machine, rows);
        if let (Err(_), Some((first, second))) = (&built, halves(rows)) {
            buildable = self.find_buildable(project, first, &mut verdicts);
            buildable.extend(self.find_buildable(project, second, &mut verdicts));
            if buildable.is_empty() {
                return Ok(verdicts);
            }
            built = project.build(&self.machine, &buildable);
        }
        let plugin = built.and_then(|output| self.load(&output));
        match (plugin, halves(&buildable)) {
            (Ok(folder), _) => verdicts.extend(call_rows(project, &folder, &buildable)?),
            (Err(_), Some((first, second))) => {
                verdicts.extend(self.try_together(project, first)?);
                verdicts.extend(self.try_together(project, second)?);
            }
            (Err(text), None) => verdicts.extend(failures(&buildable, FailedStep::Build, &text)),
        }
        Ok(verdicts)
    }

    /// Returns the rows with which a plugin is built. A build is faster than the compilation of its
    /// plugin.
    fn find_buildable<'a>(
        &self,
        project: &PackageProject,
        rows: &[&'a PackageRow],
        verdicts: &mut Vec<RowVerdict<'a>>,
    ) -> Vec<&'a PackageRow> {
        let Err(text) = project.build(&self.machine, rows) else {
            return rows.to_vec();
        };
        let Some((first, second)) = halves(rows) else {
            verdicts.extend(failures(rows, FailedStep::Build, &text));
            return Vec::new();
        };
        let mut found = self.find_buildable(project, first, verdicts);
        found.extend(self.find_buildable(project, second, verdicts));
        found
    }

    /// Puts a plugin into a new plugin folder, and compiles it.
    fn load(&self, plugin: &Path) -> Result<TestFolder, String> {
        let program = ServerProgram::new(self.server).with_home(&self.home);
        let load = || -> Result<TestFolder> {
            let folder = TestFolder::create(&program, "toolbay-packages-")?;
            fs::copy(plugin, folder.plugin_path("packages.wasm"))?;
            let compiled = ToolbayCommand::new(&folder)
                .args(["compile", "--plugins", "plugins"])
                .try_run_with("")?;
            if compiled.code != 0 {
                bail!("{}", compiled.stderr.trim());
            }
            Ok(folder)
        };
        load().map_err(|error| format!("{error:#}"))
    }
}

/// Calls each row in the plugin, and in the reference program if it claims to work.
fn call_rows<'a>(
    project: &PackageProject,
    folder: &TestFolder,
    rows: &[&'a PackageRow],
) -> Result<Vec<RowVerdict<'a>>> {
    let servers = rows
        .iter()
        .map(|row| ApiServer::start(&row.answers))
        .collect::<Result<Vec<ApiServer>>>()?;
    let bases: BTreeMap<String, String> = rows
        .iter()
        .zip(&servers)
        .map(|(row, server)| (row.id.clone(), server.url().to_owned()))
        .collect();
    let working = rows.iter().all(|row| row.claim() == RowClaim::Works);
    let mut reference = if working {
        project.run_reference(&bases)?
    } else {
        BTreeMap::new()
    };
    let sent: Vec<Vec<String>> = servers.iter().map(ApiServer::take_requests).collect();
    fs::write(folder.plugin_path("packages.toml"), grant(rows, &servers))?;
    let mut client = StdioClient::start(folder)?;
    client.initialize(revision::NEWEST_SESSION_REVISION)?;
    let mut verdicts = Vec::new();
    for ((row, server), sent) in rows.iter().zip(&servers).zip(sent) {
        let base = json!({"base": server.url()});
        let answer = client.call(&row.id, &base)?.message;
        let value = match answer {
            Ok(result) => PackageRow::parse_result(&result),
            Err(error) => Err(error.to_string()),
        };
        let expected = reference.remove(&row.id);
        let requests = [server.take_requests(), sent];
        verdicts.push((
            *row,
            FailedStep::Call,
            judge(row, value, expected, &requests),
        ));
    }
    client.stop()?;
    Ok(verdicts)
}

/// Compares the value of a plugin, and the requests that it sent, with those of the reference
/// program, which has no value for a row that does not claim to work.
fn judge(
    row: &PackageRow,
    value: Result<Value, String>,
    expected: Option<Result<Value, String>>,
    [requests, expected_requests]: &[Vec<String>; 2],
) -> CallVerdict {
    let value = match (value, row.claim()) {
        (Err(text), _) => return CallVerdict::Fails(text),
        (Ok(_), RowClaim::Fails(_) | RowClaim::Refused(_)) => return CallVerdict::Works,
        (Ok(value), RowClaim::Works) => value,
    };
    let expected = match expected {
        Some(Ok(expected)) => expected,
        Some(Err(text)) => {
            return CallVerdict::Fails(format!("the reference program fails: {text}"));
        }
        None => return CallVerdict::Fails("the reference program has no value".to_owned()),
    };
    let listed = row.result.as_ref().map(|result| json!(result));
    if let Some(listed) = listed.filter(|listed| *listed != expected) {
        return CallVerdict::Fails(format!(
            "`result` is {listed}, but the reference program returns {expected}"
        ));
    }
    match verdict::compare("it returns", &value, &expected) {
        CallVerdict::Works => {
            verdict::compare("it sends", &json!(requests), &json!(expected_requests))
        }
        other => other,
    }
}

/// Returns the grant of a plugin: the origins of the local servers for clients.
fn grant(rows: &[&PackageRow], servers: &[ApiServer]) -> String {
    let origins: Vec<&str> = rows
        .iter()
        .zip(servers)
        .filter(|(row, _)| row.is_client())
        .map(|(_, server)| server.url())
        .collect();
    format!("[permissions]\nhttp = {origins:?}\nprivate_networks = [\"127.0.0.1/32\"]\n")
}

/// Splits rows into groups of about the same size.
fn groups<'a>(rows: &[&'a PackageRow]) -> Vec<Vec<&'a PackageRow>> {
    let count = rows.len().div_ceil(MAX_GROUP_SIZE).max(1);
    let size = rows.len().div_ceil(count).max(1);
    rows.chunks(size).map(<[_]>::to_vec).collect()
}

/// Splits more than one row into halves.
fn halves<'a, 'b>(
    rows: &'b [&'a PackageRow],
) -> Option<(&'b [&'a PackageRow], &'b [&'a PackageRow])> {
    (rows.len() > 1).then(|| rows.split_at(rows.len() / 2))
}

fn failures<'a>(rows: &[&'a PackageRow], step: FailedStep, text: &str) -> Vec<RowVerdict<'a>> {
    rows.iter()
        .map(|row| (*row, step, CallVerdict::Fails(text.to_owned())))
        .collect()
}
