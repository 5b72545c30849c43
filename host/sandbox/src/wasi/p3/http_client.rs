//! Sends requests. As in WASI 0.2, each request is one of the call's
//! [`PendingRequests`](crate::capability::http::pending_requests::PendingRequests).

use std::pin::Pin;

use tokio::sync::oneshot;
use wasmtime::component::{Access, Accessor, Linker, Resource};
use wasmtime_wasi::p2::Pollable as _;
use wasmtime_wasi_http::Error;
use wasmtime_wasi_http::p3::bindings::http::types::{
    DnsErrorPayload, ErrorCode, TlsAlertReceivedPayload,
};
use wasmtime_wasi_http::p3::{Request, Response};

use super::version::versioned;
use crate::capability::http::guest_request::GuestRequest;
use crate::capability::http::pending_requests::{ResponseHandle, ResponseResult};
use crate::store::state::StoreState;

/// Result for the guest: a response or an error code.
type ClientResponse = Result<Resource<Response>, ErrorCode>;

/// A request in progress, and the sender that reports its outcome to the guest.
struct StartedRequest {
    response: ResponseHandle,
    outcome: oneshot::Sender<Result<(), Error>>,
}

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut client = linker.instance(versioned!("wasi:http/client"))?;
    client.func_wrap_concurrent("send", |store, (request,): (Resource<Request>,)| {
        Box::pin(async move { Ok((send(store, request).await?,)) })
    })
}

/// Sends a request. The inner error is an error of the request; the outer error ends the call.
async fn send(
    store: &Accessor<StoreState>,
    request: Resource<Request>,
) -> wasmtime::Result<ClientResponse> {
    let StartedRequest {
        response: mut pending,
        outcome: outcome_sender,
    } = match store.with(|access| start_request(access, request))? {
        Ok(started) => started,
        Err(code) => return Ok(Err(code)),
    };
    pending.ready().await;
    let abandoned = || {
        Err(Error::InternalError(Some(
            "the request was abandoned".to_owned(),
        )))
    };
    let result = pending
        .take()
        .and_then(Result::ok)
        .unwrap_or_else(abandoned);
    store.with(|mut access| match to_response(access.data_mut(), result)? {
        Ok(response) => {
            drop(outcome_sender.send(Ok(())));
            Ok(Ok(response))
        }
        Err(code) => {
            drop(outcome_sender.send(Err(code.clone().into())));
            Ok(Err(code))
        }
    })
}

/// Starts a request. From then on, the host reads its body.
fn start_request(
    mut access: Access<'_, StoreState>,
    request: Resource<Request>,
) -> wasmtime::Result<Result<StartedRequest, ErrorCode>> {
    let state = access.data_mut();
    state.http_memory.remove(&request.rep());
    let reservation = state.reserve_for_request()?;
    let request = state.table().delete(request)?;
    let (outcome_sender, outcome_receiver) = oneshot::channel();
    let converted = request.into_http(&mut access, async {
        outcome_receiver.await.unwrap_or(Ok(()))
    });
    let (request, options) = match converted {
        Ok(parts) => parts,
        Err(error) => return Ok(Err(error.downcast()?)),
    };
    let state = access.data_mut();
    let exchange = state.outgoing_http.send(GuestRequest {
        request,
        options: options.as_deref().copied(),
        reservation,
        trailer_budget: Some(state.memory_budget.clone()),
    })?;
    Ok(Ok(StartedRequest {
        response: state.pending_requests.start(Pin::from(exchange)),
        outcome: outcome_sender,
    }))
}

/// Converts the response to a handle, or the error to an error code of `wasi:http` 0.3.
fn to_response(state: &mut StoreState, result: ResponseResult) -> wasmtime::Result<ClientResponse> {
    let response = match result {
        Ok(response) => response,
        Err(error) => return Ok(Err(to_error_code(error))),
    };
    // The host does not need the guest's verdict on the body.
    let (response, _verdict) = Response::from_http(&mut state.outgoing_http, response);
    Ok(Ok(state.table().push(response)?))
}

/// Converts the errors that the host's requests return.
fn to_error_code(error: Error) -> ErrorCode {
    match error {
        Error::HttpRequestDenied => ErrorCode::HttpRequestDenied,
        Error::HttpRequestHeaderSectionSize(size) => ErrorCode::HttpRequestHeaderSectionSize(size),
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(size),
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(size),
        Error::HttpResponseHeaderSectionSize(size) => {
            ErrorCode::HttpResponseHeaderSectionSize(size)
        }
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        Error::DestinationIpProhibited => ErrorCode::DestinationIpProhibited,
        Error::DestinationNotFound => ErrorCode::DestinationNotFound,
        Error::DestinationUnavailable => ErrorCode::DestinationUnavailable,
        Error::DnsError { rcode, info_code } => {
            ErrorCode::DnsError(DnsErrorPayload { rcode, info_code })
        }
        Error::DnsTimeout => ErrorCode::DnsTimeout,
        Error::ConnectionLimitReached => ErrorCode::ConnectionLimitReached,
        Error::ConnectionTimeout => ErrorCode::ConnectionTimeout,
        Error::ConnectionRefused => ErrorCode::ConnectionRefused,
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::ConnectionTerminated => ErrorCode::ConnectionTerminated,
        Error::TlsCertificateError => ErrorCode::TlsCertificateError,
        Error::TlsAlertReceived {
            alert_id,
            alert_message,
        } => ErrorCode::TlsAlertReceived(TlsAlertReceivedPayload {
            alert_id,
            alert_message,
        }),
        Error::TlsProtocolError => ErrorCode::TlsProtocolError,
        Error::InternalError(why) => ErrorCode::InternalError(why),
        // The host's requests return no other error.
        _ => ErrorCode::HttpProtocolError,
    }
}
