//! Copies of the state as JSON Lines, for backups and moves to another machine.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, stdin};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use toolbay_model::text::clean_line;
use toolbay_policy::StateScope;
use toolbay_state::{
    BucketChange, PageStart, StateBucket, StateDatabase, StateOwner, StateQuota, StateStore as _,
    UnmeteredPayer,
};

use super::access::{granted_quota, open_database, parse_caller, with_error_details};
use crate::call::budget;
use crate::cli::common::block_on;
use crate::cli::output::{print, print_verbatim};
use crate::config::Config;

/// Maximum length of a line, in bytes: the largest value and key as base64 and JSON.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Maximum size of a printed name, in bytes.
const MAX_NAME_BYTES: usize = 300;

/// A key with its value, as one line of a copy.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StateLine {
    plugin: String,
    /// The caller whose state it is. `None` for the state that callers share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caller: Option<String>,
    bucket: String,
    key: String,
    /// The value in base64.
    value: String,
}

/// Prints the state of a plugin, or of all plugins.
pub(super) fn export(config: &Config, plugin: Option<&str>) -> anyhow::Result<ExitCode> {
    let database = open_database(config)?;
    if !database.has_file() {
        return Ok(ExitCode::SUCCESS);
    }
    block_on(async {
        for owner in with_error_details(database.usage_by_owner().await)? {
            if plugin.is_some_and(|plugin| plugin != owner.plugin) {
                continue;
            }
            for name in owner.buckets.keys() {
                let line = StateLine {
                    plugin: owner.plugin.clone(),
                    caller: owner.caller.clone(),
                    bucket: name.clone(),
                    key: String::new(),
                    value: String::new(),
                };
                export_bucket(&database, line).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Prints the keys of a bucket. `line` names the bucket.
async fn export_bucket(database: &StateDatabase, mut line: StateLine) -> anyhow::Result<()> {
    let bucket = line.open_bucket()?;
    let mut start = PageStart::First;
    loop {
        let payer = Arc::new(UnmeteredPayer);
        let page = with_error_details(database.keys(&bucket, start, payer).await)?;
        for key in &page.keys {
            let payer = Arc::new(UnmeteredPayer);
            let values = with_error_details(database.get(&bucket, vec![key.clone()], payer).await)?;
            // The key may have been deleted since the page was read.
            if let Some(value) = values.into_iter().next().flatten() {
                line.key.clone_from(key);
                line.value = BASE64.encode(value);
                print_verbatim((serde_json::to_string(&line)? + "\n").as_bytes());
            }
        }
        match page.keys.last() {
            Some(last) if page.more => start = PageStart::After(last.clone()),
            _ => return Ok(()),
        }
    }
}

/// Sets the keys of a copy.
pub(super) fn import(config: &Config, file: &Path) -> anyhow::Result<ExitCode> {
    let database = open_database(config)?;
    let shown = file.display();
    let mut reader: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(stdin().lock())
    } else {
        let opened = File::open(file).with_context(|| format!("failed to open {shown}"))?;
        Box::new(BufReader::new(opened))
    };
    block_on(async {
        let mut count = 0_u64;
        loop {
            let mut text = String::new();
            let length = (&mut reader)
                .take(MAX_LINE_BYTES)
                .read_line(&mut text)
                .with_context(|| format!("failed to read {shown}"))?;
            if length == 0 {
                break;
            }
            count += 1;
            import_line(config, &database, &text)
                .await
                .with_context(|| format!("{shown}:{count}, after {} keys", count - 1))?;
        }
        let keys = if count == 1 { "key" } else { "keys" };
        print(&format!("set {count} {keys}\n"));
        Ok(ExitCode::SUCCESS)
    })
}

async fn import_line(config: &Config, database: &StateDatabase, text: &str) -> anyhow::Result<()> {
    let line: StateLine =
        serde_json::from_str(text).context("expected a line of `toolbay state export`")?;
    let plugin = clean_line(&line.plugin, MAX_NAME_BYTES);
    let value = BASE64
        .decode(&line.value)
        .context("the value is not base64")?;
    let quota = if line.plugin.starts_with(budget::OWNER_PREFIX) {
        // Without the used parts of budgets, a move to another machine would renew them.
        budget::OWNER_QUOTA
    } else {
        let Some(grant) = granted_quota(config, &line.plugin) else {
            bail!(
                "the grant of {plugin} does not allow state: add [permissions.state] to {plugin}.toml"
            );
        };
        ensure!(
            (grant.scope == StateScope::Caller) == line.caller.is_some(),
            "the grant of {plugin} allows state {}, and this line has state {}",
            scope_text(grant.scope == StateScope::Caller),
            scope_text(line.caller.is_some())
        );
        StateQuota {
            size: grant.size,
            keys: grant.keys,
        }
    };
    let bucket = line.open_bucket()?;
    let change = BucketChange::Set(vec![(line.key, value)]);
    let changed = database.change(&bucket, quota, change, Arc::new(UnmeteredPayer));
    with_error_details(changed.await).map(drop)
}

fn scope_text(is_per_caller: bool) -> &'static str {
    if is_per_caller {
        "of each caller"
    } else {
        "that callers share"
    }
}

impl StateLine {
    fn open_bucket(&self) -> anyhow::Result<StateBucket> {
        let owner = StateOwner {
            plugin: self.plugin.as_str().into(),
            caller: self.caller.as_deref().map(parse_caller).transpose()?,
        };
        Ok(StateBucket::new(owner, &self.bucket)?)
    }
}
