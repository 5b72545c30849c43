//! Sending requests: each is one of the call's own
//! [`PendingRequests`](crate::capability::http::pending_requests::PendingRequests), as those of
//! WASI 0.2 are.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderValue;
use http::header::HOST;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;
use wasmtime::component::{Access, Accessor, Linker, Resource};
use wasmtime_wasi::p2::Pollable as _;
use wasmtime_wasi_http::p3::bindings::http::types::{
    DnsErrorPayload, ErrorCode, TlsAlertReceivedPayload,
};
use wasmtime_wasi_http::p3::{Request, Response};
use wasmtime_wasi_http::{Error, WasiBody, WasiHttpHooks as _};

use super::version::versioned;
use crate::capability::http::http_call::memory_bounds::{
    EXCHANGE_MEMORY_BYTES, FIELDS_MEMORY_BYTES,
};
use crate::capability::http::pending_requests::{ResponseHandle, ResponseResult};
use crate::capability::memory_budget::MemoryBudget;
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
        response: mut awaited,
        outcome: sent,
    } = match store.with(|access| start_request(access, request))? {
        Ok(begun) => begun,
        Err(code) => return Ok(Err(code)),
    };
    awaited.ready().await;
    let gone = || {
        Err(Error::InternalError(Some(
            "the request was abandoned".to_owned(),
        )))
    };
    let answer = awaited.take().and_then(Result::ok).unwrap_or_else(gone);
    store.with(|mut access| match to_response(access.data_mut(), answer)? {
        Ok(response) => {
            drop(sent.send(Ok(())));
            Ok(Ok(response))
        }
        Err(code) => {
            drop(sent.send(Err(code.clone().into())));
            Ok(Err(code))
        }
    })
}

/// Starts a request, after which its body is read.
fn start_request(
    mut access: Access<'_, StoreState>,
    request: Resource<Request>,
) -> wasmtime::Result<Result<StartedRequest, ErrorCode>> {
    let state = access.data_mut();
    state.http_memory.remove(&request.rep());
    let held = if state.outgoing_http.is_open() {
        Some(state.memory_budget.reserve(EXCHANGE_MEMORY_BYTES)?)
    } else {
        None
    };
    let request = state.table().delete(request)?;
    let host = request
        .authority
        .as_ref()
        .map_or(Ok(HeaderValue::from_static("")), |authority| {
            HeaderValue::try_from(authority.as_str())
        });
    let (sent, is_sent) = oneshot::channel();
    let made = request.into_http(&mut access, async { is_sent.await.unwrap_or(Ok(())) });
    let (mut request, options) = match made {
        Ok(made) => made,
        Err(error) => return Ok(Err(error.downcast()?)),
    };
    // Guests cannot set this header.
    match host {
        Ok(host) => drop(request.headers_mut().insert(HOST, host)),
        Err(_) => return Ok(Err(ErrorCode::HttpRequestUriInvalid)),
    }
    let state = access.data_mut();
    state.outgoing_http.held = held;
    let sending = Pin::from(state.outgoing_http.send_request(
        request,
        options.as_deref().copied(),
        Box::new(async { Ok(()) }),
    ));
    if let Some(diverged) = state.outgoing_http.diverged.take() {
        return Err(diverged.into());
    }
    Ok(Ok(StartedRequest {
        response: state.exchanges.start(sending),
        outcome: sent,
    }))
}

/// A handle of the response, or the error in the words of `wasi:http_call` 0.3.
fn to_response(state: &mut StoreState, answer: ResponseResult) -> wasmtime::Result<ClientResponse> {
    let response = match answer {
        Ok(response) => response,
        Err(error) => return Ok(Err(error_code(error))),
    };
    let account = state.memory_budget.clone();
    let response = response.map(|body| TrailerBody {
        body,
        memory_budget: account,
    });
    // The host does not need the guest's verdict on the body.
    let (response, _verdict) = Response::from_http(&mut state.outgoing_http, response);
    Ok(Ok(state.table().push(response)?))
}

/// The body of a response. Its trailers become fields, which are charged to the call's memory until
/// the call ends.
struct TrailerBody {
    body: WasiBody,
    memory_budget: MemoryBudget,
}

impl Body for TrailerBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(&polled, Poll::Ready(Some(Ok(frame))) if frame.is_trailers())
            && self.memory_budget.charge(FIELDS_MEMORY_BYTES).is_err()
        {
            let why = Some("the call has no memory left for the trailers".to_owned());
            return Poll::Ready(Some(Err(Error::InternalError(why))));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Converts the errors that the host's requests return.
fn error_code(error: Error) -> ErrorCode {
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
