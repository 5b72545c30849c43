//! `resources/read`: parses the URI of a resource.

use serde::Deserialize;
use serde_json::value::RawValue;
use toolbay_model::CallRequest;

use crate::exchange::resource_subscriptions::MAX_URI_BYTES;
use crate::plugin_request::entry_params::{EntryParams, ReadExtent, RequestMeta};
use crate::protocol::jsonrpc::{Error, INVALID_PARAMS};
use crate::protocol::lenient_object::object;
use crate::protocol::params;

#[derive(Deserialize)]
struct ReadResourceParams {
    uri: String,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: RequestMeta,
}

/// Parses the parameters. They contain only the target, so the extent does not apply.
///
/// # Errors
///
/// Returns an error if the parameters are malformed, or if the URI is too long.
pub(crate) fn read(params: Option<&RawValue>, _extent: ReadExtent) -> Result<EntryParams, Error> {
    let ReadResourceParams { uri, meta } = params::read_with_meta(params)?;
    if uri.len() > MAX_URI_BYTES {
        let reason = format!(
            "the URI of a resource has at most {MAX_URI_BYTES} bytes, and this one has {}",
            uri.len()
        );
        return Err(Error::new(INVALID_PARAMS, reason));
    }
    Ok(EntryParams::new(CallRequest::Resource { uri }, meta))
}
