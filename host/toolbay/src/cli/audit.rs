//! `toolbay audit`: shows and verifies the audit log.

mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use toolbay_audit::{PartReport, PublicKey, VerifyFinding, VerifyReport, verify};
use toolbay_model::Digest;
use toolbay_model::text::clean_line;

use self::show::Filter;
use super::common::{Listen, Settings};
use super::output::{print, print_json};

/// Maximum length of a printed line, in bytes.
const MAX_LINE_BYTES: usize = 2_000;

#[derive(Debug, Subcommand)]
pub(super) enum Audit {
    /// Find every line that was changed, removed, reordered or inserted
    ///
    /// The exit code is 1 if there is one. The end of the output names the newest line: record it
    /// on another machine, and pass it to --expect later.
    Verify {
        #[command(flatten)]
        log: LogPath,
        /// The log's public key, as you recorded it earlier from the file `public-key` [default:
        /// the key in that file]
        #[arg(long, value_name = "HEX", value_parser = key)]
        key: Option<PublicKey>,
        /// A line that must be there, as an earlier run printed it
        #[arg(long, value_name = "LINE:HASH", value_parser = parse_line_hash)]
        expect: Option<(u64, Digest)>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the lines that match all options, the oldest first
    Show {
        #[command(flatten)]
        log: LogPath,
        #[command(flatten)]
        filter: Filter,
        /// Print the last 10 lines that match (with --since, all of them), and then new lines until
        /// Ctrl+C
        #[arg(long, short, conflicts_with = "until")]
        follow: bool,
        /// Print the lines as they are in the log, as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The location of the log.
#[derive(Args, Debug)]
pub(super) struct LogPath {
    /// The folder of the log [default: the key `audit.folder` of the configuration file]
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl LogPath {
    fn resolve(self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = self.folder {
            return Ok(folder);
        }
        let common = super::common::Common::for_folder(None, self.settings);
        let config = common.load_config(true, &Listen::default())?;
        let settings = config.audit.settings();
        let settings = settings
            .context("the configuration has no audit log: set audit.folder, or give --folder")?;
        Ok(settings.folder)
    }
}

pub(super) fn run(audit: Audit) -> anyhow::Result<ExitCode> {
    match audit {
        Audit::Verify {
            log,
            key,
            expect,
            json,
        } => {
            let folder = log.resolve()?;
            ensure_folder(&folder)?;
            let report = verify(&folder, key, expect)?;
            if json {
                print_json(&report_json(&report))?;
            } else {
                print(&report_text(&report));
            }
            Ok(if report.is_intact() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        Audit::Show {
            log,
            filter,
            follow,
            json,
        } => {
            let folder = log.resolve()?;
            ensure_folder(&folder)?;
            show::run(&folder, &filter, follow, json)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn report_json(report: &VerifyReport) -> serde_json::Value {
    let list = |findings: &[VerifyFinding]| {
        let one = |VerifyFinding {
                       location: place,
                       description,
                   }: &VerifyFinding| match place {
            Some((file, line)) => json!({"file": file, "line": line, "message": description}),
            None => json!({"message": description}),
        };
        findings.iter().map(one).collect::<Vec<_>>()
    };
    json!({
        "intact": report.is_intact(),
        "findings": list(&report.findings),
        "more_findings": report.omitted,
        "notices": list(&report.notices),
        "files": report.files,
        "lines": report.lines,
        "parts": report.parts.iter().map(part_json).collect::<Vec<_>>(),
        "lost": report.lost,
        "newest": report.newest.map(|(seq, hash)| format!("{seq}:{hash}")),
        "key": report.key.map(|key| key.to_string()),
    })
}

fn part_json(part: &PartReport) -> serde_json::Value {
    let PartReport {
        part,
        files,
        lines,
        first,
        newest,
        removed,
    } = part;
    json!({"part": part.name(), "files": files, "lines": lines, "first": first, "newest": newest, "removed": removed})
}

fn report_text(report: &VerifyReport) -> String {
    let mut out = Vec::new();
    for finding in &report.findings {
        out.push(format!(
            "! {}",
            clean_line(&finding.to_string(), MAX_LINE_BYTES)
        ));
    }
    if report.omitted > 0 {
        out.push(format!("! and {} more", report.omitted));
    }
    for notice in &report.notices {
        out.push(format!(
            "  {}",
            clean_line(&notice.to_string(), MAX_LINE_BYTES)
        ));
    }
    let count =
        |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let lines = count(report.lines, "line");
    let files = count(report.files as u64, "file");
    let state = if report.is_intact() {
        "intact"
    } else {
        "changed"
    };
    out.push(format!("{state}: {lines} in {files}"));
    for PartReport {
        part,
        files,
        lines,
        first,
        newest,
        removed,
    } in &report.parts
    {
        let name = format!("{}-*", part.name());
        let in_files = count(*files as u64, "file");
        let lines = count(*lines, "line");
        let numbers = first.map_or_else(String::new, |first| format!(" ({first} to {newest})"));
        let removed = if *removed > 0 {
            format!("; up to {removed} removed to make room")
        } else {
            String::new()
        };
        out.push(format!(
            "  {name:12} {lines} in {in_files}{numbers}{removed}"
        ));
    }
    if let Some((seq, hash)) = report.newest {
        out.push(format!("newest line  {seq}:{hash}"));
    }
    if let Some(key) = report.key {
        out.push(format!("public key   {key}"));
    }
    out.join("\n") + "\n"
}

fn key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse(text).ok_or_else(|| "expected 64 hexadecimal digits".to_owned())
}

fn parse_line_hash(text: &str) -> Result<(u64, Digest), String> {
    let parsed = text.split_once(':').and_then(|(seq, hash)| {
        let hash: [u8; 32] = hex::decode(hash).ok()?.try_into().ok()?;
        Some((seq.parse().ok()?, Digest::new(hash)))
    });
    parsed.ok_or_else(|| {
        "expected the number of a line, a colon and its hash, as `toolbay audit verify` prints them".to_owned()
    })
}

/// Fails if the path is not a folder. An empty log would look as if nothing had happened.
fn ensure_folder(folder: &std::path::Path) -> anyhow::Result<()> {
    if !folder.is_dir() {
        bail!(
            "there is no audit log in {}: it is not a folder",
            folder.display()
        );
    }
    Ok(())
}
