//! Parsing of form bodies, within bounds.

use std::time::Duration;

use axum::body::{Body, Bytes};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::form::FieldValues;

/// Maximum number of fields of a form.
const MAX_FORM_FIELDS: usize = 200;

/// Reads and parses a form of at most `max_bytes` bytes, which must arrive within `time_limit`.
///
/// # Errors
///
/// Returns the response status and the reason.
pub(crate) async fn read_form(
    headers: &HeaderMap,
    body: Body,
    max_bytes: usize,
    time_limit: Duration,
) -> Result<FieldValues, (StatusCode, &'static str)> {
    let form = b"application/x-www-form-urlencoded";
    if !headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(form))
    {
        return Err((
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The console accepts only forms.",
        ));
    }
    let bytes = read_body(body, max_bytes, time_limit).await?;
    parse_form(&bytes).ok_or((
        StatusCode::BAD_REQUEST,
        "The form has too many fields, or one of them twice.",
    ))
}

/// Reads a body of at most `max_bytes` bytes, which must arrive within `time_limit`.
///
/// # Errors
///
/// Returns the response status and the reason.
pub(crate) async fn read_body(
    body: Body,
    max_bytes: usize,
    time_limit: Duration,
) -> Result<Bytes, (StatusCode, &'static str)> {
    let reading = Limited::new(body, max_bytes).collect();
    let result = tokio::time::timeout(time_limit, reading).await;
    let collected = result.map_err(|_| {
        (
            StatusCode::REQUEST_TIMEOUT,
            "The form did not arrive in time.",
        )
    })?;
    let bytes = collected.map_err(|error| {
        if error.is::<LengthLimitError>() {
            (StatusCode::PAYLOAD_TOO_LARGE, "The form is too large.")
        } else {
            (StatusCode::BAD_REQUEST, "The form could not be read.")
        }
    })?;
    Ok(bytes.to_bytes())
}

fn parse_form(bytes: &Bytes) -> Option<FieldValues> {
    let mut values = FieldValues::new();
    for (name, value) in form_urlencoded::parse(bytes) {
        if values.len() >= MAX_FORM_FIELDS
            || values
                .insert(name.into_owned(), value.into_owned())
                .is_some()
        {
            return None;
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_mins(1);

    async fn status(kind: &str, body: String) -> Option<StatusCode> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
        read_form(&headers, body.into(), 1_000, TIME)
            .await
            .err()
            .map(|(status, _)| status)
    }

    #[tokio::test]
    async fn forms_are_bounded() {
        let form = "application/x-www-form-urlencoded";
        assert_eq!(status(form, "a=1&b=%3Cx%3E".into()).await, None);
        assert_eq!(
            status("application/json", "{}".into()).await,
            Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
        assert_eq!(
            status("multipart/form-data", String::new()).await,
            Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
        assert_eq!(
            status(form, "x".repeat(1_001)).await,
            Some(StatusCode::PAYLOAD_TOO_LARGE)
        );
        assert_eq!(
            status(form, "a=1&a=2".into()).await,
            Some(StatusCode::BAD_REQUEST)
        );
        let many: Vec<String> = (0..300).map(|n| format!("{n}=")).collect();
        assert_eq!(
            status(form, many.join("&").chars().take(500).collect()).await,
            None
        );
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, form.parse().unwrap())]);
        let read = read_form(&headers, many.join("&").into(), 10_000, TIME).await;
        assert_eq!(read.unwrap_err().0, StatusCode::BAD_REQUEST);
    }
    #[tokio::test]
    async fn form_that_does_not_arrive_times_out() {
        let headers = HeaderMap::from_iter([(
            CONTENT_TYPE,
            "application/x-www-form-urlencoded".parse().unwrap(),
        )]);
        let body =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        let refused = read_form(&headers, body, 1_000, Duration::from_millis(1))
            .await
            .unwrap_err();
        assert_eq!(refused.0, StatusCode::REQUEST_TIMEOUT);
    }
}
