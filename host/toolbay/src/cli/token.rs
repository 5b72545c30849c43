//! `toolbay token`: a new bearer token, and what the configuration has to know of it.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest as _, Sha256};

use super::output::{complain, print};

/// Random bytes of a token: as many as its hash has.
const BYTES: usize = 32;

pub(super) fn run(name: &str) -> anyhow::Result<ExitCode> {
    ensure!(!name.is_empty() && name.chars().all(|c| !c.is_control() && c != '"' && c != '\\'), "{name:?} is no name");
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).context("the system gave no random bytes")?;
    let token = format!("toolbay_{}", BASE64.encode(bytes));
    let digest = hex::encode(Sha256::digest(&token));
    // Apart, so that what goes into the file is not the token.
    complain(&format!("the token of {name}, which is not shown again: {token}"));
    print(&format!(
        "[[http.tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n# tools = [\"calculate_*\"]    # absent: all\n"
    ));
    Ok(ExitCode::SUCCESS)
}
