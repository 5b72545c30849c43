//! Functions that run before the state of a plugin is captured.

use toolbay_model::text::clean_line;
use wasmtime::Store;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Instance, Val};

use super::init_failure::InitFailure;
use crate::compile::preinit::INITIALIZE_EXPORT;
use crate::component::contract_interface::ContractInterface;
use crate::prepare::prepared_component::PreparedComponent;
use crate::reply::guest_reply::GuestFailure;
use crate::store::state::StoreState;

/// Maximum length of quoted plugin text, in bytes.
const MAX_QUOTED_BYTES: usize = 300;

/// A call that runs before the state is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// The tool's name, as the plugin lists it.
    pub tool: String,
    /// Its arguments, a JSON object.
    pub arguments: String,
}

/// Runs the initialization function, the list functions and `calls`. Returns their names.
pub(super) async fn warm_up(
    store: &mut Store<StoreState>,
    instance: &Instance,
    (component, prepared): (&Component, &PreparedComponent),
    calls: &[WarmUp],
) -> wasmtime::Result<Vec<String>> {
    let mut ran = Vec::new();
    if run_initialize(store, instance, component).await? {
        ran.push(INITIALIZE_EXPORT.to_owned());
    }
    let engine = store.engine().clone();
    let mut tools = None;
    for (name, _) in component.component_type().exports(&engine) {
        let lists: &[&str] = match ContractInterface::from_export(name) {
            Some((ContractInterface::Tools, _)) => {
                tools = Some(name.to_owned());
                &["list-tools"]
            }
            Some((ContractInterface::Prompts, _)) => &["list-prompts"],
            Some((ContractInterface::Resources, _)) => {
                &["list-resources", "list-resource-templates"]
            }
            Some((ContractInterface::Completion, _)) | None => &[],
        };
        for list in lists {
            call(store, instance, Some(name), list, &[]).await?;
            ran.push((*list).to_owned());
        }
    }
    for warm_up in calls {
        let failure = call_tool(store, instance, prepared, tools.as_deref(), warm_up).await?;
        let tool = clean_line(&warm_up.tool, MAX_QUOTED_BYTES);
        if let Some(failure) = failure {
            return Err(InitFailure(format!(
                "the call of {tool} failed: {}",
                clean_line(&failure, MAX_QUOTED_BYTES)
            ))
            .into());
        }
        ran.push(format!("call {tool}"));
    }
    Ok(ran)
}

/// Runs the initialization function. Returns whether there is one.
async fn run_initialize(
    store: &mut Store<StoreState>,
    instance: &Instance,
    component: &Component,
) -> wasmtime::Result<bool> {
    let engine = store.engine().clone();
    let ty = component.component_type();
    let Some(item) = ty.get_export(&engine, INITIALIZE_EXPORT) else {
        return Ok(false);
    };
    let ComponentItem::ComponentFunc(ty) = item.ty else {
        return Err(
            InitFailure(format!("its export {INITIALIZE_EXPORT} is not a function")).into(),
        );
    };
    if ty.params().len() + ty.results().len() > 0 {
        let why = format!(
            "its function {INITIALIZE_EXPORT} has parameters or a result; it must have neither"
        );
        return Err(InitFailure(why).into());
    }
    call(store, instance, None, INITIALIZE_EXPORT, &[]).await?;
    Ok(true)
}

/// Calls a tool: a plain function, or through the contract's `interface` for tools. Returns the
/// text of the plugin's failure; `None` if the call succeeded.
async fn call_tool(
    store: &mut Store<StoreState>,
    instance: &Instance,
    prepared: &PreparedComponent,
    interface: Option<&str>,
    WarmUp { tool, arguments }: &WarmUp,
) -> wasmtime::Result<Option<String>> {
    let answer = prepared
        .call_function(store, *instance, tool, arguments)
        .await?;
    if let Some(answer) = answer {
        return Ok(answer.err().map(GuestFailure::into_text));
    }
    let Some(interface) = interface else {
        return Ok(Some("it has no tools that can be called".to_owned()));
    };
    let arguments = [Val::String(tool.clone()), Val::String(arguments.clone())];
    let answer = call(store, instance, Some(interface), "call-tool", &arguments).await?;
    Ok(match answer {
        Some(Val::Result(Err(failure))) => Some(failure_text(failure.map(|failure| *failure))),
        _ => None,
    })
}

/// Returns the text of a plugin's failure. Each case of the contract's error has one text.
fn failure_text(failure: Option<Val>) -> String {
    match failure {
        Some(Val::Variant(_, Some(payload))) => failure_text(Some(*payload)),
        Some(Val::String(text)) => text,
        _ => "it states no reason".to_owned(),
    }
}

/// Calls an exported function that returns at most one value.
async fn call(
    store: &mut Store<StoreState>,
    instance: &Instance,
    interface: Option<&str>,
    function: &str,
    arguments: &[Val],
) -> wasmtime::Result<Option<Val>> {
    let missing = || wasmtime::Error::from(InitFailure(format!("it does not export {function}")));
    let within = match interface {
        Some(interface) => Some(
            instance
                .get_export_index(&mut *store, None, interface)
                .ok_or_else(missing)?,
        ),
        None => None,
    };
    let index = instance
        .get_export_index(&mut *store, within.as_ref(), function)
        .ok_or_else(missing)?;
    let function = instance.get_func(&mut *store, index).ok_or_else(missing)?;
    let mut results = vec![Val::Bool(false); function.ty(&*store).results().len()];
    function
        .call_async(&mut *store, arguments, &mut results)
        .await?;
    Ok(results.into_iter().next())
}
