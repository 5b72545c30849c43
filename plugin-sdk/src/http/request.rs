//! HTTP requests.

use std::time::Duration;

use serde::Serialize;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    Fields, FutureIncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
};
use wasip2::io::streams::StreamError;

use super::error::Error;
use super::response::Response;

/// Maximum size of one write of the body, in bytes.
const WRITE_CHUNK_BYTES: usize = 4096;

/// A request that has not been sent yet.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    timeout: Option<Duration>,
}

impl Request {
    /// Creates a request with this method. The URL must begin with `https://` or `http://`.
    pub fn new(method: &str, url: &str) -> Self {
        Self {
            method: method.to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            timeout: None,
        }
    }

    /// Adds a header. `Host` and `Content-Length` are set automatically.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    /// Sets the timeout. It applies separately to the connection, to the beginning of the response,
    /// and to each further piece of the response. The default is the remaining time of the call.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends the request without a body.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if there is no response. A response with any status is a success: see
    /// [`Response::error_for_status`].
    pub fn send(self) -> Result<Response, Error> {
        // For methods that usually have a body, set `Content-Length: 0`: some servers reject the
        // request otherwise (RFC 9110, 8.6).
        let empty = ["POST", "PUT", "PATCH"].contains(&self.method.as_str());
        self.send_with(empty.then_some(&[]))
    }

    /// Sends the request with this body.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`send`](Self::send).
    pub fn send_bytes(self, body: &[u8]) -> Result<Response, Error> {
        self.send_with(Some(body))
    }

    /// Sends the request with this JSON as its body.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`send`](Self::send), and [`Error::Invalid`] if the value cannot
    /// be serialized as JSON.
    pub fn send_json(self, value: &impl Serialize) -> Result<Response, Error> {
        let body = serde_json::to_vec(value).map_err(|error| Error::Invalid(error.to_string()))?;
        self.header("content-type", "application/json")
            .send_with(Some(&body))
    }

    fn send_with(mut self, body: Option<&[u8]>) -> Result<Response, Error> {
        let (scheme, rest) = match self.url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            _ => {
                return Err(invalid_request(
                    "its URL must begin with https:// or http://",
                ));
            }
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        if let Some(body) = body {
            self.headers.push((
                "content-length".to_owned(),
                body.len().to_string().into_bytes(),
            ));
        }
        let headers = Fields::from_list(&self.headers)
            .map_err(|_| invalid_request("the host refuses one of its headers"))?;
        let request = OutgoingRequest::new(headers);
        let method = match self.method.as_str() {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            "PATCH" => Method::Patch,
            other => Method::Other(other.to_owned()),
        };
        // The default method is GET.
        if !matches!(method, Method::Get) {
            request
                .set_method(&method)
                .map_err(|()| invalid_request("its method is no HTTP method"))?;
        }
        request
            .set_scheme(Some(&scheme))
            .map_err(|()| invalid_request("its scheme is unknown"))?;
        request
            .set_authority(Some(authority))
            .map_err(|()| invalid_request("the host in its URL is invalid"))?;
        request
            .set_path_with_query(Some(&path))
            .map_err(|()| invalid_request("the path in its URL is invalid"))?;
        // Each handle costs a host call, so a request without a body does not create one.
        let outgoing = body
            .map(|body| request.body().map(|outgoing| (outgoing, body)))
            .transpose();
        let outgoing = outgoing.map_err(|()| invalid_request("it has no body"))?;
        let answering = handle(request, self.options()?).map_err(|code| Error::from_code(&code))?;
        if let Some((outgoing, body)) = outgoing {
            // The host reads the body while it sends the request.
            write_body(outgoing, body, &answering)?;
        }
        Response::receive(&answering)
    }

    fn options(&self) -> Result<Option<RequestOptions>, Error> {
        let Some(timeout) = self.timeout else {
            return Ok(None);
        };
        let (options, timeout) = (
            RequestOptions::new(),
            u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
        );
        let set = [
            options.set_connect_timeout(Some(timeout)),
            options.set_first_byte_timeout(Some(timeout)),
            options.set_between_bytes_timeout(Some(timeout)),
        ];
        if set.iter().any(Result::is_err) {
            Err(invalid_request("the host refuses its timeout"))
        } else {
            Ok(Some(options))
        }
    }
}

/// Writes the body. A server that does not need the whole body may respond before its end.
fn write_body(
    outgoing: OutgoingBody,
    body: &[u8],
    answering: &FutureIncomingResponse,
) -> Result<(), Error> {
    let stream = outgoing
        .write()
        .map_err(|()| invalid_request("it has no body"))?;
    let answered = answering.subscribe();
    for piece in body.chunks(WRITE_CHUNK_BYTES) {
        match stream.blocking_write_and_flush(piece) {
            Ok(()) => {}
            Err(StreamError::Closed | StreamError::LastOperationFailed(_)) => {
                // The response, or its error, is more specific.
                answered.block();
                return Ok(());
            }
        }
    }
    drop(stream);
    drop(OutgoingBody::finish(outgoing, None));
    Ok(())
}

fn invalid_request(what: &str) -> Error {
    Error::Invalid(what.to_owned())
}
