//! `prompts/get`: parses the name of a prompt, and the arguments to fill in.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolbay_model::CallRequest;

use crate::plugin_request::entry_params::{EntryParams, ReadExtent, RequestMeta};
use crate::protocol::argument_errors::raw_arguments;
use crate::protocol::jsonrpc::Error;
use crate::protocol::lenient_object::object;
use crate::protocol::params;
use crate::protocol::sent_arguments::{self, UndecodedArguments};

#[derive(Deserialize)]
struct GetPromptParams {
    name: String,
    #[serde(default, deserialize_with = "object")]
    arguments: BTreeMap<String, String>,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: RequestMeta,
}

/// The parameters without the arguments, which are not parsed.
#[derive(Deserialize)]
struct GetPromptTarget {
    name: String,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: RequestMeta,
}

/// Parses the parameters.
///
/// # Errors
///
/// Returns an error if the parameters are malformed.
pub(crate) fn read(params: Option<&RawValue>, extent: ReadExtent) -> Result<EntryParams, Error> {
    if extent == ReadExtent::Target {
        return read_target(params);
    }
    match params::read_with_meta(params) {
        Ok(GetPromptParams {
            name,
            arguments,
            meta,
        }) => Ok(EntryParams::new(
            CallRequest::Prompt { name, arguments },
            meta,
        )),
        // Arguments of the wrong type are reported like every other mistake in the arguments.
        Err(error) => {
            let Some(undecoded) = params
                .and_then(raw_arguments)
                .and_then(UndecodedArguments::new)
            else {
                return Err(error);
            };
            let mut target = read_target(params)?;
            match undecoded {
                UndecodedArguments::Packed(text) => target.arguments_text = Some(text),
                UndecodedArguments::Object(object) => {
                    target.set_prompt_arguments(sent_arguments::read_prompt(object));
                }
                UndecodedArguments::Unreadable(violation) => {
                    target.unreadable = Some(Box::new(violation));
                }
            }
            Ok(target)
        }
    }
}

/// Parses the parameters, and ignores the arguments.
fn read_target(params: Option<&RawValue>) -> Result<EntryParams, Error> {
    let GetPromptTarget { name, meta } = params::read_with_meta(params)?;
    Ok(EntryParams::new(
        CallRequest::Prompt {
            name,
            arguments: BTreeMap::new(),
        },
        meta,
    ))
}
