//! `tools/call`: parses the name and the arguments of a call.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolbay_model::CallRequest;

use crate::plugin_request::entry_params::{EntryParams, ReadExtent, RequestMeta};
use crate::protocol::argument_errors::{find_unreadable, raw_arguments};
use crate::protocol::jsonrpc::Error;
use crate::protocol::lenient_object::object;
use crate::protocol::params;
use crate::protocol::sent_arguments::UndecodedArguments;

#[derive(Deserialize)]
struct CallToolParams {
    name: String,
    #[serde(default, deserialize_with = "object")]
    arguments: Map<String, Value>,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: RequestMeta,
    task: Option<Box<RawValue>>,
}

/// The parameters without the arguments, which are not parsed.
#[derive(Deserialize)]
struct CallToolTarget {
    name: String,
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
    if extent == ReadExtent::Target {
        return read_target(params);
    }
    match params::read_with_meta(params) {
        Ok(CallToolParams {
            name,
            arguments,
            meta,
            task,
        }) => Ok(EntryParams {
            task,
            ..EntryParams::new(CallRequest::Tool { name, arguments }, meta)
        }),
        // Valid JSON of the wrong shape is the model's mistake: it is reported like every other
        // mistake in the arguments.
        Err(error) => {
            let Some(undecoded) = params
                .and_then(raw_arguments)
                .and_then(UndecodedArguments::new)
            else {
                return Err(error);
            };
            let target = read_target(params)?;
            Ok(match undecoded {
                UndecodedArguments::Packed(text) => EntryParams {
                    arguments_text: Some(text),
                    ..target
                },
                UndecodedArguments::Object(object) => EntryParams {
                    unreadable: Some(Box::new(find_unreadable(object))),
                    ..target
                },
                UndecodedArguments::Unreadable(violation) => EntryParams {
                    unreadable: Some(Box::new(violation)),
                    ..target
                },
            })
        }
    }
}

/// Parses the parameters, and ignores the arguments.
fn read_target(params: Option<&RawValue>) -> Result<EntryParams, Error> {
    let CallToolTarget { name, meta, task } = params::read_with_meta(params)?;
    Ok(EntryParams {
        task,
        ..EntryParams::new(
            CallRequest::Tool {
                name,
                arguments: Map::new(),
            },
            meta,
        )
    })
}
