//! Components that were not built for Toolbay: each exported plain function becomes a tool.

mod schema;
#[cfg(test)]
mod tests;
mod value;
mod wit_type;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use toolbay_model::text::{clean_line, format_thousands};
use toolbay_model::{ComponentDescription, MAX_MCP_TOOL_NAME_BYTES, ToolDefinition};
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre, Val};
use wasmtime::{Engine, Store};

use self::schema::ValueDirection;
use self::wit_type::{SignatureBudget, WitType};
use crate::compile::preinit::{ACCESS_EXPORT, INITIALIZE_EXPORT};
use crate::component::docs::{ComponentDocs, FunctionDocs, RESULT_PREFIX};
use crate::reply::block::RawBlock;
use crate::reply::guest_reply::{GuestFailure, ToolResult};
use crate::store::state::StoreState;

/// The member that wraps a value in structured content, because structured content must be an
/// object.
const RESULT_MEMBER: &str = "result";

/// Maximum number of refused functions that are listed by name, with the reasons.
const MAX_REFUSED_LISTED: usize = 32;

/// Maximum length of a description that is generated from types, in bytes. The schemas contain the
/// types, too.
const MAX_SUMMARY_BYTES: usize = 200;

/// Maximum length of a function name in a refusal message, in bytes.
const MAX_FUNCTION_NAME_BYTES: usize = 200;

/// The functions of a component that can be tools.
pub(crate) struct FunctionTools {
    pre: InstancePre<StoreState>,
    /// The functions, by tool name.
    by_tool: BTreeMap<String, FunctionTool>,
    /// Messages about the functions that are not offered, with the reasons.
    rejections: Vec<String>,
}

/// A function that a tool calls.
struct FunctionTool {
    /// The interface that contains it, or `None` for a function of the world.
    interface: Option<String>,
    name: String,
    export: ComponentExportIndex,
    parameters: Vec<(String, WitType)>,
    returns: ReturnType,
}

/// The return type of a function.
enum ReturnType {
    Nothing,
    Value(WitType),
    /// A `result`. Its error becomes the failure of the tool.
    Result(Option<WitType>, Option<WitType>),
}

/// An exported function.
struct FunctionExport {
    interface: Option<String>,
    name: String,
    index: ComponentExportIndex,
    ty: ComponentFunc,
}

/// Finds the exported functions of a component that can become tools.
///
/// # Errors
///
/// Returns the reasons if there are no such functions. The text is empty if the component exports
/// no functions.
pub(crate) fn find_functions(
    engine: &Engine,
    component: &Component,
) -> Result<UnlinkedFunctions, String> {
    let exports = exported_functions(engine, component);
    let names = choose_tool_names(&exports);
    let mut functions = UnlinkedFunctions::default();
    let mut budget = SignatureBudget::default();
    let mut omitted_count = 0_u64;
    for (export, tool) in exports.into_iter().zip(names) {
        let export_name = match &export.interface {
            Some(interface) => format!("{interface}#{}", export.name),
            None => export.name.clone(),
        };
        match FunctionTool::new(export, &tool, &mut budget) {
            Ok(function) => drop(functions.by_tool.insert(tool, function)),
            Err(why) if functions.rejections.len() < MAX_REFUSED_LISTED => {
                functions.rejections.push(format!(
                    "function {} is not offered: {why}",
                    clean_line(&export_name, MAX_FUNCTION_NAME_BYTES)
                ));
            }
            Err(_) => omitted_count += 1,
        }
    }
    if omitted_count > 0 {
        functions.rejections.push(format!(
            "{} further functions are not offered",
            format_thousands(omitted_count)
        ));
    }
    if functions.by_tool.is_empty() {
        Err(functions.rejections.join("; "))
    } else {
        Ok(functions)
    }
}

/// The functions that [`find_functions`] returns, before the component is linked.
#[derive(Default)]
pub(crate) struct UnlinkedFunctions {
    by_tool: BTreeMap<String, FunctionTool>,
    rejections: Vec<String>,
}

