//! A message of a server, parsed only as far as a caller needs it.

use std::borrow::Cow;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::work::Work;

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<Called<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(default, rename = "isError")]
    is_error: bool,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

/// A message, of which only the ID is parsed.
#[derive(Deserialize)]
struct Id {
    id: Option<u64>,
}

/// Returns the ID of the request that this message responds to; `None` for a notification.
pub(crate) fn id(message: &[u8]) -> Result<Option<u64>> {
    Ok(serde_json::from_slice::<Id>(message)
        .with_context(|| shown(message))?
        .id)
}

/// Checks that a call has the expected result.
pub(crate) fn check(message: &[u8], work: &Work) -> Result<()> {
    let answer: Answer<'_> = serde_json::from_slice(message).with_context(|| shown(message))?;
    if let Some(error) = answer.error {
        bail!("a call of {} got the error {error}", work.tool());
    }
    let id = answer.id.context("no id")?;
    let result = answer.result.context("no result")?;
    let [block] = result.content.as_slice() else {
        bail!("not one block: {}", shown(message))
    };
    ensure!(
        !result.is_error,
        "a call of {} failed: {}",
        work.tool(),
        block.text
    );
    work.check(id, &block.text)
}

/// Returns the start of an unexpected message.
fn shown(message: &[u8]) -> String {
    let (start, _) = message.split_at(message.len().min(300));
    format!("an unexpected message: {}", String::from_utf8_lossy(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_answer_passes() {
        let work = Work::burn(1000);
        let answer = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,{result}}}"#).into_bytes();
        let right =
            answer(r#""result":{"content":[{"type":"text","text":"429183498"}],"_meta":{}}"#);
        assert_eq!(id(&right).unwrap(), Some(1));
        check(&right, &work).unwrap();
        for wrong in [
            r#""result":{"content":[{"type":"text","text":"1"}]}"#,
            r#""result":{"content":[{"type":"text","text":"429183498"}],"isError":true}"#,
            r#""result":{"content":[]}"#,
            r#""error":{"code":-32602,"message":"no"}"#,
        ] {
            assert!(check(&answer(wrong), &work).is_err(), "{wrong}");
        }
        assert_eq!(
            id(br#"{"jsonrpc":"2.0","method":"notifications/x"}"#).unwrap(),
            None
        );
        assert!(id(b"hello").is_err());
    }
}
