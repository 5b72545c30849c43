//! A handler of WASI 0.3 at work. Its response is there when its function returns, and its body comes afterwards, while the
//! guest and the host's streams go on.

use std::future::poll_fn;

use tokio::sync::oneshot;
use wasmtime::Store;
use wasmtime_wasi_http::p3::Request;
use wasmtime_wasi_http::p3::bindings::Service;
use wasmtime_wasi_http::p3::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{WasiBody, WasiHttpView as _};

use crate::state::StoreState;

/// What a handler gave as its response.
type ServedResponse = Result<http::Response<WasiBody>, ErrorCode>;

/// Gives a handler a request. Ends when the response was `heard` and all tasks of the guest have ended.
pub(super) async fn serve(
    service: &Service,
    store: &mut Store<StoreState>,
    message: http::Request<WasiBody>,
    given: oneshot::Sender<ServedResponse>,
    heard: oneshot::Receiver<()>,
) -> wasmtime::Result<()> {
    // Whether the guest reads all of it concerns nobody.
    let (request, _read) = Request::from_http(store.data_mut().http().hooks, message);
    let serving = store.run_concurrent(async move |accessor| {
        let response = match service.handle(accessor, request).await? {
            Ok(response) => Ok(accessor.with(|access| response.into_http(access, async { Ok(()) }))?),
            Err(code) => Err(code),
        };
        drop(given.send(response));
        let _dropped = heard.await;
        poll_fn(|context| accessor.poll_no_interesting_tasks(context)).await;
        wasmtime::error::Ok(())
    });
    serving.await?
}
