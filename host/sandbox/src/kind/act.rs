//! Components that offer their tools through the interface of ACT (`act:tools/tool-provider`, 0.1
//! and 0.2). It has one function that lists the tools and one that calls any of them. These
//! components do not depend on Toolbay.
//!
//! Arguments and metadata are CBOR. A result is a list of events, or a stream of events that the
//! guest writes while it runs. The first error ends the result. Its parts are interpreted later, by
//! [`result_parts`](crate::reply::result_parts). Calls are sent without metadata and without a
//! session.

mod events;
mod hints;
mod tools;
mod types;

use semver::Version;
use serde_json::Value;
use toolbay_model::text::{clean_line, join_lines};
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre};
use wasmtime::{Engine, Store};

use self::types::{
    ActError, CallParams, CallResults, ListParams, ListResults, ToolEvent, ToolResult,
};
use crate::component::prepare_error::PrepareError;
use crate::reply::cbor;
use crate::reply::guest_reply::{GuestFailure, GuestReply, ResultPart};
use crate::reply::raw_description::RawDescription;
use crate::store::state::StoreState;

/// The name of the interface, without its version.
const TOOL_PROVIDER_PREFIX: &str = "act:tools/tool-provider@";

/// Prefixes of similar interfaces that are not supported: those of versions before 0.1, and those
/// for ACT's adapters.
const UNSUPPORTED_PREFIXES: [&str; 2] = ["act:tools", "act:core/tool-provider"];

const LIST_TOOLS: &str = "list-tools";
const CALL_TOOL: &str = "call-tool";

/// The error kind for invalid arguments.
const INVALID_ARGUMENTS: &str = "std:invalid-args";

/// The error kind for a missing session.
const NO_SESSION: &str = "std:session-not-found";

/// Maximum size of a reported error kind, in bytes.
const MAX_ERROR_KIND_BYTES: usize = 100;

/// Maximum size of a reported listing error, in bytes.
const MAX_ERROR_BYTES: usize = 500;

/// A linked component of this kind.
pub(crate) struct LinkedActComponent {
    pre: InstancePre<StoreState>,
    /// The interface that it exports, with its version.
    interface: String,
    list: ComponentExportIndex,
    call: ComponentExportIndex,
}

/// Returns the newest supported interface among the exported names, or `None` if the component
/// exports no ACT tools.
///
/// # Errors
///
/// The component exports only unsupported versions of the interface.
pub(crate) fn find_interface<'a>(exports: &[&'a str]) -> Result<Option<&'a str>, PrepareError> {
    let version = |name: &&'a str| {
        let version = Version::parse(name.strip_prefix(TOOL_PROVIDER_PREFIX)?).ok()?;
        (version.pre.is_empty() && version.major == 0 && matches!(version.minor, 1 | 2))
            .then_some((version, *name))
    };
    if let Some((_, name)) = exports.iter().filter_map(version).max() {
        return Ok(Some(name));
    }
    match exports.iter().find(|name| {
        UNSUPPORTED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
    }) {
        Some(name) if !name.starts_with("act:tools/types") => Err(
            PrepareError::UnsupportedToolInterface(clean_line(name, MAX_ERROR_BYTES)),
        ),
        _ => Ok(None),
    }
}

impl LinkedActComponent {
    /// Checks the types of the functions, and creates the linked component.
    pub(crate) fn new(
        engine: &Engine,
        component: &Component,
        pre: InstancePre<StoreState>,
        interface: &str,
    ) -> Result<Self, PrepareError> {
        let ty = component.component_type();
        let differs =
            |why: String| PrepareError::ContractTypes(clean_line(interface, MAX_ERROR_BYTES), why);
        let Some(ComponentItem::ComponentInstance(instance)) =
            ty.get_export(engine, interface).map(|item| item.ty)
        else {
            return Err(differs("it is not an interface".to_owned()));
        };
        let function = |name: &str, check: &dyn Fn(&ComponentFunc) -> wasmtime::Result<()>| {
            let Some(ComponentItem::ComponentFunc(function)) =
                instance.get_export(engine, name).map(|item| item.ty)
            else {
                return Err(differs(format!("there is no function {name}")));
            };
            check(&function).map_err(|error| {
                differs(join_lines(&format!(
                    "{:#}",
                    error.context(format!("function {name}"))
                )))
            })?;
            let interface = component.get_export_index(None, interface);
            interface
                .and_then(|interface| component.get_export_index(Some(&interface), name))
                .ok_or_else(|| differs(format!("there is no function {name}")))
        };
        let instance_type = ty.instance_type();
        let list = function(LIST_TOOLS, &|function| {
            function.typecheck::<ListParams, ListResults>(&instance_type)
        })?;
        let call = function(CALL_TOOL, &|function| {
            function.typecheck::<CallParams, CallResults>(&instance_type)
        })?;
        Ok(Self {
            pre,
            interface: interface.to_owned(),
            list,
            call,
        })
    }

