//! `toolbay state`: shows, copies and deletes the state of plugins.

mod access;
mod transfer;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::anyhow;
use bytesize::ByteSize;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolbay_model::text::{clean_line, format_thousands};
use toolbay_policy::{StateGrant, StateScope};
use toolbay_state::{
    OwnerUsage, QuotaUsage, StateBucket, StateOwner, StateStore as _, UnmeteredPayer,
};

use self::access::{granted_quota, open_database, parse_caller, with_error_details};
use super::common::{Common, Listen, block_on};
use super::output::{print, print_bytes, print_json};
use crate::call::budget;
use crate::config::Config;

/// Maximum size of a printed name, in bytes. Plugins choose the names of buckets.
const MAX_NAME_BYTES: usize = 300;

#[derive(Debug, Subcommand)]
pub(super) enum StateCommand {
    /// List what each plugin keeps: buckets, keys, bytes, and the quota of its grant
    List {
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the value of a key; the exit code is 1 if there is none
    Get {
        /// The plugin's id: its file name without .wasm
        plugin: String,
        /// The key
        key: String,
        #[command(flatten)]
        place: KeyLocation,
        #[command(flatten)]
        common: Common,
    },
    /// Print the state as JSON Lines: one object with plugin, caller, bucket, key and value (base64)
    /// per line
    Export {
        /// The plugin's id: its file name without .wasm [default: all plugins]
        plugin: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Set the keys in a file that `toolbay state export` wrote, within the quota of each grant;
    /// other keys stay as they are
    Import {
        /// The file, or - for standard input
        file: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// Delete what a plugin keeps, by default for all callers and in all buckets
    Clear {
        /// The plugin's id: its file name without .wasm
        plugin: String,
        #[command(flatten)]
        part: ClearScope,
        #[command(flatten)]
        common: Common,
    },
}

/// The values to delete.
#[derive(Args, Debug)]
pub(super) struct ClearScope {
    /// Delete only this bucket [default: all buckets]
    #[arg(long)]
    bucket: Option<String>,
    /// Delete only this caller's state, as `toolbay state list` shows it [default: all callers]
    #[arg(long)]
    caller: Option<String>,
}

/// The location of a key.
#[derive(Args, Debug)]
pub(super) struct KeyLocation {
    /// The bucket [default: default]
    #[arg(long)]
    bucket: Option<String>,
    /// The caller whose state it is, as `toolbay state list` shows it [default: the shared state]
    #[arg(long)]
    caller: Option<String>,
}

pub(super) fn run(command: StateCommand) -> anyhow::Result<ExitCode> {
    match command {
        StateCommand::List { common, json } => list(&load_config(&common)?, json),
        StateCommand::Get {
            plugin,
            key,
            place,
            common,
        } => get(&load_config(&common)?, &plugin, key, &place),
        StateCommand::Export { plugin, common } => {
            transfer::export(&load_config(&common)?, plugin.as_deref())
        }
        StateCommand::Import { file, common } => transfer::import(&load_config(&common)?, &file),
        StateCommand::Clear {
            plugin,
            part,
            common,
        } => clear(&load_config(&common)?, &plugin, &part),
    }
}

fn load_config(common: &Common) -> anyhow::Result<Config> {
    Ok(common.load_config(true, &Listen::default())?)
}

fn list(config: &Config, as_json: bool) -> anyhow::Result<ExitCode> {
    let database = open_database(config)?;
    let usages = if database.has_file() {
        block_on(async { with_error_details(database.usage_by_owner().await) })?
    } else {
        Vec::new()
    };
    if as_json {
        let rows: Vec<Value> = usages
            .iter()
            .map(|holding| usage_json(holding, config))
            .collect();
        print_json(&json!({"folder": database.folder(), "state": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    for holding in &usages {
        write_usage(
            &mut out,
            holding,
            granted_quota(config, &holding.plugin).as_ref(),
        );
    }
    if usages.is_empty() {
        let _ = writeln!(
            out,
            "no plugin has state in {}",
            database.folder().display()
        );
    }
    print(&out);
    Ok(ExitCode::SUCCESS)
}

fn get(
    config: &Config,
    plugin: &str,
    key: String,
    location: &KeyLocation,
) -> anyhow::Result<ExitCode> {
    let database = open_database(config)?;
    let caller = location.caller.as_deref().map(parse_caller).transpose()?;
    let bucket = StateBucket::new(
        StateOwner {
            plugin: plugin.into(),
            caller,
        },
        location.bucket.as_deref().unwrap_or_default(),
    )?;
    let missing = anyhow!("{plugin} has no key {key:?} in bucket {}", bucket.name());
    if !database.has_file() {
        return Err(missing);
    }
    let values = block_on(async {
        with_error_details(
            database
                .get(&bucket, vec![key], Arc::new(UnmeteredPayer))
                .await,
        )
    })?;
    let Some(value) = values.into_iter().next().flatten() else {
        return Err(missing);
    };
    print_bytes(&value);
    Ok(ExitCode::SUCCESS)
}

fn clear(config: &Config, plugin: &str, part: &ClearScope) -> anyhow::Result<ExitCode> {
    let database = open_database(config)?;
    let cleared = if database.has_file() {
        let caller = part.caller.as_deref();
        let bucket = part.bucket.as_deref();
        block_on(async { with_error_details(database.clear(plugin, caller, bucket).await) })?
    } else {
        QuotaUsage::default()
    };
    print(&format!("deleted {}\n", format_usage(cleared)));
    Ok(ExitCode::SUCCESS)
}

fn write_usage(out: &mut String, usage: &OwnerUsage, quota: Option<&StateGrant>) {
    let _ = write!(out, "{}", clean_line(&usage.plugin, MAX_NAME_BYTES));
    if let Some(caller) = &usage.caller {
        let _ = write!(out, " for {}", clean_line(caller, MAX_NAME_BYTES));
    }
    let _ = write!(out, "  {}", format_usage(usage.total));
    let _ =
        match quota.filter(|quota| (quota.scope == StateScope::Caller) == usage.caller.is_some()) {
            Some(quota) => {
                writeln!(
                    out,
                    ", of at most {} keys and {}",
                    format_thousands(quota.keys),
                    quota.size.display().iec()
                )
            }
            None if usage.plugin.starts_with(budget::OWNER_PREFIX) => {
                writeln!(out, ", the used part of a budget")
            }
            None => writeln!(out, ", which its grant does not allow"),
        };
    for (name, used) in &usage.buckets {
        let _ = writeln!(
            out,
            "    {}  {}",
            clean_line(name, MAX_NAME_BYTES),
            format_usage(*used)
        );
    }
}

fn format_usage(used: QuotaUsage) -> String {
    let keys = if used.keys == 1 { "key" } else { "keys" };
    format!(
        "{} {keys}, {}",
        format_thousands(used.keys),
        ByteSize::b(used.bytes).display().iec()
    )
}

fn usage_json(usage: &OwnerUsage, config: &Config) -> Value {
    let used = |used: &QuotaUsage| json!({"keys": used.keys, "bytes": used.bytes});
    let buckets: serde_json::Map<_, _> = usage
        .buckets
        .iter()
        .map(|(name, bucket)| (name.clone(), used(bucket)))
        .collect();
    let QuotaUsage { keys, bytes } = usage.total;
    json!({
        "plugin": usage.plugin,
        "caller": usage.caller,
        "keys": keys,
        "bytes": bytes,
        "buckets": buckets,
        "quota": granted_quota(config, &usage.plugin),
    })
}
