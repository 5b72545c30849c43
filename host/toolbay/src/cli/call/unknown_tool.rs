//! The message about an unknown tool.

use std::fmt::Write as _;

use toolbay_catalog::{PluginFileStatus, Snapshot};
use toolbay_model::text::clean_line;
use toolbay_model::{similar_names, suggestion_question};

use crate::cli::output::count_noun;
use crate::cli::result::MAX_PROBLEM_BYTES;

/// Maximum number of full names that are printed for a name without its prefix.
const MAX_NAMES: usize = 10;

/// Returns the message about an unknown tool: the names that the user probably meant, and the
/// problems of plugins only if they name the tool.
pub(in crate::cli) fn unknown_tool_message(tool: &str, snapshot: &Snapshot) -> String {
    let matching_tools = snapshot
        .tools
        .iter()
        .filter(|(_, offer)| offer.definition.tool.name == tool);
    let prefixed: Vec<String> = matching_tools
        .map(|(name, _)| format!("{name:?}"))
        .take(MAX_NAMES)
        .collect();
    let similar = similar_names(tool, snapshot.tools.keys().map(String::as_str));
    let mut message = if !prefixed.is_empty() {
        format!(
            "unknown tool {tool:?}; its full name is {}",
            prefixed.join(" or ")
        )
    } else if snapshot.prompts.contains_key(tool) {
        format!("{tool:?} is a prompt, not a tool: clients get it with prompts/get")
    } else if let Some(question) = suggestion_question(&similar) {
        format!("unknown tool {tool:?}; {question}")
    } else {
        format!("unknown tool {tool:?}; `toolbay list` shows the available tools")
    };
    let mut problem_count = 0;
    for (id, report) in &snapshot.plugins {
        problem_count += usize::from(!report.problems.is_empty());
        let refused = if report.status == PluginFileStatus::Refused {
            " was refused"
        } else {
            ""
        };
        let is_named = |problem: &&String| id == tool || problem.contains(&format!("{tool:?}"));
        for problem in report.problems.iter().filter(is_named).take(MAX_NAMES) {
            let _ = write!(
                message,
                "\n  plugin {id:?}{refused}: {}",
                clean_line(problem, MAX_PROBLEM_BYTES)
            );
        }
    }
    // Any of these plugins may provide the tool.
    if problem_count > 0 {
        let _ = write!(
            message,
            "\n  {} with problems may offer it: `toolbay list` shows them",
            count_noun(problem_count, "plugin")
        );
    }
    message
}
