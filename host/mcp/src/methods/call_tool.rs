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
    let Params { name, arguments, meta, task } = match extent {
        Extent::Whole => params::read::<Params<Map<String, Value>>>(params)?,
        Extent::Target => {
            let Params { name, arguments: IgnoredAny, meta, task } = params::read(params)?;
            Params { name, arguments: Map::new(), meta, task }
        }
    };
    Ok(Asked { request: Request::Tool { name, arguments }, meta, task })
}