    /// Returns the interface that the component exports, with its version.
    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    /// Lists the tools of the guest.
    pub(crate) async fn list(
        &self,
        store: &mut Store<StoreState>,
    ) -> wasmtime::Result<RawDescription> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let list = instance.get_typed_func::<ListParams, ListResults>(&mut *store, self.list)?;
        // The future is large. Boxing keeps its size out of calls to other kinds of components.
        let (listed,) = Box::pin(list.call_async(store, (Vec::new(),))).await?;
        Ok(match listed {
            Ok(listed) => tools::convert_tools(listed.tools).into(),
            Err(error) => {
                let why = clean_line(&error_to_failure(error, "").into_text(), MAX_ERROR_BYTES);
                let refused = format!(
                    "its {LIST_TOOLS} failed: {why} (it was called without a grant, without metadata and without a session)"
                );
                RawDescription {
                    refusal_reason: Some(refused),
                    ..RawDescription::default()
                }
            }
        })
    }

    /// Calls a tool. The arguments are a JSON object.
    pub(crate) async fn call(
        &self,
        store: &mut Store<StoreState>,
        name: &str,
        arguments: &str,
    ) -> wasmtime::Result<Result<GuestReply, GuestFailure>> {
        let arguments: Value = serde_json::from_str(arguments)?;
        let arguments = match cbor::from_json(&arguments) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(Err(GuestFailure::InvalidArguments(why))),
        };
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let call = instance.get_typed_func::<CallParams, CallResults>(&mut *store, self.call)?;
        let params = (name.to_owned(), arguments, Vec::new());
        let calling = store.run_concurrent(async move |accessor| {
            let (result,) = call.call_concurrent(accessor, params).await?;
            match result {
                ToolResult::Immediate(events) => wasmtime::error::Ok(events),
                ToolResult::Streaming(stream) => events::read_stream(accessor, stream).await,
            }
        });
        let events = Box::pin(calling).await??;
        Ok(events_to_reply(events))
    }
}

/// Converts events to the parts of a result, or to its error.
fn events_to_reply(events: Vec<ToolEvent>) -> Result<GuestReply, GuestFailure> {
    let mut parts = Vec::new();
    for event in events {
        match event {
            ToolEvent::Content(part) => parts.push(ResultPart {
                data: part.data,
                mime_type: part.mime_type,
            }),
            ToolEvent::Error(error) => return Err(error_to_failure(error, &join_texts(&parts))),
        }
    }
    Ok(GuestReply::Parts(parts))
}

/// Joins the text parts that precede an error.
fn join_texts(parts: &[ResultPart]) -> String {
    let is_text = |part: &&ResultPart| {
        part.mime_type
            .as_ref()
            .is_some_and(|mime_type| mime_type.starts_with("text/"))
    };
    let texts = parts
        .iter()
        .filter(is_text)
        .filter_map(|part| str::from_utf8(&part.data).ok());
    texts.flat_map(|text| [text, "\n"]).collect()
}

/// Converts an error of the guest. `preceding_text` is the text that the tool returned before it.
fn error_to_failure(error: ActError, preceding_text: &str) -> GuestFailure {
    let ActError {
        kind,
        message,
        metadata: _,
    } = error;
    let message = message.into_text();
    let message = if message.trim().is_empty() {
        "The tool failed and did not say why."
    } else {
        message.as_str()
    };
    match kind.as_str() {
        INVALID_ARGUMENTS => GuestFailure::InvalidArguments(format!("{preceding_text}{message}")),
        NO_SESSION => GuestFailure::Failed(format!(
            "{preceding_text}{message} ({kind}: the server opens no sessions of act:sessions)"
        )),
        _ => GuestFailure::Failed(format!(
            "{preceding_text}{message} ({})",
            clean_line(&kind, MAX_ERROR_KIND_BYTES)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::types::{ContentPart, LocalizedString};
    use super::*;

    #[test]
    fn the_newest_interface_that_is_served_is_found() {
        let [first, second] = [
            "act:tools/tool-provider@0.1.0",
            "act:tools/tool-provider@0.2.3",
        ];
        assert_eq!(find_interface(&["a:b/c", first, second]), Ok(Some(second)));
        assert_eq!(
            find_interface(&[first, "act:sessions/session-provider@0.2.0"]),
            Ok(Some(first))
        );
        for nothing in [
            &[][..],
            &["a:b/c", "act:sessions/session-provider@0.2.0"],
            &["act:tools/types@0.2.0"],
        ] {
            assert_eq!(find_interface(nothing), Ok(None));
        }
        for other in [
            "act:tools/tool-provider@0.3.0",
            "act:tools/tool-provider@0.2.0-rc.1",
            "act:tools/tool-provider@1.1.0",
            "act:tools-sync/tool-provider-sync@0.1.0",
            "act:core/tool-provider@0.3.0",
        ] {
            assert_eq!(
                find_interface(&[other]),
                Err(PrepareError::UnsupportedToolInterface(other.to_owned()))
            );
        }
    }

    #[test]
    fn an_error_has_the_message_of_the_tool_and_its_kind() {
        let error = |kind: &str, message: &str| {
            ToolEvent::Error(ActError {
                kind: kind.into(),
                message: LocalizedString::Plain(message.into()),
                metadata: Vec::new(),
            })
        };
        let part = |mime: &str, data: &str| {
            let data = data.as_bytes().to_vec();
            let mime_type = Some(mime.to_owned());
            ToolEvent::Content(ContentPart {
                data,
                mime_type,
                metadata: Vec::new(),
            })
        };
        let refused = |events| match events_to_reply(events) {
            Err(GuestFailure::InvalidArguments(text)) => format!("invalid: {text}"),
            Err(GuestFailure::Failed(text)) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused(vec![error("std:not-found", "no b")]),
            "no b (std:not-found)"
        );
        assert_eq!(
            refused(vec![error("std:invalid-args", "no b")]),
            "invalid: no b"
        );
        assert_eq!(
            refused(vec![error("acme:x", " ")]),
            "The tool failed and did not say why. (acme:x)"
        );
        let session = refused(vec![error("std:session-not-found", "open one")]);
        assert_eq!(
            session,
            "open one (std:session-not-found: the server opens no sessions of act:sessions)"
        );
        let late = vec![
            part("text/plain", "half"),
            part("image/png", "x"),
            error("std:internal", "oh"),
            part("a/b", ""),
        ];
        assert_eq!(refused(late), "half\noh (std:internal)");
    }
}
