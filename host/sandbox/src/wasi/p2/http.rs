//! HTTP types. The memory of requests and their fields is charged to the call.
//!
//! A guest without a grant can create a request, because language runtimes create one before they
//! notice the denial. The guest then receives an ordinary error. The memory of such a request is
//! small.

use toolbay_policy::DenialReason;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi_http::p2::HeaderError as Refused;
use wasmtime_wasi_http::p2::bindings::http::types::{self, ErrorCode, HeaderError, Method, Scheme};
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostOutgoingBody};
use wasmtime_wasi_http::p2::types::{
    HostIncomingRequest, HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
};
use wasmtime_wasi_http::{FieldMap, WasiHttpView as _};

use super::version::versioned;
use crate::capability::http::memory_bounds::{
    BODY_MEMORY_BYTES, FIELDS_MEMORY_BYTES, MAX_AUTHORITY_BYTES, MAX_CUSTOM_NAME_BYTES,
    MAX_PATH_BYTES, REQUEST_MEMORY_BYTES,
};
use crate::capability::memory_budget::BudgetExceeded;
use crate::store::state::StoreState;

type FieldsHandle = Resource<FieldMap>;
type RequestHandle = Resource<HostOutgoingRequest>;
type BodyHandle = Resource<HostOutgoingBody>;
type OutgoingResponseHandle = Resource<HostOutgoingResponse>;

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    replace_fields(linker)?;
    replace_requests(linker)?;
    replace_request_setters(linker)?;
    replace_incoming_requests(linker)?;
    replace_responses(linker)?;
    replace_bodies(linker)
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
            let created = types::HostFields::from_list(&mut state.http(), entries);
            Ok((match convert_header_result(state, created, forbidden)? {
                Ok(fields) => Ok(state.reserve_for_handle(fields, FIELDS_MEMORY_BYTES)?),
                Err(error) => Err(error),
            },))
        },
    )?;
    types.func_wrap(
        "[method]fields.set",
        |mut store, (fields, name, values): (FieldsHandle, String, Vec<Vec<u8>>)| {
            let state = store.data_mut();
            let forbidden = state
                .outgoing_http
                .find_forbidden_header([name.as_str()].into_iter());
            let set = types::HostFields::set(&mut state.http(), fields, name, values);
            Ok((convert_header_result(state, set, forbidden)?,))
        },
    )?;
    types.func_wrap(
        "[method]fields.append",
        |mut store, (fields, name, value): (FieldsHandle, String, Vec<u8>)| {
            let state = store.data_mut();
            let forbidden = state
                .outgoing_http
                .find_forbidden_header([name.as_str()].into_iter());
            let appended = types::HostFields::append(&mut state.http(), fields, name, value);
            Ok((convert_header_result(state, appended, forbidden)?,))
        },
    )?;
    types.func_wrap(
        "[method]fields.clone",
        |mut store, (fields,): (FieldsHandle,)| {
            let state = store.data_mut();
            let created = types::HostFields::clone(&mut state.http(), fields)?;
            Ok((state.reserve_for_handle(created, FIELDS_MEMORY_BYTES)?,))
        },
    )
}

