//! `toolbay token`: generates a bearer token and the lines of configuration that accept it.

use std::io::{Write as _, stderr};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest as _, Sha256};

use super::output::print;

/// Number of random bytes in a token, as many as in its hash.
const TOKEN_BYTES: usize = 32;

pub(super) fn run(name: &str) -> anyhow::Result<ExitCode> {
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
    print(&format!(
        "[[http.tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n# tools = [\"calculate_*\"]    # default: every tool\n"
    ));
    Ok(ExitCode::SUCCESS)
}
