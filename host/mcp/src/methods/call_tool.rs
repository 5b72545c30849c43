//! `tools/call`: the name and the arguments of a call.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolbay_model::Request;

use crate::entry::{Asked, Extent, Meta};
use crate::jsonrpc::Error;
use crate::object::object;
use crate::params;
use crate::unreadable::unreadable;

#[derive(Deserialize)]
#[serde(bound(deserialize = "A: Deserialize<'de>"))]
struct Params<A: Default> {
    name: String,
    #[serde(default, deserialize_with = "object")]
    arguments: A,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: Meta,
    task: Option<Box<RawValue>>,
}

/// Reads the parameters.
///
/// # Errors
///
/// They are malformed.
pub(crate) fn read(params: Option<&RawValue>, extent: Extent) -> Result<Asked, Error> {
    let whole = match extent {
        Extent::Whole => params::read_with_meta::<Params<Map<String, Value>>>(params),
        Extent::Target => target(params),
    };
    // What is valid JSON is the model's mistake: it learns of it as of every other mistake in the arguments.
    let (whole, unreadable) = match whole {
        Ok(whole) => (whole, None),
        Err(error) => match params.and_then(unreadable) {
            Some(violation) => (target(params)?, Some(Box::new(violation))),
            None => return Err(error),
        },
    };
    let Params { name, arguments, meta, task } = whole;
    Ok(Asked { request: Request::Tool { name, arguments }, meta, task, unreadable })
}

/// The parameters without the arguments.
fn target(params: Option<&RawValue>) -> Result<Params<Map<String, Value>>, Error> {
    let Params { name, arguments: IgnoredAny, meta, task } = params::read_with_meta(params)?;
    Ok(Params { name, arguments: Map::new(), meta, task })
}