impl UnlinkedFunctions {
    /// Returns `preferred`, with a numeric suffix if a tool already has this name.
    pub(crate) fn free_name(&self, preferred: &str) -> String {
        let numbered = (2..).map(|n| format!("{preferred}_{n}"));
        let mut names = std::iter::once(preferred.to_owned()).chain(numbered);
        names
            .find(|name| !self.by_tool.contains_key(name))
            .unwrap_or_default()
    }

    /// Adds the linked component.
    pub(crate) fn link(self, pre: InstancePre<StoreState>) -> FunctionTools {
        FunctionTools {
            pre,
            by_tool: self.by_tool,
            rejections: self.rejections,
        }
    }
}

/// Returns every exported function, except those of WASI and those that runtimes add.
fn exported_functions(engine: &Engine, component: &Component) -> Vec<FunctionExport> {
    let mut exports = Vec::new();
    let ty = component.component_type();
    for (name, item) in ty.exports(engine) {
        let Some(index) = component.get_export_index(None, name) else {
            continue;
        };
        match item.ty {
            ComponentItem::ComponentFunc(ty) if !is_runtime_helper(name) => {
                exports.push(FunctionExport {
                    interface: None,
                    name: name.to_owned(),
                    index,
                    ty,
                });
            }
            ComponentItem::ComponentInstance(instance)
                if !name.starts_with("wasi:") && !is_runtime_helper(name) =>
            {
                for (function, item) in instance.exports(engine) {
                    let Some(index) = component.get_export_index(Some(&index), function) else {
                        continue;
                    };
                    if let ComponentItem::ComponentFunc(ty) = item.ty {
                        exports.push(FunctionExport {
                            interface: Some(name.to_owned()),
                            name: function.to_owned(),
                            index,
                            ty,
                        });
                    }
                }
            }
            _ => {}
        }
    }
    exports
}

/// Returns whether `name` is a function that componentize-qjs or componentize-py adds, or that
/// `toolbay optimize` calls.
pub(crate) fn is_runtime_helper(name: &str) -> bool {
    matches!(
        name,
        "init" | "exports" | "exports#init" | INITIALIZE_EXPORT | ACCESS_EXPORT
    )
}

/// Chooses the names of the tools: the name of the function if it is unique. Otherwise, the name of
/// the interface precedes it, or if necessary the full name of the export.
fn choose_tool_names(exports: &[FunctionExport]) -> Vec<String> {
    let short = |export: &FunctionExport| export.name.clone();
    let middle = |export: &FunctionExport| match &export.interface {
        Some(interface) => {
            let last = interface.rsplit('/').next().unwrap_or_default();
            format!(
                "{}_{}",
                last.split('@').next().unwrap_or_default(),
                export.name
            )
        }
        None => export.name.clone(),
    };
    let long = |export: &FunctionExport| match &export.interface {
        Some(interface) => format!(
            "{}_{}",
            interface.replace([':', '/', '@', '+'], "_"),
            export.name
        ),
        None => export.name.clone(),
    };
    let count = |name_of: &dyn Fn(&FunctionExport) -> String| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for export in exports {
            *counts.entry(name_of(export)).or_default() += 1;
        }
        counts
    };
    let short_counts = count(&short);
    let middle_counts = count(&middle);
    let mut used_names = BTreeSet::new();
    let choose_name = |export: &FunctionExport| {
        let preferred =
            if short_counts.get(&short(export)) == Some(&1) || export.interface.is_none() {
                short(export)
            } else if middle_counts.get(&middle(export)) == Some(&1) {
                middle(export)
            } else {
                long(export)
            };
        let numbered = (2..).map(|n| format!("{preferred}_{n}"));
        let name = std::iter::once(preferred.clone())
            .chain(numbered)
            .find(|name| !used_names.contains(name))
            .unwrap_or(preferred);
        used_names.insert(name.clone());
        name
    };
    exports.iter().map(choose_name).collect()
}

