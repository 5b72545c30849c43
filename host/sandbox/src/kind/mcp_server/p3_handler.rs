//! Runs a WASI 0.3 HTTP handler. The response is available when its function returns. The body
//! follows while the guest and the host's streams continue to run.

use std::future::poll_fn;

use tokio::sync::oneshot;
use wasmtime::Store;
use wasmtime_wasi_http::p3::Request;
use wasmtime_wasi_http::p3::bindings::Service;
use wasmtime_wasi_http::p3::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{WasiBody, WasiHttpView as _};

use crate::store::state::StoreState;

/// The handler's response or its error code.
type HandlerResponse = Result<http::Response<WasiBody>, ErrorCode>;

/// Runs a handler with a request, and sends its response to `response_sender`. Returns when the
/// other end of `response_read` is dropped, because the response was read, and all tasks of the
/// guest have ended.
pub(super) async fn run_handler(
    service: &Service,
    store: &mut Store<StoreState>,
    message: http::Request<WasiBody>,
    response_sender: oneshot::Sender<HandlerResponse>,
    response_read: oneshot::Receiver<()>,
) -> wasmtime::Result<()> {
    // The host does not need to know whether the guest reads the whole request.
    let (request, _read) = Request::from_http(store.data_mut().http().hooks, message);
    let task = store.run_concurrent(async move |accessor| {
        let response = match service.handle(accessor, request).await? {
            Ok(response) => {
                Ok(accessor.with(|access| response.into_http(access, async { Ok(()) }))?)
            }
            Err(code) => Err(code),
        };
        drop(response_sender.send(response));
        let _dropped = response_read.await;
        poll_fn(|context| accessor.poll_no_interesting_tasks(context)).await;
        wasmtime::error::Ok(())
    });
    task.await?
}
