//! HTTP responses.

use std::cell::OnceCell;
use std::io::{self, Read};

use serde::de::DeserializeOwned;
use wasip2::http::types::{
    FutureIncomingResponse, IncomingBody, IncomingResponse, http_error_code,
};
use wasip2::io::streams::{InputStream, StreamError};

use super::error::Error;

/// Maximum size of one read of the body, in bytes.
const READ_CHUNK_BYTES: u64 = 64 << 10;

/// A response whose body has not been read. [`Read`] reads the body piece by piece.
#[derive(Debug)]
pub struct Response {
    status: u16,
    head: IncomingResponse,
    /// The headers, fetched on first use. Few plugins read them, and fetching them costs three host
    /// calls.
    headers: OnceCell<Vec<(String, Vec<u8>)>>,
    /// The stream of the body. It precedes the body because it is a child resource, which must be
    /// dropped first.
    stream: Option<InputStream>,
    _body: IncomingBody,
    /// The bytes of the last read from the stream.
    buffer: Vec<u8>,
    position: usize,
}

impl Response {
    /// Waits for the response.
    pub(super) fn receive(answering: &FutureIncomingResponse) -> Result<Self, Error> {
        answering.subscribe().block();
        let head = match answering.get() {
            Some(Ok(Ok(head))) => head,
            Some(Ok(Err(code))) => return Err(Error::from_code(&code)),
            Some(Err(())) | None => {
                return Err(Error::Other("the host has no response".to_owned()));
            }
        };
        let status = head.status();
        let no_body = || Error::Other("the host has no body".to_owned());
        let body = head.consume().map_err(|()| no_body())?;
        let stream = body.stream().map_err(|()| no_body())?;
        let headers = OnceCell::new();
        Ok(Self {
            status,
            head,
            headers,
            stream: Some(stream),
            _body: body,
            buffer: Vec::new(),
            position: 0,
        })
    }

    /// Returns the status, such as 200.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the value of the first header with this name, ignoring case. Returns `None` if there
    /// is no such header, or if its value is not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.headers.get_or_init(|| self.head.headers().entries());
        let (_, value) = headers
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// Returns the response if its status is below 400.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Status`] otherwise.
    pub fn error_for_status(self) -> Result<Self, Error> {
        if self.status < 400 {
            Ok(self)
        } else {
            Err(Error::Status(self.status))
        }
    }

    /// Reads the whole body.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails before the end of the body.
    pub fn bytes(mut self) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while self.fill_buffer()? {
            if all.is_empty() {
                all = std::mem::take(&mut self.buffer);
            } else {
                all.append(&mut self.buffer);
            }
        }
        Ok(all)
    }

    /// Reads the whole body as text. Bytes that are not UTF-8 become `U+FFFD`.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails before the end of the body.
    pub fn text(self) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    /// Reads the whole body as JSON and deserializes it.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails before the end of the body, or if the body is not
    /// JSON of this type.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        serde_json::from_slice(&self.bytes()?)
            .map_err(|error| Error::Other(format!("its body is unexpected: {error}")))
    }

    /// Replaces the buffered bytes with the next ones. Returns false at the end of the body.
    fn fill_buffer(&mut self) -> Result<bool, Error> {
        (self.buffer, self.position) = (Vec::new(), 0);
        let Some(stream) = &self.stream else {
            return Ok(false);
        };
        match stream.blocking_read(READ_CHUNK_BYTES) {
            Ok(read) => self.buffer = read,
            Err(StreamError::Closed) => {
                self.stream = None;
                return Ok(false);
            }
            Err(StreamError::LastOperationFailed(error)) => {
                self.stream = None;
                let code = http_error_code(&error);
                return Err(code.map_or_else(
                    || Error::Other(error.to_debug_string()),
                    |code| Error::from_code(&code),
                ));
            }
        }
        Ok(true)
    }
}

impl Read for Response {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.position == self.buffer.len() {
            if !self.fill_buffer().map_err(io::Error::other)? {
                return Ok(0);
            }
        }
        let rest = self.buffer.get(self.position..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.position += count;
        Ok(count)
    }
}
