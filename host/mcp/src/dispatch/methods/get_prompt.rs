//! `prompts/get`: parses the name of a prompt, and the arguments to fill in.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use toolbay_model::CallRequest;

use crate::plugin_request::request_run::{EntryParams, ReadExtent, RequestMeta};
use crate::protocol::jsonrpc::Error;
use crate::protocol::lenient_object::object;
use crate::protocol::params;

#[derive(Deserialize)]
#[serde(bound(deserialize = "A: Deserialize<'de>"))]
struct GetPromptParams<A: Default> {
    name: String,
    #[serde(default, deserialize_with = "object")]
    arguments: A,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: RequestMeta,
}

/// Parses the parameters.
///
/// # Errors
///
/// Returns an error if the parameters are malformed.
pub(crate) fn read(params: Option<&RawValue>, extent: ReadExtent) -> Result<EntryParams, Error> {
    let GetPromptParams { name, arguments, meta } = match extent {
        ReadExtent::Whole => params::read_with_meta::<GetPromptParams<BTreeMap<String, String>>>(params)?,
        ReadExtent::Target => {
            let GetPromptParams { name, arguments: IgnoredAny, meta } = params::read_with_meta(params)?;
            GetPromptParams { name, arguments: BTreeMap::new(), meta }
        }
    };
    Ok(EntryParams { request: CallRequest::Prompt { name, arguments }, meta, task: None, unreadable: None })
}
