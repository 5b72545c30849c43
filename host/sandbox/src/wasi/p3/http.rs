//! HTTP types. The memory of fields, requests and responses is charged to the call. Their bodies
//! use no host memory until they are sent: until then they are the guest's own streams.
//!
//! A guest without a grant can create a request, because language runtimes create one before they
//! notice the denial. The guest then receives an ordinary error. The memory of such a request is
//! small.

use toolbay_policy::DenialReason;
use wasmtime::component::{Access, FutureReader, Linker, Resource, ResourceType, StreamReader};
use wasmtime::{AsContextMut as _, StoreContextMut};
use wasmtime_wasi::TrappableError;
use wasmtime_wasi_http::p2::bindings::http::types::HeaderError as Why;
use wasmtime_wasi_http::p3::bindings::http::types::{
    self, ErrorCode, HeaderError, HostFields as _, HostRequest as _, HostRequestWithStore,
    HostResponseWithStore, Method, RequestOptions, Scheme, Trailers,
};
use wasmtime_wasi_http::p3::{Request, Response};
use wasmtime_wasi_http::{FieldMap, WasiHttp, WasiHttpView as _};

use super::version::versioned;
use crate::capability::http::memory_bounds::{
    FIELDS_MEMORY_BYTES, MAX_AUTHORITY_BYTES, MAX_CUSTOM_NAME_BYTES, MAX_PATH_BYTES,
    REQUEST_MEMORY_BYTES,
};
use crate::store::state::StoreState;

type FieldsResource = Resource<FieldMap>;

/// Body of a request or a response that the guest creates.
type BodyContents = Option<StreamReader<u8>>;
type BodyEnd = FutureReader<Result<Option<Resource<Trailers>>, ErrorCode>>;

/// Future with which the guest reports whether it could process a body that it received.
type BodyVerdict = FutureReader<Result<(), ErrorCode>>;

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    replace_fields(linker)?;
    replace_requests(linker)?;
    replace_request_setters(linker)?;
    replace_responses(linker)
}

fn replace_fields(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource(
        "fields",
        ResourceType::host::<FieldMap>(),
        |mut store, rep| {
            let state = store.data_mut();
            state.http_memory.remove(&rep);
            types::HostFields::drop(&mut state.http(), Resource::new_own(rep))
        },
    )?;
    types.func_wrap("[constructor]fields", |mut store, (): ()| {
        let state = store.data_mut();
        let created = types::HostFields::new(&mut state.http())?;
        Ok((state.reserve_for_handle(created, FIELDS_MEMORY_BYTES)?,))
    })?;
    types.func_wrap(
        "[static]fields.from-list",
        |mut store, (entries,): (Vec<(String, Vec<u8>)>,)| {
            let state = store.data_mut();
            let forbidden = state
                .outgoing_http
                .find_forbidden_header(entries.iter().map(|(name, _)| name.as_str()));
            let created = state.http().from_list(entries);
            Ok((match convert_header_result(state, created, forbidden)? {
                Ok(fields) => Ok(state.reserve_for_handle(fields, FIELDS_MEMORY_BYTES)?),
                Err(error) => Err(error),
            },))
        },
    )?;
    types.func_wrap(
        "[method]fields.set",
        |mut store, (fields, name, values): (FieldsResource, String, Vec<Vec<u8>>)| {
            let state = store.data_mut();
            let forbidden = state
                .outgoing_http
                .find_forbidden_header([name.as_str()].into_iter());
            let set = state.http().set(fields, name, values);
            Ok((convert_header_result(state, set, forbidden)?,))
        },
    )?;
    types.func_wrap(
        "[method]fields.append",
        |mut store, (fields, name, value): (FieldsResource, String, Vec<u8>)| {
            let state = store.data_mut();
            let forbidden = state
                .outgoing_http
                .find_forbidden_header([name.as_str()].into_iter());
            let appended = state.http().append(fields, name, value);
            Ok((convert_header_result(state, appended, forbidden)?,))
        },
    )?;
    types.func_wrap(
        "[method]fields.clone",
        |mut store, (fields,): (FieldsResource,)| {
            let state = store.data_mut();
            let created = types::HostFields::clone(&mut state.http(), fields)?;
            Ok((state.reserve_for_handle(created, FIELDS_MEMORY_BYTES)?,))
        },
    )
}

fn replace_requests(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource(
        "request",
        ResourceType::host::<Request>(),
        |mut store, rep| {
            store.data_mut().http_memory.remove(&rep);
            <WasiHttp as HostRequestWithStore<StoreState>>::drop(
                access_http(&mut store),
                Resource::new_own(rep),
            )
        },
    )?;
    types.func_wrap(
        "[static]request.new",
        |mut store,
         (fields, contents, end, options): (
            FieldsResource,
            BodyContents,
            BodyEnd,
            Option<Resource<RequestOptions>>,
        )| {
            store.data_mut().http_memory.remove(&fields.rep());
            let (created, transmitted) = <WasiHttp as HostRequestWithStore<StoreState>>::new(
                access_http(&mut store),
                fields,
                contents,
                end,
                options,
            )?;
            Ok(((
                store
                    .data_mut()
                    .reserve_for_handle(created, FIELDS_MEMORY_BYTES + REQUEST_MEMORY_BYTES)?,
                transmitted,
            ),))
        },
    )?;
    types.func_wrap(
        "[static]request.consume-body",
        |mut store, (request, verdict): (Resource<Request>, BodyVerdict)| {
            store.data_mut().http_memory.remove(&request.rep());
            let consumed = <WasiHttp as HostRequestWithStore<StoreState>>::consume_body(
                access_http(&mut store),
                request,
                verdict,
            )?;
            Ok((consumed,))
        },
    )?;
    types.func_wrap(
        "[method]request.get-headers",
        |mut store, (request,): (Resource<Request>,)| {
            let state = store.data_mut();
            let headers = types::HostRequest::get_headers(&mut state.http(), request)?;
            Ok((state.reserve_for_handle(headers, FIELDS_MEMORY_BYTES)?,))
        },
    )
}

