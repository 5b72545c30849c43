//! HTTP: what a request and its fields hold is drawn from the call's account.
//!
//! A request can be made without a grant, because runtimes make one before they know that it will be denied, and the
//! guest then sees an ordinary error. Until then it can hold little.

use toolbay_policy::Denied;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi_http::p2::HeaderError as Refused;
use wasmtime_wasi_http::p2::bindings::http::types::{self, ErrorCode, HeaderError, Method, Scheme};
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostOutgoingBody};
use wasmtime_wasi_http::p2::types::{
    HostIncomingRequest, HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
};
use wasmtime_wasi_http::{FieldMap, WasiHttpView as _};

use super::version::versioned;
use crate::account::Overdrawn;
use crate::http::bounds::{AUTHORITY, BODY_HELD, FIELDS_HELD, NAME, PATH, REQUEST_HELD};
use crate::state::State;

type Fields = Resource<FieldMap>;
type Request = Resource<HostOutgoingRequest>;
type Body = Resource<HostOutgoingBody>;
type Response = Resource<HostOutgoingResponse>;

pub(super) fn replace(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    fields(linker)?;
    requests(linker)?;
    incoming(linker)?;
    responses(linker)?;
    bodies(linker)
}

fn fields(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource("fields", ResourceType::host::<FieldMap>(), |mut store, rep| {
        let state = store.data_mut();
        state.http_memory.remove(&rep);
        types::HostFields::drop(&mut state.http(), Resource::new_own(rep))
    })?;
    types.func_wrap("[constructor]fields", |mut store, (): ()| {
        let state = store.data_mut();
        let made = types::HostFields::new(&mut state.http())?;
        Ok((state.http_held(made, FIELDS_HELD)?,))
    })?;
    types.func_wrap("[static]fields.from-list", |mut store, (entries,): (Vec<(String, Vec<u8>)>,)| {
        let state = store.data_mut();
        let forbidden = state.requests.forbidden(entries.iter().map(|(name, _)| name.as_str()));
        let made = types::HostFields::from_list(&mut state.http(), entries);
        Ok((match headers(state, made, forbidden)? {
            Ok(made) => Ok(state.http_held(made, FIELDS_HELD)?),
            Err(error) => Err(error),
        },))
    })?;
    types.func_wrap("[method]fields.set", |mut store, (fields, name, values): (Fields, String, Vec<Vec<u8>>)| {
        let state = store.data_mut();
        let forbidden = state.requests.forbidden([name.as_str()].into_iter());
        let set = types::HostFields::set(&mut state.http(), fields, name, values);
        Ok((headers(state, set, forbidden)?,))
    })?;
    types.func_wrap("[method]fields.append", |mut store, (fields, name, value): (Fields, String, Vec<u8>)| {
        let state = store.data_mut();
        let forbidden = state.requests.forbidden([name.as_str()].into_iter());
        let appended = types::HostFields::append(&mut state.http(), fields, name, value);
        Ok((headers(state, appended, forbidden)?,))
    })?;
    types.func_wrap("[method]fields.clone", |mut store, (fields,): (Fields,)| {
        let state = store.data_mut();
        let made = types::HostFields::clone(&mut state.http(), fields)?;
        Ok((state.http_held(made, FIELDS_HELD)?,))
    })
}

