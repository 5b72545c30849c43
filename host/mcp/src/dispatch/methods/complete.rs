//! `completion/complete`: parses the argument that a user is typing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolbay_model::{CallRequest, CompletionReference, CompletionRequest};

use crate::exchange::resource_subscriptions::MAX_URI_BYTES;
use crate::plugin_request::entry_params::{EntryParams, ReadExtent, RequestMeta};
use crate::protocol::jsonrpc::{Error, INVALID_PARAMS};
use crate::protocol::lenient_object::object;
use crate::protocol::params;

#[derive(Deserialize)]
struct CompleteParams {
    #[serde(rename = "ref")]
    reference: CompleteReference,
    argument: CompleteArgument,
    #[serde(default, deserialize_with = "object")]
    context: CompleteContext,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: RequestMeta,
}

/// The parameters without the user's input, for a request that is rejected regardless of it.
#[derive(Deserialize)]
struct CompleteTarget {
    #[serde(rename = "ref")]
    reference: CompleteReference,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: RequestMeta,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum CompleteReference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Default, Deserialize)]
struct CompleteArgument {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
struct CompleteContext {
    #[serde(default, deserialize_with = "object")]
    arguments: BTreeMap<String, String>,
}

/// Parses the parameters.
///
/// # Errors
///
/// Returns an error if the parameters are malformed, or if the URI is too long.
pub(crate) fn read(params: Option<&RawValue>, extent: ReadExtent) -> Result<EntryParams, Error> {
    let CompleteParams {
        reference,
        argument,
        context,
        meta,
    } = match extent {
        ReadExtent::Whole => params::read_with_meta(params)?,
        ReadExtent::Target => {
            let CompleteTarget { reference, meta } = params::read_with_meta(params)?;
            CompleteParams {
                reference,
                argument: CompleteArgument::default(),
                context: CompleteContext::default(),
                meta,
            }
        }
    };
    let reference = match reference {
        CompleteReference::Prompt { name } => CompletionReference::Prompt(name),
        CompleteReference::Resource { uri } if uri.len() <= MAX_URI_BYTES => {
            CompletionReference::Resource(uri)
        }
        CompleteReference::Resource { uri } => {
            let reason = format!(
                "a URI template has at most {MAX_URI_BYTES} bytes, and this one has {}",
                uri.len()
            );
            return Err(Error::new(INVALID_PARAMS, reason));
        }
    };
    let CompleteArgument {
        name: argument,
        value,
    } = argument;
    let request = CompletionRequest {
        reference,
        argument,
        value,
        context: context.arguments,
    };
    Ok(EntryParams::new(CallRequest::Completion(request), meta))
}
