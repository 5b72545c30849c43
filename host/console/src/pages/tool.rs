//! The page of a tool: its description, a form to call it, and the result of the call.

use maud::{Markup, html};
use serde_json::Value;

use super::elements::{csrf_input, plugin_link};
use super::layout::{NavigationItem, layout};
use super::result::result;
use super::tool_trial::{ToolTrial, TrialOutcome};
use crate::form::{FieldKind, FieldValues, FormField, RAW_FIELD};
use crate::formatting::encode_query;
use crate::paths::PATH;
use crate::server_data::ToolDetail;
use crate::sessions::ConsoleSession;

/// Maximum size of a displayed schema, in bytes.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Renders a tool.
pub(crate) fn tool(
    session: &ConsoleSession,
    detail: &ToolDetail,
    may_call: bool,
    trial: &ToolTrial,
) -> Markup {
    let row = &detail.row;
    let body = html! {
        p.lead {
            "of " (plugin_link(&row.plugin))
            @for hint in &detail.hints { " " span.badge.plain { (hint) } }
            @if let Some(asks) = &row.approval { " " span.badge.mild { "asks a person, " (asks) } }
        }
        @if let Some(title) = &row.title { p { strong { (title) } } }
        @if let Some(description) = &row.description { div.prose { (description) } }
        (trial_outcome(session, detail, trial))
        @if may_call { (form(session, detail, trial)) } @else {
            p.empty { "Your token has no right to call this tool (" code { "http.tokens.tools" } ")." }
        }
        section aria-labelledby="schemas" {
            h2 #schemas { "Schemas" }
            details data-key="input" { summary { "Input" } (schema(detail.input.get())) }
            @if let Some(output) = &detail.output {
                details data-key="output" { summary { "Output" } (schema(output.get())) }
            }
        }
    };
    layout(session, NavigationItem::Tools, &row.name, false, &body)
}

fn schema(text: &str) -> Markup {
    let formatted = serde_json::from_str::<Value>(text)
        .map(|value| format!("{value:#}"))
        .unwrap_or_default();
    let excerpt = formatted
        .get(..formatted.floor_char_boundary(MAX_SCHEMA_BYTES))
        .unwrap_or_default();
    html! { pre tabindex="0" { (toolbay_model::text::escape_json(excerpt)) @if excerpt.len() < formatted.len() { "\n…" } } }
}

/// Renders the outcome of the form.
fn trial_outcome(session: &ConsoleSession, detail: &ToolDetail, trial: &ToolTrial) -> Markup {
    match &trial.outcome {
        TrialOutcome::NotSubmitted => html! {},
        TrialOutcome::Outdated => html! {
            p.error role="alert" { "The tool has changed since this form was loaded. Look at it again, and send it then." }
        },
        TrialOutcome::InvalidFields(errors) => html! {
            p.error role="alert" { "Nothing was called: " (errors.len()) @if errors.len() == 1 { " field" } @else { " fields" } " cannot be read." }
        },
        TrialOutcome::Question(text, digest) => html! {
            section.question aria-labelledby="question" {
                h2 #question tabindex="-1" autofocus { "Approve this call?" }
                pre tabindex="0" { (text) }
                div.actions {
                    form method="post" action={ (PATH) "/tool" } data-call {
                        (csrf_input(session))
                        (hidden_inputs(detail, trial))
                        input type="hidden" name="allow" value=(digest.to_string());
                        @for (name, value) in &trial.values {
                            @if is_argument(name) { input type="hidden" name=(name) value=(value); }
                        }
                        button type="submit" { "Approve and call" }
                    }
                    a.button.quiet href={ (PATH) "/tool?" (encode_query(&[("name", &detail.row.name)])) } { "Cancel" }
                }
            }
        },
        TrialOutcome::Called {
            result: call_result,
            outcome,
            usage,
        } => result(call_result, outcome, usage.as_ref()),
    }
}

