//! A plugin that does with its state what a test asks for, by both drafts of `wasi:keyvalue`.

use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;

use self::draft::wasi::keyvalue::{atomics, batch, store};
use self::draft2::wasi::keyvalue::{atomics as atomics2, store as store2};

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated code"
)]
#[allow(
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod draft {
    wit_bindgen::generate!({ path: "wit/draft", world: "keeper" });
}

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated code"
)]
#[allow(
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod draft2 {
    wit_bindgen::generate!({ path: "wit/draft2", world: "keeper" });
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// The bucket.
    #[serde(default)]
    bucket: String,
    /// What to do, one after the other.
    steps: Vec<Step>,
    /// Whether to fail if a step does.
    #[serde(default)]
    strict: bool,
}

/// One operation.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Step {
    Get(String),
    Set(String, String),
    /// A key, and the bytes of its value.
    Fill(String, usize),
    Delete(String),
    Exists(String),
    /// Keys from a cursor on.
    List(Option<u64>),
    /// The number of all keys, page by page.
    Count,
    Increment(String, u64),
    SetMany(Vec<(String, String)>),
    /// So many keys with a prefix, in one batch.
    FillMany(String, usize),
    GetMany(Vec<String>),
    DeleteMany(Vec<String>),
    /// The number of all keys, by the second draft.
    Count2,
    Increment2(String, i64),
    /// Appends to a value as often as said, by comparing and swapping.
    Append(String, String, u32),
    /// Swaps a value after another one was set: what the failed comparison sees then.
    Clash(String),
    /// Opens the bucket so many times, and keeps all of them open.
    Hoard(usize),
    /// Sets the same key for ever.
    Forever(String),
    /// Writes a line to the log.
    Say(String),
}

#[derive(Serialize, JsonSchema)]
struct Done {
    /// What each step said.
    said: Vec<String>,
}

/// Does something with the plugin's state.
#[tool]
fn keep(asked: Asked) -> Result<Json<Done>> {
    let bucket = store::open(&asked.bucket).map_err(|error| Error::msg(words(error)))?;
    let bucket2 = store2::open(&asked.bucket).map_err(|error| Error::msg(words2(error)))?;
    let mut said = Vec::new();
    for step in asked.steps {
        let result = step.run(&asked.bucket, &bucket, &bucket2);
        match result {
            Err(words) if asked.strict => return Err(Error::msg(words)),
            Ok(words) | Err(words) => said.push(words),
        }
    }
    Ok(Json(Done { said }))
}

