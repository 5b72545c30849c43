//! `toolbay token`: generates bearer tokens, and lists and revokes those of the configuration.

mod revocation;

use std::io::{Write as _, stderr};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolbay_mcp::NamePattern;
use toolbay_model::text::clean_line;

use self::revocation::revoke_token;
use super::common::{Common, Listen};
use super::output::{note, print, print_json};
use crate::config::{Config, ConfigError, Token};

/// Number of random bytes in a token, as many as in its hash.
const TOKEN_BYTES: usize = 32;

/// Maximum length of a printed name or pattern, in bytes.
const MAX_NAME_BYTES: usize = 300;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct TokenCommand {
    #[command(subcommand)]
    command: Option<TokenSubcommand>,
    #[command(flatten)]
    new: Option<NewToken>,
}

/// A token to generate.
#[derive(Args, Debug)]
pub(super) struct NewToken {
    /// The name of the token's owner, as shown in the log
    name: String,
    /// Make the owner an operator, who may open the console and read /metrics
    #[arg(long)]
    admin: bool,
    /// The tools that the token may list and call: names, or beginnings of names followed by *, with
    /// commas between them [default: every tool]
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',', value_parser = pattern)]
    tools: Vec<NamePattern>,
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenSubcommand {
    /// List the tokens of the configuration, without their hashes
    List {
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a token from the configuration file
    ///
    /// A running server that receives SIGHUP ends the calls and sessions of the token. The last
    /// token is not removed, because a server without tokens can serve callers without one.
    Revoke {
        /// The name of the token, as `toolbay token list` shows it
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

pub(super) fn run(command: TokenCommand) -> anyhow::Result<ExitCode> {
    match (command.command, command.new) {
        (Some(TokenSubcommand::List { common, json }), _) => list(&load(&common)?, json),
        (Some(TokenSubcommand::Revoke { name, common }), _) => revoke(&load(&common)?, &name),
        (None, Some(new)) => generate(&new),
        (None, None) => {
            Err(ConfigError::new("give the name of the token's owner".to_owned()).into())
        }
    }
}

fn load(common: &Common) -> Result<Config, ConfigError> {
    common.load_config(true, &Listen::default())
}

fn pattern(text: &str) -> Result<NamePattern, String> {
    NamePattern::try_from(text.to_owned())
}

fn generate(new: &NewToken) -> anyhow::Result<ExitCode> {
    let NewToken { name, admin, tools } = new;
    ensure!(
        !name.is_empty()
            && name
                .chars()
                .all(|c| !c.is_control() && c != '"' && c != '\\'),
        "{name:?} is not a valid token name: it must not be empty or contain control characters, quotes or backslashes"
    );
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).context("failed to read random bytes from the system")?;
    let token = format!("toolbay_{}", BASE64.encode(bytes));
    let digest = hex::encode(Sha256::digest(&token));
    // On standard error, so that redirected output contains only the configuration.
    writeln!(
        stderr(),
        "toolbay: token for {name} (it is not shown again): {token}"
    )
    .context("failed to write the token to standard error")?;
    let tools_line = if tools.is_empty() {
        "# tools = [\"calculate_*\"]    # default: every tool".to_owned()
    } else {
        let array: toml_edit::Array = tools.iter().map(ToString::to_string).collect();
        format!("tools = {array}")
    };
    let admin_line = if *admin { "admin = true\n" } else { "" };
    print(&format!(
        "[[http.tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n{admin_line}{tools_line}\n"
    ));
    Ok(ExitCode::SUCCESS)
}

fn list(config: &Config, as_json: bool) -> anyhow::Result<ExitCode> {
    let tokens = &config.http.tokens;
    if as_json {
        let tokens: Vec<Value> = tokens.iter().map(token_json).collect();
        print_json(&json!({"file": config.file, "tokens": tokens}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if tokens.is_empty() {
        note(&format!("{}; it has no tokens", config.source_message()));
    }
    let width = tokens.iter().map(|token| token.name.len()).max();
    let width = width.unwrap_or_default().min(40);
    for token in tokens {
        let name = clean_line(&token.name, MAX_NAME_BYTES);
        let tools = match &token.tools {
            None => "every tool".to_owned(),
            Some(patterns) if patterns.is_empty() => "no tool".to_owned(),
            Some(patterns) => {
                let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
                clean_line(&patterns.join(", "), MAX_NAME_BYTES)
            }
        };
        let admin = if token.admin { "admin" } else { "" };
        print(&format!("{name:width$}  {admin:5}  {tools}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

fn token_json(token: &Token) -> Value {
    json!({"name": token.name, "admin": token.admin, "tools": token.tools})
}

fn revoke(config: &Config, name: &str) -> anyhow::Result<ExitCode> {
    revoke_token(config, name)?;
    print(&format!(
        "removed the token {} from {}\n",
        clean_line(name, MAX_NAME_BYTES),
        config.file.display()
    ));
    note("a running server applies this when it receives SIGHUP");
    Ok(ExitCode::SUCCESS)
}