fn is_argument(name: &str) -> bool {
    name == RAW_FIELD
        || name
            .strip_prefix('f')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn hidden_inputs(detail: &ToolDetail, trial: &ToolTrial) -> Markup {
    html! {
        input type="hidden" name="tool" value=(detail.row.name);
        input type="hidden" name="schema" value=(trial.form.digest.to_string());
        @if trial.form.is_raw { input type="hidden" name="raw" value="yes"; }
    }
}

fn form(session: &ConsoleSession, detail: &ToolDetail, trial: &ToolTrial) -> Markup {
    let name = ("name", detail.row.name.as_str());
    let other_form_query = if trial.form.is_raw {
        encode_query(&[name])
    } else {
        encode_query(&[name, ("json", "yes")])
    };
    let no_errors = Vec::new();
    let errors = if let TrialOutcome::InvalidFields(wrong) = &trial.outcome {
        wrong
    } else {
        &no_errors
    };
    html! {
        section aria-labelledby="call" {
            div.heading {
                h2 #call { "Call tool" }
                @if trial.form.has_fields {
                    a href={ (PATH) "/tool?" (other_form_query) } { @if trial.form.is_raw { "as a form" } @else { "as JSON" } }
                }
            }
            form.call method="post" action={ (PATH) "/tool" } data-call {
                (csrf_input(session))
                (hidden_inputs(detail, trial))
                @if trial.form.is_raw { (raw_field(&trial.values, errors)) }
                @else if trial.form.fields.is_empty() { p.hint { "It takes no arguments." } }
                (fields(&trial.form.fields, &trial.values, errors))
                button type="submit" { "Call " (detail.row.name) }
            }
        }
    }
}

fn raw_field(values: &FieldValues, errors: &[(String, String)]) -> Markup {
    let value = values.get(RAW_FIELD).map_or("{}", String::as_str);
    let why = errors
        .iter()
        .find(|(field, _)| field == RAW_FIELD)
        .map(|(_, why)| why);
    html! {
        div.field {
            label for="in-json" { "Arguments as a JSON object" }
            textarea #in-json name=(RAW_FIELD) rows="8" spellcheck="false" aria-invalid=[why.map(|_| "true")]
                aria-describedby=[why.map(|_| "why-json")] { (value) }
            @if let Some(why) = why { p.error #why-json { (why) } }
        }
    }
}

fn fields(fields: &[FormField], values: &FieldValues, errors: &[(String, String)]) -> Markup {
    html! { @for field in fields { (self::field(field, values, errors)) } }
}

fn field(field: &FormField, values: &FieldValues, errors: &[(String, String)]) -> Markup {
    let value = values
        .get(&field.id)
        .map(String::as_str)
        .unwrap_or_default();
    let why = errors
        .iter()
        .find(|(id, _)| *id == field.id)
        .map(|(_, why)| why);
    let input = format!("in-{}", field.id);
    let hint = format!("hint-{}", field.id);
    let error = format!("why-{}", field.id);
    let kind = kind_hint(&field.kind);
    let has_hint = field.description.is_some() || kind.is_some();
    let hint_ids = [
        has_hint.then_some(hint.as_str()),
        why.map(|_| error.as_str()),
    ];
    let described: Vec<&str> = hint_ids.into_iter().flatten().collect();
    let described = Some(described.join(" ")).filter(|ids| !ids.is_empty());
    let invalid = why.map(|_| "true");
    let required = field.required;
    let name = html! { (field.name) @if required { span.required { " required" } } };
    let hint_element = html! {
        @if has_hint {
            p.hint id=(hint) {
                @if let Some(description) = &field.description { (description) " " }
                @if let Some(kind) = kind { (kind) }
            }
        }
    };
    if let FieldKind::Group(inner_fields) = &field.kind {
        return html! { fieldset { legend { (name) } (hint_element) (fields(inner_fields, values, errors)) } };
    }
    html! {
        div.field {
            label for=(input) { (name) }
            (hint_element)
            @match &field.kind {
                FieldKind::Text { lines: false } | FieldKind::Group(_) => {
                    input id=(input) type="text" name=(field.id) value=(value) autocomplete="off" spellcheck="false" aria-describedby=[&described] aria-invalid=[invalid];
                }
                FieldKind::Text { lines: true } => {
                    textarea id=(input) name=(field.id) rows="1" aria-describedby=[&described] aria-invalid=[invalid] { "\n" (value) }
                }
                FieldKind::Number { whole } => {
                    input id=(input) type="text" inputmode=(if *whole { "numeric" } else { "decimal" }) name=(field.id) value=(value) required[required] autocomplete="off" aria-describedby=[&described] aria-invalid=[invalid];
                }
                FieldKind::Choice(choices) => {
                    select id=(input) name=(field.id) required[required] aria-describedby=[&described] aria-invalid=[invalid] {
                        option value="" selected[value.is_empty()] { "–" }
                        @for (at, (word, _)) in choices.iter().enumerate() {
                            @let at = at.to_string();
                            option value=(at) selected[value == at] { (word) }
                        }
                    }
                }
                FieldKind::List { .. } | FieldKind::Json => {
                    textarea id=(input) name=(field.id) rows="3" spellcheck="false" aria-describedby=[&described] aria-invalid=[invalid] { "\n" (value) }
                }
            }
            @if let Some(why) = why { p.error id=(error) { (why) } }
        }
    }
}

/// Returns a hint about the expected input, if the field needs one.
fn kind_hint(kind: &FieldKind) -> Option<&'static str> {
    match kind {
        FieldKind::Number { whole: true } => Some("An integer."),
        FieldKind::Number { whole: false } => Some("A number."),
        FieldKind::List { numbers: false } => Some("One text a line."),
        FieldKind::List { numbers: true } => Some("One number a line."),
        FieldKind::Json => Some("As JSON."),
        FieldKind::Text { .. } | FieldKind::Choice(_) | FieldKind::Group(_) => None,
    }
}