impl Step {
    fn run(
        self,
        name: &str,
        bucket: &store::Bucket,
        bucket2: &store2::Bucket,
    ) -> Result<String, String> {
        let fine = |()| "fine".to_owned();
        match self {
            Self::Get(key) => bucket.get(&key).map(value).map_err(words),
            Self::Set(key, value) => bucket.set(&key, value.as_bytes()).map(fine).map_err(words),
            Self::Fill(key, bytes) => bucket
                .set(&key, &vec![b'x'; bytes])
                .map(fine)
                .map_err(words),
            Self::Delete(key) => bucket.delete(&key).map(fine).map_err(words),
            Self::Exists(key) => bucket
                .exists(&key)
                .map(|found| found.to_string())
                .map_err(words),
            Self::List(cursor) => {
                let page = bucket.list_keys(cursor).map_err(words)?;
                Ok(format!("{} {:?}", page.keys.join(" "), page.cursor))
            }
            Self::Count => {
                let (mut count, mut cursor) = (0, None);
                loop {
                    let page = bucket.list_keys(cursor).map_err(words)?;
                    count += page.keys.len();
                    cursor = page.cursor;
                    if cursor.is_none() {
                        return Ok(count.to_string());
                    }
                }
            }
            Self::Increment(key, delta) => atomics::increment(bucket, &key, delta)
                .map(|sum| sum.to_string())
                .map_err(words),
            Self::SetMany(entries) => {
                let entries: Vec<_> = entries
                    .into_iter()
                    .map(|(key, value)| (key, value.into_bytes()))
                    .collect();
                batch::set_many(bucket, &entries).map(fine).map_err(words)
            }
            Self::FillMany(prefix, count) => {
                let entries: Vec<_> = (0..count)
                    .map(|n| (format!("{prefix}{n:05}"), vec![]))
                    .collect();
                batch::set_many(bucket, &entries).map(fine).map_err(words)
            }
            Self::GetMany(keys) => {
                let found = batch::get_many(bucket, &keys).map_err(words)?;
                let shown = |(key, found): (String, Vec<u8>)| {
                    format!("{key}={}", String::from_utf8_lossy(&found))
                };
                Ok(found
                    .into_iter()
                    .map(|entry| entry.map_or("none".to_owned(), shown))
                    .collect::<Vec<_>>()
                    .join(" "))
            }
            Self::DeleteMany(keys) => batch::delete_many(bucket, &keys).map(fine).map_err(words),
            Self::Count2 => {
                let (mut count, mut cursor) = (0, None);
                loop {
                    let page = bucket2.list_keys(cursor.as_deref()).map_err(words2)?;
                    count += page.keys.len();
                    cursor = page.cursor;
                    if cursor.is_none() {
                        return Ok(count.to_string());
                    }
                }
            }
            Self::Increment2(key, delta) => atomics2::increment(bucket2, &key, delta)
                .map(|sum| sum.to_string())
                .map_err(words2),
            Self::Append(key, text, times) => {
                for _ in 0..times {
                    append(bucket2, &key, &text)?;
                }
                Ok("fine".to_owned())
            }
            Self::Clash(key) => {
                let cas = atomics2::Cas::new(bucket2, &key).map_err(words2)?;
                bucket.set(&key, b"theirs").map_err(words)?;
                match atomics2::swap(cas, b"ours") {
                    Ok(()) => Err("the swap did not notice".to_owned()),
                    Err(atomics2::CasError::StoreError(error)) => Err(words2(error)),
                    Err(atomics2::CasError::CasFailed(cas)) => {
                        let current = cas.current().map(value).map_err(words2)?;
                        atomics2::swap(cas, b"ours").map_err(|error| format!("{error:?}"))?;
                        Ok(current)
                    }
                }
            }
            Self::Hoard(count) => {
                let open: Result<Vec<_>, _> = (0..count).map(|_| store::open(name)).collect();
                open.map(|open| open.len().to_string()).map_err(words)
            }
            Self::Forever(key) => loop {
                bucket.set(&key, b"again").map_err(words)?;
            },
            Self::Say(text) => {
                info!("{text}");
                Ok("fine".to_owned())
            }
        }
    }
}

/// Appends to a value, whoever else does the same.
fn append(bucket: &store2::Bucket, key: &str, text: &str) -> Result<(), String> {
    let mut cas = atomics2::Cas::new(bucket, key).map_err(words2)?;
    loop {
        let mut now = cas.current().map_err(words2)?.unwrap_or_default();
        now.extend_from_slice(text.as_bytes());
        match atomics2::swap(cas, &now) {
            Ok(()) => return Ok(()),
            Err(atomics2::CasError::CasFailed(newer)) => cas = newer,
            Err(atomics2::CasError::StoreError(error)) => return Err(words2(error)),
        }
    }
}

fn value(value: Option<Vec<u8>>) -> String {
    match value {
        None => "none".to_owned(),
        Some(value) if value.len() > 100 => format!("{} bytes", value.len()),
        Some(value) => format!("some {}", String::from_utf8_lossy(&value)),
    }
}

fn words(error: store::Error) -> String {
    match error {
        store::Error::NoSuchStore => "no such store".to_owned(),
        store::Error::AccessDenied => "access denied".to_owned(),
        store::Error::Other(words) => words,
    }
}

fn words2(error: store2::Error) -> String {
    match error {
        store2::Error::NoSuchStore => "no such store".to_owned(),
        store2::Error::AccessDenied => "access denied".to_owned(),
        store2::Error::Other(words) => words,
    }
}

export!(keep);
