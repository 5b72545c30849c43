//! Programs that have credentials (`docker-credential-NAME`).

use std::io;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;
use toolbay_model::text::clean_line;

use crate::credential::RegistryCredential;
use crate::registry_error::{MAX_SHOWN_BYTES, RegistryError};

/// Maximum output of a program, in bytes. Tokens have some kilobytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// What a program says if it has no credentials for a registry.
const NOT_FOUND: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

/// Asks the program `docker-credential-NAME` for the credentials of a registry. It has `limit` time
/// to answer. Returns `None` if it has none.
///
/// # Errors
///
/// The program does not exist, fails, takes too long, or prints something else.
pub(crate) async fn ask_helper(
    name: &str,
    registry: &str,
    limit: Duration,
) -> Result<Option<RegistryCredential>, RegistryError> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || !name.chars().all(is_known) {
        return Err(RegistryError::Credentials(format!(
            "{:?} is not the name of a credential helper",
            clean_line(name, MAX_SHOWN_BYTES)
        )));
    }
    let program = format!("docker-credential-{name}");
    let failed = |why: &str| {
        RegistryError::Credentials(format!("{program}, which has the credentials: {why}"))
    };
    let (succeeded, output) = timeout(limit, run(&program, registry))
        .await
        .map_err(|_| failed("it did not answer in time"))?
        .map_err(|why| failed(&why.to_string()))?;
    if output.len() as u64 > MAX_OUTPUT_BYTES {
        return Err(failed("it printed too much"));
    }
    let text = String::from_utf8_lossy(&output);
    if !succeeded {
        if text.to_ascii_lowercase().contains(NOT_FOUND) {
            return Ok(None);
        }
        // A program that fails prints its reason, and no secret, to standard output.
        return Err(failed(&clean_line(text.trim(), MAX_SHOWN_BYTES)));
    }
    let answer: HelperAnswer = serde_json::from_str(&text)
        .map_err(|_| failed("it did not print a JSON object with Username and Secret"))?;
    if answer.secret.is_empty() {
        return Ok(None);
    }
    Ok(Some(RegistryCredential::new(
        answer.username,
        answer.secret,
    )))
}

/// Runs a program. Returns whether it succeeded, and its output up to one byte more than the limit.
/// It is killed when the future is dropped.
async fn run(program: &str, registry: &str) -> io::Result<(bool, Vec<u8>)> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read it can still answer.
        let _unread = input.write_all(format!("{registry}\n").as_bytes()).await;
    }
    let output = match child.stdout.take() {
        Some(stdout) => read_bounded(stdout).await?,
        None => Vec::new(),
    };
    if output.len() as u64 > MAX_OUTPUT_BYTES {
        // It may wait until someone reads the rest.
        return Ok((false, output));
    }
    Ok((child.wait().await?.success(), output))
}

async fn read_bounded(from: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    from.take(MAX_OUTPUT_BYTES + 1)
        .read_to_end(&mut output)
        .await?;
    Ok(output)
}
