//! Sends HTTP requests: the interface `outgoing-handler`, and the handle of a pending response.
//!
//! `wasmtime-wasi-http` spawns two tasks for each request. Here, each request is one of the call's
//! [`PendingRequests`](crate::capability::http::pending_requests::PendingRequests).

use std::pin::Pin;

use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http::uri::{self, Uri};
use http_body_util::{BodyExt as _, Empty};
use toolbay_outgoing::parse_content_length;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi_http::p2::bindings::http::types::{self, ErrorCode, Scheme};
use wasmtime_wasi_http::p2::body::HostIncomingBody;
use wasmtime_wasi_http::p2::http_request_error;
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingResponse, HostOutgoingRequest,
};
use wasmtime_wasi_http::{FieldMap, RequestOptions, WasiBody, WasiHttpView as _};

use super::version::versioned;
use crate::capability::http::guest_request::GuestRequest;
use crate::capability::http::pending_requests::{ResponseHandle, ResponseResult};
use crate::store::state::StoreState;

type FutureResponseHandle = Resource<ResponseHandle>;

/// Result of reading a response handle: `None` while the response is pending, then the response or
/// an error, once.
type ResponseReadResult = Option<Result<Result<Resource<HostIncomingResponse>, ErrorCode>, ()>>;

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource(
        "future-incoming-response",
        ResourceType::host::<ResponseHandle>(),
        |mut store, rep| {
            store
                .data_mut()
                .table()
                .delete(FutureResponseHandle::new_own(rep))?;
            Ok(())
        },
    )?;
    types.func_wrap(
        "[method]future-incoming-response.subscribe",
        |mut store, (handle,): (FutureResponseHandle,)| {
            Ok((wasmtime_wasi::p2::subscribe(
                store.data_mut().table(),
                handle,
            )?,))
        },
    )?;
    types.func_wrap(
        "[method]future-incoming-response.get",
        |mut store, (handle,): (FutureResponseHandle,)| {
            let state = store.data_mut();
            let result = match state.table().get_mut(&handle)?.take() {
                Some(Ok(response)) => Some(Ok(to_response_handle(state, response)?)),
                Some(Err(())) => Some(Err(())),
                None => None,
            };
            wasmtime::Result::<(ResponseReadResult,)>::Ok((result,))
        },
    )?;
    let mut handler = linker.instance(versioned!("wasi:http/outgoing-handler"))?;
    handler.func_wrap(
        "handle",
        |mut store, (request, options): (_, Option<Resource<RequestOptions>>)| {
            Ok((send_request(store.data_mut(), request, options)?,))
        },
    )
}

/// Sends a request. The inner error is an error of the request; the outer error ends the call.
fn send_request(
    state: &mut StoreState,
    request: Resource<HostOutgoingRequest>,
    options: Option<Resource<RequestOptions>>,
) -> wasmtime::Result<Result<FutureResponseHandle, ErrorCode>> {
    state.http_memory.remove(&request.rep());
    let reservation = state.reserve_for_request()?;
    let options = options.and_then(|options| state.table().get(&options).ok().copied());
    let request = match to_http_request(state.table().delete(request)?) {
        Ok(request) => request,
        Err(error) => return Ok(Err(error)),
    };
    let exchange = state.outgoing_http.send(GuestRequest {
        request,
        options,
        reservation,
        trailer_budget: None,
    })?;
    let response_handle = state.pending_requests.start(Pin::from(exchange));
    Ok(Ok(state.table().push(response_handle)?))
}

/// Converts the request, or returns an error code for its invalid part.
fn to_http_request(request: HostOutgoingRequest) -> Result<http::Request<WasiBody>, ErrorCode> {
    let HostOutgoingRequest {
        method,
        scheme,
        authority,
        path_with_query,
        headers,
        body,
    } = request;
    let fields = HeaderMap::from(headers);
    let length = parse_declared_length(&fields)?;
    if body.is_none() && length.is_some_and(|length| length != 0) {
        return Err(ErrorCode::HttpRequestBodySize(Some(0)));
    }
    let method = method
        .try_into()
        .map_err(|_invalid| ErrorCode::HttpRequestMethodInvalid)?;
    let scheme = match scheme {
        Some(Scheme::Http) => uri::Scheme::HTTP,
        Some(Scheme::Https) | None => uri::Scheme::HTTPS,
        Some(Scheme::Other(name)) => uri::Scheme::try_from(name.as_str())
            .ok()
            .filter(|scheme| [uri::Scheme::HTTP, uri::Scheme::HTTPS].contains(scheme))
            .ok_or(ErrorCode::HttpProtocolError)?,
    };
    let authority = authority.unwrap_or_default();
    let mut uri = Uri::builder().scheme(scheme).authority(authority);
    if let Some(path) = path_with_query {
        uri = uri.path_and_query(path);
    }
    let body = body.unwrap_or_else(|| Empty::new().map_err(|never| match never {}).boxed_unsync());
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri.build().map_err(http_request_error)?;
    *request.headers_mut() = fields;
    Ok(request)
}

