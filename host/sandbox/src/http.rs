//! HTTP of a guest: always linked, because runtimes import it whether a tool uses it or not, and always denied.

use std::sync::Arc;

use toolbay_model::text::line;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::secret::Secrets;

/// Bytes of names and values in one set of fields; servers commonly accept no more.
pub(crate) const FIELDS: usize = 16 << 10;

/// Bytes of a body that the host holds until they are sent, in one piece.
pub(crate) const BODY: usize = 16 << 10;

/// Longest part of a host's name that the log shows, in bytes.
const ORIGIN: usize = 300;

/// Denies every request before its host name is resolved.
pub(crate) struct NoNetwork {
    /// The guest chooses the name, so it may contain what the log must not.
    pub(crate) secrets: Arc<Secrets>,
}

type Sending = Box<dyn Future<Output = Result<Sent, Error>> + Send>;
type Sent = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for NoNetwork {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        1
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Sending {
        let origin = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let origin = line(&self.secrets.scrub(&origin), ORIGIN);
        tracing::info!(target: "toolbay_sandbox::denied", origin, "HTTP request denied: plugins have no network access");
        Box::new(async { Err(Error::HttpRequestDenied) })
    }
}
