//! Conversion of library errors to [`SendError`].

use std::error::Error;
use std::io;

use crate::error::SendError;
use crate::tls;

/// Classifies an error of hyper. `body` is true if the head of the response had already arrived.
pub(crate) fn classify_hyper(error: &hyper::Error, body: bool) -> SendError {
    let details = error_chain(error);
    let mut source: Option<&(dyn Error + 'static)> = error.source();
    while let Some(cause) = source {
        if let Some(own) = cause.downcast_ref::<SendError>() {
            return own.clone();
        }
        if let Some(cause) = cause.downcast_ref::<h2::Error>() {
            return match cause.get_io() {
                Some(cause) => classify_io(cause, body),
                None if cause.is_remote() => SendError::Reset(details),
                None => SendError::Protocol(details),
            };
        }
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return classify_io(cause, body);
        }
        source = cause.source();
    }
    if error.is_parse_too_large() {
        SendError::HeadTooLarge
    } else if error.is_incomplete_message() && body {
        SendError::Incomplete(details)
    } else if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        SendError::Reset(details)
    } else {
        SendError::Protocol(details)
    }
}

fn classify_io(error: &io::Error, body: bool) -> SendError {
    if let Some(own) = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<SendError>())
    {
        return own.clone();
    }
    if let Some(error) = tls::tls_error(error) {
        return tls::classify_tls(error);
    }
    let details = error_chain(error);
    match error.kind() {
        io::ErrorKind::UnexpectedEof if body => SendError::Incomplete(details),
        // The errors of hyper for a malformed chunk, or for too many trailers.
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => SendError::Protocol(details),
        _ => SendError::Reset(details),
    }
}

/// Returns the error and its causes on one line.
fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors already include the message of their cause.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