/// Returns the declared length of the request body. It must consist of digits.
fn parse_declared_length(fields: &HeaderMap) -> Result<Option<u64>, ErrorCode> {
    let Some(value) = fields.get(CONTENT_LENGTH) else {
        return Ok(None);
    };
    let invalid = || {
        ErrorCode::InternalError(Some(format!(
            "invalid `content-length` header value: {value:?}"
        )))
    };
    parse_content_length(value).map(Some).ok_or_else(invalid)
}

/// Converts the response to a handle, or the error to an error code of `wasi:http` 0.2.
fn to_response_handle(
    state: &mut StoreState,
    response_result: ResponseResult,
) -> wasmtime::Result<Result<Resource<HostIncomingResponse>, ErrorCode>> {
    let response = match response_result {
        Ok(response) => response,
        Err(error) => {
            // Only the original handle type, which this module replaces, can convert the error.
            let error_handle = state
                .table()
                .push(HostFutureIncomingResponse::Ready(Err(error)))?;
            let http = &mut state.http();
            let outcome = types::HostFutureIncomingResponse::get(
                http,
                Resource::new_borrow(error_handle.rep()),
            );
            types::HostFutureIncomingResponse::drop(http, error_handle)?;
            return match outcome? {
                Some(Ok(result)) => Ok(result),
                Some(Err(())) | None => {
                    unreachable!("the error was present and had not been taken")
                }
            };
        }
    };
    let (parts, body) = response.into_parts();
    let headers = FieldMap::new_immutable(&mut state.outgoing_http, parts.headers);
    let body = Some(HostIncomingBody::new(body));
    Ok(Ok(state.table().push(HostIncomingResponse {
        status: parts.status.as_u16(),
        headers,
        body,
    })?))
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderName, HeaderValue};
    use wasmtime_wasi_http::p2::bindings::http::types::Method;

    use super::*;
    use crate::capability::http::memory_bounds::MAX_FIELDS_BYTES;

    /// A GET request without a body.
    fn request(length: Option<&'static str>) -> HostOutgoingRequest {
        let mut headers = FieldMap::new_mutable(MAX_FIELDS_BYTES);
        if let Some(length) = length {
            headers
                .append_raw(
                    HeaderName::from_static("content-length"),
                    HeaderValue::from_static(length),
                )
                .unwrap();
        }
        HostOutgoingRequest {
            method: Method::Get,
            scheme: None,
            authority: Some("example.com:8443".to_owned()),
            path_with_query: Some("/a?b".to_owned()),
            headers,
            body: None,
        }
    }

    #[test]
    fn a_request_has_the_host_of_its_authority_and_uses_https_by_default() {
        let made = to_http_request(request(Some("0"))).unwrap();
        assert_eq!(made.uri(), "https://example.com:8443/a?b");
        assert_eq!(made.uri().authority().unwrap(), "example.com:8443");
        assert!(
            !made.headers().contains_key("host"),
            "the client sends the authority"
        );
        assert!(http_body::Body::is_end_stream(made.body()));
        let made = to_http_request(HostOutgoingRequest {
            scheme: Some(Scheme::Http),
            ..request(None)
        })
        .unwrap();
        assert_eq!(made.uri().scheme(), Some(&uri::Scheme::HTTP));
        let named = Scheme::Other("http".to_owned());
        let made = to_http_request(HostOutgoingRequest {
            scheme: Some(named),
            ..request(None)
        })
        .unwrap();
        assert_eq!(made.uri().scheme(), Some(&uri::Scheme::HTTP));
    }

    #[test]
    fn an_invalid_request_fails_before_it_is_sent() {
        let refused = |request| to_http_request(request).unwrap_err();
        assert!(
            matches!(
                refused(request(Some("1"))),
                ErrorCode::HttpRequestBodySize(Some(0))
            ),
            "it has no body"
        );
        for length in ["", "+1", "1 ", "x", "99999999999999999999"] {
            assert!(
                matches!(
                    refused(request(Some(length))),
                    ErrorCode::InternalError(Some(_))
                ),
                "{length:?}"
            );
        }
        let other = |name: &str| Some(Scheme::Other(name.to_owned()));
        let scheme = HostOutgoingRequest {
            scheme: other("ftp"),
            ..request(None)
        };
        assert!(matches!(refused(scheme), ErrorCode::HttpProtocolError));
        let method = HostOutgoingRequest {
            method: Method::Other("a b".to_owned()),
            ..request(None)
        };
        assert!(matches!(
            refused(method),
            ErrorCode::HttpRequestMethodInvalid
        ));
        let path = HostOutgoingRequest {
            path_with_query: Some("/a b".to_owned()),
            ..request(None)
        };
        assert!(matches!(refused(path), ErrorCode::HttpRequestUriInvalid));
        let authority = HostOutgoingRequest {
            authority: None,
            ..request(None)
        };
        assert!(matches!(
            refused(authority),
            ErrorCode::HttpRequestUriInvalid | ErrorCode::HttpProtocolError
        ));
    }
}
