//! The network of a guest without a grant: linked, because runtimes import it whether a tool uses it or not, and closed.

use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// Refuses every request before a name is looked up.
pub(super) struct NoNetwork;

type Sending = Box<dyn Future<Output = Result<Sent, Error>> + Send>;
type Sent = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for NoNetwork {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Sending {
        let origin = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        tracing::info!(origin, "denied an outgoing request: no plugin may use the network");
        Box::new(async { Err(Error::HttpRequestDenied) })
    }
}
