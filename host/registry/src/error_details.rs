//! Answers that refuse a request.

use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode};
use serde::Deserialize;
use toolbay_model::text::clean_line;
use toolbay_outgoing::ResponseBody;

use crate::protected_repository::ProtectedRepository;
use crate::registry_error::{MAX_SHOWN_BYTES, RegistryError};
use crate::transport::read_body;

/// Maximum size of the body of an error, in bytes. A longer one is not read.
pub(crate) const MAX_ERROR_BYTES: u64 = 64 << 10;

#[derive(Deserialize)]
struct ErrorDocument {
    #[serde(default)]
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// Returns the registry's own words about an error, after a semicolon. Empty if there are none.
pub(crate) async fn error_details(response: Response<ResponseBody>, host: &str) -> String {
    let Ok(body) = read_body(response, host, "the error", MAX_ERROR_BYTES).await else {
        return String::new();
    };
    let document: Option<ErrorDocument> = serde_json::from_slice(&body).ok();
    let entry = document.and_then(|document| document.errors.into_iter().next());
    entry.map_or_else(String::new, |entry| {
        let text = format!("{} {}", entry.code, entry.message);
        format!("; it says {:?}", clean_line(text.trim(), MAX_SHOWN_BYTES))
    })
}

/// Returns the error for a status. `what` is what was asked for.
pub(crate) async fn status_error(
    response: Response<ResponseBody>,
    host: &str,
    target: &ProtectedRepository<'_>,
    what: &str,
) -> RegistryError {
    let status = response.status();
    match status {
        StatusCode::NOT_FOUND => RegistryError::NotFound {
            what: what.to_owned(),
        },
        StatusCode::UNAUTHORIZED if host == target.registry => {
            let details = error_details(response, host).await;
            target.refusal(true, details)
        }
        StatusCode::FORBIDDEN => RegistryError::Forbidden {
            registry: host.to_owned(),
            action: target.access.verb(),
            repository: target.repository.to_owned(),
            details: error_details(response, host).await,
        },
        StatusCode::TOO_MANY_REQUESTS => RegistryError::TooManyRequests {
            registry: host.to_owned(),
            advice: retry_advice(response.headers()),
        },
        status => RegistryError::Status {
            host: host.to_owned(),
            status: status.as_u16(),
            details: error_details(response, host).await,
        },
    }
}

/// Returns when to try again, by the header `Retry-After`: seconds or a date.
fn retry_advice(headers: &HeaderMap) -> String {
    let value = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    match value.map(|value| (value, value.parse::<u64>())) {
        Some((_, Ok(seconds))) => format!("try again in {seconds} s"),
        Some((date, Err(_))) => format!("try again after {}", clean_line(date, MAX_SHOWN_BYTES)),
        None => "try again later".to_owned(),
    }
}