/// Replaces the setters of the request head. Rejected values are reported.
fn replace_request_setters(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.func_wrap(
        "[method]request.set-method",
        |mut store, (request, method): (Resource<Request>, Method)| {
            let is_short =
                !matches!(&method, Method::Other(name) if name.len() > MAX_CUSTOM_NAME_BYTES);
            let state = store.data_mut();
            Ok((if is_short {
                let set = state.http().set_method(request, method)?;
                set.inspect_err(|()| {
                    state
                        .outgoing_http
                        .report_request_denial(&DenialReason::MalformedMethod);
                })
            } else {
                Err(())
            },))
        },
    )?;
    types.func_wrap(
        "[method]request.set-scheme",
        |mut store, (request, scheme): (Resource<Request>, Option<Scheme>)| {
            let is_short =
                !matches!(&scheme, Some(Scheme::Other(name)) if name.len() > MAX_CUSTOM_NAME_BYTES);
            let state = store.data_mut();
            Ok((if is_short {
                let set = state.http().set_scheme(request, scheme)?;
                set.inspect_err(|()| {
                    state
                        .outgoing_http
                        .report_request_denial(&DenialReason::Scheme);
                })
            } else {
                Err(())
            },))
        },
    )?;
    types.func_wrap(
        "[method]request.set-authority",
        |mut store, (request, authority): (Resource<Request>, Option<String>)| {
            let state = store.data_mut();
            let is_short = authority
                .as_ref()
                .is_none_or(|text| text.len() <= MAX_AUTHORITY_BYTES);
            let authority_text = authority.clone().filter(|_| is_short).unwrap_or_default();
            let set = if is_short {
                state.http().set_authority(request, authority)?
            } else {
                Err(())
            };
            Ok((set.inspect_err(|()| {
                state
                    .outgoing_http
                    .report_request_denial(&DenialReason::for_authority(&authority_text));
            }),))
        },
    )?;
    types.func_wrap(
        "[method]request.set-path-with-query",
        |mut store, (request, path): (Resource<Request>, Option<String>)| {
            let is_short = path
                .as_ref()
                .is_none_or(|text| text.len() <= MAX_PATH_BYTES);
            let state = store.data_mut();
            Ok((if is_short {
                let set = state.http().set_path_with_query(request, path)?;
                set.inspect_err(|()| {
                    state
                        .outgoing_http
                        .report_request_denial(&DenialReason::MalformedPath);
                })
            } else {
                Err(())
            },))
        },
    )
}

/// Replaces the functions of responses. Every plugin can create a response, even if it is not a
/// server.
fn replace_responses(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource(
        "response",
        ResourceType::host::<Response>(),
        |mut store, rep| {
            store.data_mut().http_memory.remove(&rep);
            <WasiHttp as HostResponseWithStore<StoreState>>::drop(
                access_http(&mut store),
                Resource::new_own(rep),
            )
        },
    )?;
    types.func_wrap(
        "[static]response.new",
        |mut store, (fields, contents, end): (FieldsResource, BodyContents, BodyEnd)| {
            store.data_mut().http_memory.remove(&fields.rep());
            let (created, transmitted) = <WasiHttp as HostResponseWithStore<StoreState>>::new(
                access_http(&mut store),
                fields,
                contents,
                end,
            )?;
            Ok(((
                store
                    .data_mut()
                    .reserve_for_handle(created, FIELDS_MEMORY_BYTES)?,
                transmitted,
            ),))
        },
    )?;
    types.func_wrap(
        "[static]response.consume-body",
        |mut store, (response, verdict): (Resource<Response>, BodyVerdict)| {
            store.data_mut().http_memory.remove(&response.rep());
            let consumed = <WasiHttp as HostResponseWithStore<StoreState>>::consume_body(
                access_http(&mut store),
                response,
                verdict,
            )?;
            Ok((consumed,))
        },
    )?;
    types.func_wrap(
        "[method]response.get-headers",
        |mut store, (response,): (Resource<Response>,)| {
            let state = store.data_mut();
            let headers = types::HostResponse::get_headers(&mut state.http(), response)?;
            Ok((state.reserve_for_handle(headers, FIELDS_MEMORY_BYTES)?,))
        },
    )
}

/// Returns the store in the form that the functions of `wasmtime-wasi-http` require.
fn access_http<'a>(
    store: &'a mut StoreContextMut<'_, StoreState>,
) -> Access<'a, StoreState, WasiHttp> {
    Access::<StoreState, WasiHttp>::new(store.as_context_mut(), StoreState::http)
}

/// Converts the result of creating or changing headers. Reports rejected headers.
fn convert_header_result<T>(
    state: &StoreState,
    result: Result<T, TrappableError<HeaderError>>,
    forbidden: Option<String>,
) -> wasmtime::Result<Result<T, HeaderError>> {
    let error = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(error) => error.downcast()?,
    };
    match &error {
        HeaderError::Forbidden => state
            .outgoing_http
            .report_header_denial(Why::Forbidden, forbidden),
        HeaderError::InvalidSyntax => state
            .outgoing_http
            .report_header_denial(Why::InvalidSyntax, None),
        // A mistake of the guest, which is not a denied request.
        HeaderError::Immutable | HeaderError::SizeExceeded | HeaderError::Other(_) => {}
    }
    Ok(Err(error))
}