impl FunctionTool {
    fn new(
        export: FunctionExport,
        tool: &str,
        budget: &mut SignatureBudget,
    ) -> Result<Self, String> {
        if tool.len() > MAX_MCP_TOOL_NAME_BYTES {
            return Err(format!(
                "its name is longer than {MAX_MCP_TOOL_NAME_BYTES} characters"
            ));
        }
        if export.name.starts_with('[') {
            return Err("it is a method of a resource".into());
        }
        budget.start_signature();
        let parameters = export
            .ty
            .params()
            .map(|(name, ty)| Ok((budget.take_name(name)?, WitType::from_type(&ty, budget)?)));
        let parameters = parameters.collect::<Result<_, String>>()?;
        let returns = match export.ty.results().next() {
            None => ReturnType::Nothing,
            Some(ty) => match WitType::from_type(&ty, budget)? {
                WitType::Result(ok, err) => {
                    ReturnType::Result(ok.map(|shape| *shape), err.map(|shape| *shape))
                }
                shape => ReturnType::Value(shape),
            },
        };
        let function = Self {
            interface: export.interface,
            name: export.name,
            export: export.index,
            parameters,
            returns,
        };
        // The schemas must be valid in `tools/list`.
        let definition = function.definition(tool, None);
        let schemas = std::iter::once(definition.input_schema).chain(definition.output_schema);
        for schema in schemas {
            toolbay_schema::JsonSchema::compile(&schema)
                .map_err(|why| format!("its JSON Schema {why}"))?;
        }
        Ok(function)
    }

    /// Returns a description for a function without documentation: its signature in WIT notation,
    /// or only the names if the signature is long.
    fn summary(&self) -> String {
        let signature = self.signature();
        if signature.len() <= MAX_SUMMARY_BYTES {
            return signature;
        }
        let names: Vec<&str> = self
            .parameters
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        clean_line(
            &format!("{}({})", self.name, names.join(", ")),
            MAX_SUMMARY_BYTES,
        )
    }

    /// Formats the function in WIT notation.
    fn signature(&self) -> String {
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|(name, shape)| format!("{name}: {shape}"))
            .collect();
        let returns = match &self.returns {
            ReturnType::Nothing => String::new(),
            ReturnType::Value(shape) => format!(" -> {shape}"),
            ReturnType::Result(ok, err) => {
                let boxed = |shape: &Option<WitType>| shape.clone().map(Box::new);
                format!(" -> {}", WitType::Result(boxed(ok), boxed(err)))
            }
        };
        format!("{}: func({}){returns}", self.name, parameters.join(", "))
    }

    fn definition(&self, tool: &str, docs: Option<&FunctionDocs>) -> ToolDefinition {
        let docs_at = |path: &str| docs.and_then(|docs| docs.parts.get(path).cloned());
        let input = schema::object_schema(&self.parameters, ValueDirection::Input, "", &docs_at);
        let output = self.returns.success_type().filter(|shape| **shape != WitType::String).map(|shape| match shape {
            WitType::Record(fields) => schema::object_schema(fields, ValueDirection::Output, RESULT_PREFIX, &docs_at),
            shape => json!({
                "type": "object",
                "properties": {RESULT_MEMBER: schema::type_schema(shape, ValueDirection::Output, RESULT_PREFIX, &docs_at)},
                "required": [RESULT_MEMBER],
                "additionalProperties": false,
            }),
        });
        ToolDefinition {
            name: tool.to_owned(),
            // The types are better than no description.
            description: Some(
                docs.and_then(|docs| docs.text.clone())
                    .unwrap_or_else(|| self.summary()),
            ),
            input_schema: input.to_string(),
            output_schema: output.map(|schema| schema.to_string()),
            ..ToolDefinition::default()
        }
    }

    /// Converts the returned value to the result of the tool. Returns `None` if it does not match
    /// the type.
    fn convert_results(&self, results: &[Val]) -> Option<Result<ToolResult, GuestFailure>> {
        let payload = |shape: &Option<WitType>, value: &Option<Box<Val>>| match (shape, value) {
            (Some(shape), Some(value)) => to_tool_result(shape, value),
            _ => Some(ToolResult::default()),
        };
        Some(Ok(match (&self.returns, results) {
            (ReturnType::Nothing, _) => ToolResult::default(),
            (ReturnType::Value(shape), [value]) => to_tool_result(shape, value)?,
            (ReturnType::Result(ok, _), [Val::Result(Ok(value))]) => payload(ok, value)?,
            (ReturnType::Result(_, err), [Val::Result(Err(value))]) => {
                let text = match (err, value.as_deref()) {
                    (Some(_), Some(Val::String(text))) => text.clone(),
                    (Some(shape), Some(value)) => value::to_json(shape, value)?.to_string(),
                    _ => "The function failed without a message.".to_owned(),
                };
                return Some(Err(GuestFailure::Failed(text)));
            }
            _ => return None,
        }))
    }
}

