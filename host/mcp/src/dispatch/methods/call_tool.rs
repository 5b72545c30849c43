//! `tools/call`: parses the name and the arguments of a call.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolbay_model::CallRequest;

use crate::plugin_request::request_run::{EntryParams, ReadExtent, RequestMeta};
use crate::protocol::argument_errors::find_unreadable;
use crate::protocol::jsonrpc::Error;
use crate::protocol::lenient_object::object;
use crate::protocol::params;

#[derive(Deserialize)]
#[serde(bound(deserialize = "A: Deserialize<'de>"))]
struct CallToolParams<A: Default> {
    name: String,
    #[serde(default, deserialize_with = "object")]
    arguments: A,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: RequestMeta,
    task: Option<Box<RawValue>>,
}

/// Parses the parameters.
///
/// # Errors
///
/// Returns an error if the parameters are malformed.
pub(crate) fn read(params: Option<&RawValue>, extent: ReadExtent) -> Result<EntryParams, Error> {
    let whole = match extent {
        ReadExtent::Whole => params::read_with_meta::<CallToolParams<Map<String, Value>>>(params),
        ReadExtent::Target => read_target(params),
    };
    // Valid JSON of the wrong shape is the model's mistake: it is reported like every other mistake
    // in the arguments.
    let (whole, unreadable) = match whole {
        Ok(whole) => (whole, None),
        Err(error) => match params.and_then(find_unreadable) {
            Some(violation) => (read_target(params)?, Some(Box::new(violation))),
            None => return Err(error),
        },
    };
    let CallToolParams { name, arguments, meta, task } = whole;
    Ok(EntryParams { request: CallRequest::Tool { name, arguments }, meta, task, unreadable })
}

/// Parses the parameters, and ignores the arguments.
fn read_target(params: Option<&RawValue>) -> Result<CallToolParams<Map<String, Value>>, Error> {
    let CallToolParams { name, arguments: IgnoredAny, meta, task } = params::read_with_meta(params)?;
    Ok(CallToolParams { name, arguments: Map::new(), meta, task })
}
