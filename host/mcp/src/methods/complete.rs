//! `completion/complete`: an argument that a user is typing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolbay_model::{CompletionRequest, Reference, Request};

use crate::entry::{Asked, Extent, Meta};
use crate::jsonrpc::{Error, INVALID_PARAMS};
use crate::object::object;
use crate::params;
use crate::updates::LONGEST;

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "ref")]
    reference: Ref,
    argument: Argument,
    #[serde(default, deserialize_with = "object")]
    context: Context,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: Meta,
}

/// The parameters of a request that is rejected whatever the user typed.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "ref")]
    reference: Ref,
    #[serde(rename = "_meta", default, deserialize_with = "object")]
    meta: Meta,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Ref {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Default, Deserialize)]
struct Argument {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
struct Context {
    #[serde(default, deserialize_with = "object")]
    arguments: BTreeMap<String, String>,
}

/// Reads the parameters.
///
/// # Errors
///
/// They are malformed, or the URI is longer than that of any resource.
pub(crate) fn read(params: Option<&RawValue>, extent: Extent) -> Result<Asked, Error> {
    let Params { reference, argument, context, meta } = match extent {
        Extent::Whole => params::read_with_meta(params)?,
        Extent::Target => {
            let Head { reference, meta } = params::read_with_meta(params)?;
            Params { reference, argument: Argument::default(), context: Context::default(), meta }
        }
    };
    let reference = match reference {
        Ref::Prompt { name } => Reference::Prompt(name),
        Ref::Resource { uri } if uri.len() <= LONGEST => Reference::Resource(uri),
        Ref::Resource { uri } => {
            let what = format!("a URI template has at most {LONGEST} bytes, and this one has {}", uri.len());
            return Err(Error::new(INVALID_PARAMS, what));
        }
    };
    let Argument { name: argument, value } = argument;
    let request = CompletionRequest { reference, argument, value, context: context.arguments };
    Ok(Asked { request: Request::Completion(request), meta, task: None, unreadable: None })
}
