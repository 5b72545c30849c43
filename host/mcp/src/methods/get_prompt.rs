//! `prompts/get`: the name of a prompt, and the arguments to fill in.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
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
}

/// Reads the parameters.
///
/// # Errors
///
/// They are malformed.
pub(crate) fn read(params: Option<&RawValue>, extent: Extent) -> Result<Asked, Error> {
    let Params { name, arguments, meta } = match extent {
        Extent::Whole => params::read_with_meta::<Params<BTreeMap<String, String>>>(params)?,
        Extent::Target => {
            let Params { name, arguments: IgnoredAny, meta } = params::read_with_meta(params)?;
            Params { name, arguments: BTreeMap::new(), meta }
        }
    };
    Ok(Asked { request: Request::Prompt { name, arguments }, meta, task: None, unreadable: None })
}
