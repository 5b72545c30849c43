//! The network of a guest without a grant: linked, because runtimes import it whether a tool uses it or not, and closed.

use std::sync::Arc;

use toolbay_model::text::line;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::secret::Secrets;
use crate::wasi::BODY;

/// How much of a host's name the log shows.
const ORIGIN: usize = 300;

/// Refuses every request before a name is looked up.
pub(crate) struct NoNetwork {
    /// What the log must not hold: a guest chooses the name.
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