fn replace_requests(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource(
        "outgoing-request",
        ResourceType::host::<HostOutgoingRequest>(),
        |mut store, rep| {
            let state = store.data_mut();
            state.http_memory.remove(&rep);
            types::HostOutgoingRequest::drop(&mut state.http(), Resource::new_own(rep))
        },
    )?;
    types.func_wrap(
        "[constructor]outgoing-request",
        |mut store, (fields,): (FieldsHandle,)| {
            let state = store.data_mut();
            state.http_memory.remove(&fields.rep());
            let created = types::HostOutgoingRequest::new(&mut state.http(), fields)?;
            Ok(
                (
                    state
                        .reserve_for_handle(created, FIELDS_MEMORY_BYTES + REQUEST_MEMORY_BYTES)?,
                ),
            )
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.headers",
        |mut store, (request,): (RequestHandle,)| {
            let state = store.data_mut();
            let headers = types::HostOutgoingRequest::headers(&mut state.http(), request)?;
            Ok((state.reserve_for_handle(headers, FIELDS_MEMORY_BYTES)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.body",
        |mut store, (request,): (RequestHandle,)| {
            let state = store.data_mut();
            let is_first = state.http().table.get(&request)?.body.is_none();
            let body = types::HostOutgoingRequest::body(&mut state.http(), request)?;
            if is_first && body.is_err() {
                // The declared length is not a number.
                state
                    .outgoing_http
                    .report_request_denial(&DenialReason::MalformedHeader);
            }
            Ok((charge_body(state, body)?,))
        },
    )
}

/// Replaces the setters of the request head. Rejected values are reported.
fn replace_request_setters(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.func_wrap(
        "[method]outgoing-request.set-method",
        |mut store, (request, method): (RequestHandle, Method)| {
            let is_short =
                !matches!(&method, Method::Other(name) if name.len() > MAX_CUSTOM_NAME_BYTES);
            let state = store.data_mut();
            Ok((if is_short {
                let set =
                    types::HostOutgoingRequest::set_method(&mut state.http(), request, method)?;
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
        "[method]outgoing-request.set-scheme",
        |mut store, (request, scheme): (RequestHandle, Option<Scheme>)| {
            let is_short =
                !matches!(&scheme, Some(Scheme::Other(name)) if name.len() > MAX_CUSTOM_NAME_BYTES);
            let state = store.data_mut();
            Ok((if is_short {
                let set =
                    types::HostOutgoingRequest::set_scheme(&mut state.http(), request, scheme)?;
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
        "[method]outgoing-request.set-authority",
        |mut store, (request, authority): (RequestHandle, Option<String>)| {
            let state = store.data_mut();
            let is_short = authority
                .as_ref()
                .is_none_or(|text| text.len() <= MAX_AUTHORITY_BYTES);
            let authority_text = authority.clone().filter(|_| is_short).unwrap_or_default();
            let set = if is_short {
                types::HostOutgoingRequest::set_authority(&mut state.http(), request, authority)?
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
        "[method]outgoing-request.set-path-with-query",
        |mut store, (request, path): (RequestHandle, Option<String>)| {
            let is_short = path
                .as_ref()
                .is_none_or(|text| text.len() <= MAX_PATH_BYTES);
            let state = store.data_mut();
            Ok((if is_short {
                let set = types::HostOutgoingRequest::set_path_with_query(
                    &mut state.http(),
                    request,
                    path,
                )?;
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

/// Replaces the functions of incoming requests. Only a plugin that is an HTTP server receives such
/// a request, from the host.
fn replace_incoming_requests(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.func_wrap(
        "[method]incoming-request.headers",
        |mut store, (request,): (Resource<HostIncomingRequest>,)| {
            let state = store.data_mut();
            let headers = types::HostIncomingRequest::headers(&mut state.http(), request)?;
            Ok((state.reserve_for_handle(headers, FIELDS_MEMORY_BYTES)?,))
        },
    )
}

/// Replaces the functions of incoming and outgoing responses. Every plugin can create an outgoing
/// response, even if it is not a server.
fn replace_responses(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource(
        "outgoing-response",
        ResourceType::host::<HostOutgoingResponse>(),
        |mut store, rep| {
            let state = store.data_mut();
            state.http_memory.remove(&rep);
            types::HostOutgoingResponse::drop(&mut state.http(), Resource::new_own(rep))
        },
    )?;
    types.func_wrap(
        "[constructor]outgoing-response",
        |mut store, (fields,): (FieldsHandle,)| {
            let state = store.data_mut();
            state.http_memory.remove(&fields.rep());
            let created = types::HostOutgoingResponse::new(&mut state.http(), fields)?;
            Ok((state.reserve_for_handle(created, FIELDS_MEMORY_BYTES)?,))
        },
    )?;
    types.func_wrap(
        "[method]incoming-response.headers",
        |mut store, (response,): (Resource<HostIncomingResponse>,)| {
            let state = store.data_mut();
            let headers = types::HostIncomingResponse::headers(&mut state.http(), response)?;
            Ok((state.reserve_for_handle(headers, FIELDS_MEMORY_BYTES)?,))
        },
    )?;
    types.func_wrap(
        "[method]future-trailers.get",
        |mut store, (trailers,): (Resource<HostFutureTrailers>,)| {
            let state = store.data_mut();
            let outcome = types::HostFutureTrailers::get(&mut state.http(), trailers)?;
            if let Some(Ok(Ok(Some(fields)))) = &outcome {
                state.http_memory.insert(
                    fields.rep(),
                    state.memory_budget.reserve(FIELDS_MEMORY_BYTES)?,
                );
            }
            Ok((outcome,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-response.headers",
        |mut store, (response,): (OutgoingResponseHandle,)| {
            let state = store.data_mut();
            let headers = types::HostOutgoingResponse::headers(&mut state.http(), response)?;
            Ok((state.reserve_for_handle(headers, FIELDS_MEMORY_BYTES)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-response.body",
        |mut store, (response,): (OutgoingResponseHandle,)| {
            let state = store.data_mut();
            let body = types::HostOutgoingResponse::body(&mut state.http(), response)?;
            Ok((charge_body(state, body)?,))
        },
    )
}

fn replace_bodies(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource(
        "outgoing-body",
        ResourceType::host::<HostOutgoingBody>(),
        |mut store, rep| {
            let state = store.data_mut();
            state.http_memory.remove(&rep);
            types::HostOutgoingBody::drop(&mut state.http(), Resource::new_own(rep))
        },
    )?;
    types.func_wrap(
        "[static]outgoing-body.finish",
        |mut store, (body, trailers): (BodyHandle, Option<FieldsHandle>)| {
            let state = store.data_mut();
            for rep in trailers.iter().map(Resource::rep).chain([body.rep()]) {
                state.http_memory.remove(&rep);
            }
            let finished: Result<(), ErrorCode> =
                match types::HostOutgoingBody::finish(&mut state.http(), body, trailers) {
                    Ok(()) => Ok(()),
                    Err(error) => Err(error.downcast()?),
                };
            Ok((finished,))
        },
    )
}

/// Converts the result of creating or changing headers. Reports rejected headers.
fn convert_header_result<T>(
    state: &StoreState,
    result: Result<T, Refused>,
    forbidden: Option<String>,
) -> wasmtime::Result<Result<T, HeaderError>> {
    let why = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(error) => error.downcast()?,
    };
    state.outgoing_http.report_header_denial(why, forbidden);
    Ok(Err(why))
}

/// Reserves memory for a body, if it was created.
fn charge_body(
    state: &mut StoreState,
    created: Result<BodyHandle, ()>,
) -> Result<Result<BodyHandle, ()>, BudgetExceeded> {
    match created {
        Ok(body) => state.reserve_for_handle(body, BODY_MEMORY_BYTES).map(Ok),
        Err(()) => Ok(Err(())),
    }
}
