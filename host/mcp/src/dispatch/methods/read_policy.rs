//! `resources/read` of `toolbay://policy`: what the server enforces for the tools that a caller can
//! see. No plugin can provide this resource.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolbay_model::{EmbeddedResource, ResourceContent, ResourceItem};

use crate::dispatch::methods::MethodResult;
use crate::host::caller::Caller;
use crate::protocol::revision::Revision;
use crate::response::{call_response, result_encoding};
use crate::session::client_session::Session;

/// URI of the resource.
pub(crate) const POLICY_URI: &str = "toolbay://policy";

/// Maximum size of parameters that are searched for the URI, in bytes.
const MAX_PARAMS_BYTES: usize = 16 << 10;

/// Returns whether the parameters of `resources/read` request the policy.
pub(crate) fn is_requested(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct RequestedUri<'a> {
        #[serde(borrow)]
        uri: Cow<'a, str>,
    }
    params
        .map(RawValue::get)
        .filter(|text| text.len() <= MAX_PARAMS_BYTES)
        .and_then(|text| serde_json::from_str::<RequestedUri<'_>>(text).ok())
        .is_some_and(|requested| requested.uri == POLICY_URI)
}

/// Returns the policy as JSON, of the plugins that are loaded by now.
///
/// # Errors
///
/// The host has no policy.
pub(crate) fn answer(session: &Session, caller: &Caller, revision: Revision) -> MethodResult {
    let policy = session.server.lists().policy(&caller.rights);
    let policy =
        policy.ok_or_else(|| call_response::not_found_at(POLICY_URI, "Resource not found"))?;
    let item = ResourceItem {
        resource: EmbeddedResource {
            uri: POLICY_URI.to_owned(),
            mime_type: Some("application/json".to_owned()),
            content: ResourceContent::Text(policy.to_string()),
        },
        meta: serde_json::Map::new(),
    };
    Ok(result_encoding::resource_result(vec![item], revision))
}