fn requests(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource("outgoing-request", ResourceType::host::<HostOutgoingRequest>(), |mut store, rep| {
        let state = store.data_mut();
        state.http_memory.remove(&rep);
        types::HostOutgoingRequest::drop(&mut state.http(), Resource::new_own(rep))
    })?;
    types.func_wrap("[constructor]outgoing-request", |mut store, (fields,): (Fields,)| {
        let state = store.data_mut();
        state.http_memory.remove(&fields.rep());
        let made = types::HostOutgoingRequest::new(&mut state.http(), fields)?;
        Ok((state.http_held(made, FIELDS_HELD + REQUEST_HELD)?,))
    })?;
    types.func_wrap("[method]outgoing-request.set-method", |mut store, (request, method): (Request, Method)| {
        let is_short = !matches!(&method, Method::Other(name) if name.len() > NAME);
        let state = store.data_mut();
        Ok((if is_short {
            let set = types::HostOutgoingRequest::set_method(&mut state.http(), request, method)?;
            set.inspect_err(|()| state.requests.refuse(&Denied::MalformedMethod))
        } else {
            Err(())
        },))
    })?;
    types.func_wrap(
        "[method]outgoing-request.set-scheme",
        |mut store, (request, scheme): (Request, Option<Scheme>)| {
            let is_short = !matches!(&scheme, Some(Scheme::Other(name)) if name.len() > NAME);
            let state = store.data_mut();
            Ok((if is_short {
                let set = types::HostOutgoingRequest::set_scheme(&mut state.http(), request, scheme)?;
                set.inspect_err(|()| state.requests.refuse(&Denied::Scheme))
            } else {
                Err(())
            },))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-authority",
        |mut store, (request, authority): (Request, Option<String>)| {
            let state = store.data_mut();
            let is_short = authority.as_ref().is_none_or(|text| text.len() <= AUTHORITY);
            let written = authority.clone().filter(|_| is_short).unwrap_or_default();
            let set = if is_short {
                types::HostOutgoingRequest::set_authority(&mut state.http(), request, authority)?
            } else {
                Err(())
            };
            Ok((set.inspect_err(|()| state.requests.refuse(&Denied::authority(&written))),))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        |mut store, (request, path): (Request, Option<String>)| {
            let is_short = path.as_ref().is_none_or(|text| text.len() <= PATH);
            let state = store.data_mut();
            Ok((if is_short {
                let set = types::HostOutgoingRequest::set_path_with_query(&mut state.http(), request, path)?;
                set.inspect_err(|()| state.requests.refuse(&Denied::MalformedPath))
            } else {
                Err(())
            },))
        },
    )?;
    types.func_wrap("[method]outgoing-request.headers", |mut store, (request,): (Request,)| {
        let state = store.data_mut();
        let made = types::HostOutgoingRequest::headers(&mut state.http(), request)?;
        Ok((state.http_held(made, FIELDS_HELD)?,))
    })?;
    types.func_wrap("[method]outgoing-request.body", |mut store, (request,): (Request,)| {
        let state = store.data_mut();
        let is_first = state.http().table.get(&request)?.body.is_none();
        let made = types::HostOutgoingRequest::body(&mut state.http(), request)?;
        if is_first && made.is_err() {
            // Its length is not a number.
            state.requests.refuse(&Denied::MalformedHeader);
        }
        Ok((held_body(state, made)?,))
    })
}

/// Requests that arrive: only a plugin that is a server gets one, from the host.
fn incoming(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.func_wrap("[method]incoming-request.headers", |mut store, (request,): (Resource<HostIncomingRequest>,)| {
        let state = store.data_mut();
        let made = types::HostIncomingRequest::headers(&mut state.http(), request)?;
        Ok((state.http_held(made, FIELDS_HELD)?,))
    })
}

/// Responses: those that arrive, and those of servers. Each plugin can make them, server or not.
fn responses(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource("outgoing-response", ResourceType::host::<HostOutgoingResponse>(), |mut store, rep| {
        let state = store.data_mut();
        state.http_memory.remove(&rep);
        types::HostOutgoingResponse::drop(&mut state.http(), Resource::new_own(rep))
    })?;
    types.func_wrap("[constructor]outgoing-response", |mut store, (fields,): (Fields,)| {
        let state = store.data_mut();
        state.http_memory.remove(&fields.rep());
        let made = types::HostOutgoingResponse::new(&mut state.http(), fields)?;
        Ok((state.http_held(made, FIELDS_HELD)?,))
    })?;
    types.func_wrap(
        "[method]incoming-response.headers",
        |mut store, (response,): (Resource<HostIncomingResponse>,)| {
            let state = store.data_mut();
            let made = types::HostIncomingResponse::headers(&mut state.http(), response)?;
            Ok((state.http_held(made, FIELDS_HELD)?,))
        },
    )?;
    types.func_wrap("[method]future-trailers.get", |mut store, (trailers,): (Resource<HostFutureTrailers>,)| {
        let state = store.data_mut();
        let got = types::HostFutureTrailers::get(&mut state.http(), trailers)?;
        if let Some(Ok(Ok(Some(fields)))) = &got {
            state.http_memory.insert(fields.rep(), state.account.hold(FIELDS_HELD)?);
        }
        Ok((got,))
    })?;
    types.func_wrap("[method]outgoing-response.headers", |mut store, (response,): (Response,)| {
        let state = store.data_mut();
        let made = types::HostOutgoingResponse::headers(&mut state.http(), response)?;
        Ok((state.http_held(made, FIELDS_HELD)?,))
    })?;
    types.func_wrap("[method]outgoing-response.body", |mut store, (response,): (Response,)| {
        let state = store.data_mut();
        let made = types::HostOutgoingResponse::body(&mut state.http(), response)?;
        Ok((held_body(state, made)?,))
    })
}

fn bodies(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:http/types"))?;
    types.resource("outgoing-body", ResourceType::host::<HostOutgoingBody>(), |mut store, rep| {
        let state = store.data_mut();
        state.http_memory.remove(&rep);
        types::HostOutgoingBody::drop(&mut state.http(), Resource::new_own(rep))
    })?;
    types.func_wrap("[static]outgoing-body.finish", |mut store, (body, trailers): (Body, Option<Fields>)| {
        let state = store.data_mut();
        for rep in trailers.iter().map(Resource::rep).chain([body.rep()]) {
            state.http_memory.remove(&rep);
        }
        let finished: Result<(), ErrorCode> = match types::HostOutgoingBody::finish(&mut state.http(), body, trailers) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.downcast()?),
        };
        Ok((finished,))
    })
}

/// The answer to a guest that makes or changes headers. Those that are refused are reported.
fn headers<T>(
    state: &State,
    changed: Result<T, Refused>,
    forbidden: Option<String>,
) -> wasmtime::Result<Result<T, HeaderError>> {
    let why = match changed {
        Ok(done) => return Ok(Ok(done)),
        Err(error) => error.downcast()?,
    };
    state.requests.refuse_headers(why, forbidden);
    Ok(Err(why))
}

/// The same for a body, if there is one.
fn held_body(state: &mut State, made: Result<Body, ()>) -> Result<Result<Body, ()>, Overdrawn> {
    match made {
        Ok(made) => state.http_held(made, BODY_HELD).map(Ok),
        Err(()) => Ok(Err(())),
    }
}