impl ReturnType {
    /// Returns the type of the value of a success.
    fn success_type(&self) -> Option<&WitType> {
        match self {
            Self::Nothing | Self::Result(None, _) => None,
            Self::Value(shape) | Self::Result(Some(shape), _) => Some(shape),
        }
    }
}

impl FunctionTools {
    /// Returns the tools, with the author's documentation.
    pub(crate) fn definitions(&self, docs: &ComponentDocs) -> Vec<ToolDefinition> {
        let definition = |(tool, function): (&String, &FunctionTool)| {
            function.definition(
                tool,
                docs.get(function.interface.as_deref(), &function.name),
            )
        };
        self.by_tool.iter().map(definition).collect()
    }

    /// Returns the names of the tools in `description` that have only a generated description.
    pub(crate) fn undocumented_tools(&self, description: &ComponentDescription) -> Vec<String> {
        let is_undocumented = |tool: &&ToolDefinition| {
            let function = self.by_tool.get(&tool.name);
            function.is_some_and(|function| tool.description.as_ref() == Some(&function.summary()))
        };
        description
            .tools
            .iter()
            .filter(is_undocumented)
            .map(|tool| tool.name.clone())
            .collect()
    }

    /// Returns messages about the functions that are not offered.
    pub(crate) fn rejections(&self) -> &[String] {
        &self.rejections
    }

    /// Calls the function of `tool` in the instance `existing`, or in a new one.
    pub(crate) async fn call(
        &self,
        store: &mut Store<StoreState>,
        existing: Option<Instance>,
        tool: &str,
        arguments: &str,
    ) -> wasmtime::Result<Result<ToolResult, GuestFailure>> {
        let Some(function) = self.by_tool.get(tool) else {
            return Ok(Err(GuestFailure::Failed(format!(
                "There is no function named {tool}."
            ))));
        };
        // wasmtime limits the values that a guest passes to the host. Apply the same limit to those
        // that the guest receives.
        let mut remaining_values = store.hostcall_fuel() / size_of::<Val>();
        let arguments: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
        let parameters =
            match value::from_object(&function.parameters, &arguments, "", &mut remaining_values) {
                Ok(parameters) => parameters,
                Err(why) => return Ok(Err(GuestFailure::InvalidArguments(why))),
            };
        drop(arguments);
        let instance = match existing {
            Some(instance) => instance,
            None => self.pre.instantiate_async(&mut *store).await?,
        };
        let Some(callee) = instance.get_func(&mut *store, function.export) else {
            wasmtime::bail!("its function {tool} no longer exists");
        };
        let mut results = match function.returns {
            ReturnType::Nothing => vec![],
            _ => vec![Val::Bool(false)],
        };
        callee
            .call_async(&mut *store, &parameters, &mut results)
            .await?;
        match function.convert_results(&results) {
            Some(result) => Ok(result),
            None => {
                wasmtime::bail!("its function {tool} returned a value that does not match its type")
            }
        }
    }
}

/// Converts a value to a result: text stays text, and any other value becomes structured content.
fn to_tool_result(shape: &WitType, value: &Val) -> Option<ToolResult> {
    if let (WitType::String, Val::String(text)) = (shape, value) {
        return Some(ToolResult {
            content: vec![RawBlock::text(text.clone())],
            ..ToolResult::default()
        });
    }
    let mut json = value::to_json(shape, value)?;
    if !matches!(shape, WitType::Record(_)) {
        json = json!({RESULT_MEMBER: json});
    }
    Some(ToolResult {
        structured: Some(json.to_string()),
        ..ToolResult::default()
    })
}
