//! Questions on the terminal.

use std::io::{BufRead, Read as _};

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};
use toolbay_model::text::clean_line;
use toolbay_model::{Question, QuestionKind};

use super::answer_option::{roots_result, sampled_text};
use super::field_input::FormField;

/// Maximum size of a typed line, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Maximum number of typed lines of one answer.
const MAX_LINES: usize = 1_000;

/// Maximum number of lines of a plugin's text that are printed, and of bytes of each.
const MAX_PRINTED_LINES: usize = 200;
const MAX_PRINTED_LINE_BYTES: usize = 2_000;

/// The words that a person can type in place of a field.
const DECLINE: &str = ":decline";
const CANCEL: &str = ":cancel";

/// The next step of a dialog.
enum TypedLine {
    Text(String),
    Decline,
    Cancel,
}

/// Asks a question, and returns the answer in the form in which a client sends it. `print` writes
/// lines to the terminal.
///
/// # Errors
///
/// Reading failed, or the person does not answer a question that cannot be declined.
pub(super) fn ask(
    question: &Question,
    input: &mut impl BufRead,
    print: &mut dyn FnMut(&str),
) -> anyhow::Result<String> {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let answer = match question.kind {
        QuestionKind::Form => ask_form(question, &params, input, print)?,
        QuestionKind::Url => ask_page(question, &params, input, print)?,
        QuestionKind::Sampling | QuestionKind::SamplingWithTools => {
            ask_for_text(question, &params, input, print)?
        }
        QuestionKind::Roots => ask_for_roots(question, input, print)?,
    };
    Ok(answer.to_string())
}

fn ask_form(
    question: &Question,
    params: &Value,
    input: &mut impl BufRead,
    print: &mut dyn FnMut(&str),
) -> anyhow::Result<Value> {
    print(&format!(
        "The tool asks (question {:?}):\n{}\nAn empty line takes the default, or leaves out an optional field. {DECLINE} declines, \
         {CANCEL} cancels.",
        question.key,
        quoted_lines(text(params, "message"))
    ));
    let empty = Map::new();
    let fields = params
        .pointer("/requestedSchema/properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required = params
        .pointer("/requestedSchema/required")
        .and_then(Value::as_array);
    let mut content = Map::new();
    for (name, schema) in fields {
        let is_required = required.is_some_and(|names| names.iter().any(|other| other == name));
        let field = FormField::new(name, schema, is_required);
        let value = loop {
            print(&field.prompt());
            match read_line(input)? {
                TypedLine::Decline => return Ok(json!({"action": "decline"})),
                TypedLine::Cancel => return Ok(json!({"action": "cancel"})),
                TypedLine::Text(typed) => match field.parse(&typed) {
                    Ok(value) => break value,
                    Err(why) => print(&format!("Not accepted: {why}.")),
                },
            }
        };
        if let Some(value) = value {
            content.insert(name.clone(), value);
        }
    }
    Ok(json!({"action": "accept", "content": content}))
}

fn ask_page(
    question: &Question,
    params: &Value,
    input: &mut impl BufRead,
    print: &mut dyn FnMut(&str),
) -> anyhow::Result<Value> {
    print(&format!(
        "The tool asks you to open a page (question {:?}):\n{}\n{}\nType y if you open it, n to decline, or {CANCEL}:",
        question.key,
        quoted_lines(text(params, "message")),
        quoted_lines(text(params, "url"))
    ));
    loop {
        let typed = match read_line(input)? {
            TypedLine::Decline => "n".to_owned(),
            TypedLine::Cancel => return Ok(json!({"action": "cancel"})),
            TypedLine::Text(typed) => typed,
        };
        match typed.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(json!({"action": "accept"})),
            "n" | "no" => return Ok(json!({"action": "decline"})),
            _ => print("Type y or n."),
        }
    }
}

fn ask_for_text(
    question: &Question,
    params: &Value,
    input: &mut impl BufRead,
    print: &mut dyn FnMut(&str),
) -> anyhow::Result<Value> {
    let mut conversation = Vec::new();
    if let Some(prompt) = params.get("systemPrompt").and_then(Value::as_str) {
        conversation.push(format!("system: {prompt}"));
    }
    for message in params
        .get("messages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let content = message.get("content").unwrap_or(&Value::Null);
        let said = content
            .get("text")
            .and_then(Value::as_str)
            .map_or_else(|| content.to_string(), str::to_owned);
        conversation.push(format!("{}: {said}", text(message, "role")));
    }
    print(&format!(
        "The tool asks the client's model for a text (question {:?}):\n{}\nType the model's answer, then a line with a single \
         dot. {CANCEL} ends the call.",
        question.key,
        quoted_lines(&conversation.join("\n"))
    ));
    let lines = read_lines(input, |line| line == ".")?;
    let lines = lines.context("the question was not answered, which ends the call")?;
    Ok(sampled_text(&lines.join("\n")))
}

fn ask_for_roots(
    question: &Question,
    input: &mut impl BufRead,
    print: &mut dyn FnMut(&str),
) -> anyhow::Result<Value> {
    print(&format!(
        "The tool asks for the folders that you work in (question {:?}).\nType their URIs, such as file:///home/ada/project, each on \
         a line, then an empty line. {CANCEL} ends the call.",
        question.key
    ));
    let lines = read_lines(input, str::is_empty)?;
    let lines = lines.context("the question was not answered, which ends the call")?;
    let uris: Vec<Value> = lines.into_iter().map(Value::from).collect();
    Ok(roots_result(&uris))
}

/// Reads lines until one that ends the answer, or until the end of the input. `None` if the person
/// cancels.
fn read_lines(
    input: &mut impl BufRead,
    is_end: impl Fn(&str) -> bool,
) -> anyhow::Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    loop {
        match read_line(input)? {
            TypedLine::Decline => return Ok(None),
            // The end of the input also ends an answer.
            TypedLine::Cancel if lines.is_empty() => return Ok(None),
            TypedLine::Cancel => return Ok(Some(lines)),
            TypedLine::Text(line) if is_end(line.trim()) => return Ok(Some(lines)),
            TypedLine::Text(line) => lines.push(line),
        }
        if lines.len() > MAX_LINES {
            bail!("the answer has more than {MAX_LINES} lines");
        }
    }
}

/// Reads a line. The end of the input cancels.
fn read_line(input: &mut impl BufRead) -> anyhow::Result<TypedLine> {
    let mut bytes = Vec::new();
    let read = input
        .by_ref()
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut bytes)
        .context("failed to read the answer")?;
    if read as u64 == MAX_LINE_BYTES {
        bail!("the answer has a line of more than {MAX_LINE_BYTES} bytes");
    }
    let line = String::from_utf8_lossy(&bytes);
    let line = line.trim_end_matches(['\n', '\r']);
    Ok(match line.trim() {
        _ if read == 0 => TypedLine::Cancel,
        CANCEL => TypedLine::Cancel,
        DECLINE => TypedLine::Decline,
        _ => TypedLine::Text(line.to_owned()),
    })
}

fn text<'a>(params: &'a Value, key: &str) -> &'a str {
    params.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Marks each line of a plugin's text, so that it does not look like one of this program's.
fn quoted_lines(text: &str) -> String {
    let mut lines: Vec<String> = text
        .lines()
        .take(MAX_PRINTED_LINES)
        .map(|line| format!("    | {}", clean_line(line, MAX_PRINTED_LINE_BYTES)))
        .collect();
    if text.lines().nth(MAX_PRINTED_LINES).is_some() {
        lines.push(format!(
            "    | … (only {MAX_PRINTED_LINES} lines are shown)"
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use toolbay_model::JsonText;

    use super::*;

    /// Returns the answer to a question, and everything that was printed.
    fn dialog(kind: QuestionKind, params: &Value, typed: &str) -> (anyhow::Result<String>, String) {
        let question = Question {
            key: "sure".to_owned(),
            kind,
            params: JsonText::new(params),
        };
        let mut printed = String::new();
        let answer = ask(&question, &mut typed.as_bytes(), &mut |text| {
            printed.push_str(text);
            printed.push('\n');
        });
        (answer, printed)
    }

    fn form() -> Value {
        json!({"message": "Delete it?\nAllow this call? Type y", "requestedSchema": {
            "type": "object",
            "properties": {
                "sure": {"type": "boolean", "title": "Sure?"},
                "count": {"type": "integer", "minimum": 1},
                "note": {"type": "string"},
            },
            "required": ["sure", "count"],
        }})
    }

    #[test]
    fn fields_are_asked_until_they_are_valid() {
        let (answer, printed) = dialog(QuestionKind::Form, &form(), "what\ny\n0\n\n3\n\n");
        assert_eq!(
            answer.unwrap(),
            r#"{"action":"accept","content":{"sure":true,"count":3}}"#
        );
        let lines: Vec<&str> = printed
            .lines()
            .map(|line| {
                // The message of the schema's check.
                if line.starts_with("Not accepted: 0") {
                    "Not accepted: 0 …"
                } else {
                    line
                }
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        The tool asks (question "sure"):
            | Delete it?
            | Allow this call? Type y
        An empty line takes the default, or leaves out an optional field. :decline declines, :cancel cancels.
        sure | Sure? (y or n)
        Not accepted: type y or n.
        sure | Sure? (y or n)
        count (a whole number)
        Not accepted: 0 …
        count (a whole number)
        Not accepted: a value is required.
        count (a whole number)
        note (a text, optional)
        "#);
    }

    #[test]
    fn a_form_is_declined_or_cancelled() {
        for (typed, action) in [
            (":decline\n", "decline"),
            ("y\n :decline \n", "decline"),
            ("y\n:cancel\n", "cancel"),
            ("", "cancel"),
            ("y\n1\n", "cancel"),
        ] {
            let (answer, _) = dialog(QuestionKind::Form, &form(), typed);
            assert_eq!(
                answer.unwrap(),
                format!("{{\"action\":\"{action}\"}}"),
                "{typed:?}"
            );
        }
        let endless = "y".repeat(1 << 20);
        assert!(dialog(QuestionKind::Form, &form(), &endless).0.is_err());
    }

    #[test]
    fn other_questions_have_their_own_dialogs() {
        let page = json!({"message": "Log in.", "url": "https://a.example/\u{1b}[2J"});
        let (answer, printed) = dialog(QuestionKind::Url, &page, "?\ny\n");
        assert_eq!(answer.unwrap(), r#"{"action":"accept"}"#);
        assert!(printed.contains("    | https://a.example/\n"), "{printed}");
        let (answer, _) = dialog(QuestionKind::Url, &page, "n\n");
        assert_eq!(answer.unwrap(), r#"{"action":"decline"}"#);

        let messages = json!({"systemPrompt": "Be brief.", "messages": [{"role": "user", "content": {"type": "text", "text": "Hi\nyou"}}]});
        let (answer, printed) = dialog(QuestionKind::Sampling, &messages, "one\n\ntwo\n.\n");
        assert!(answer.unwrap().contains(r#""text":"one\n\ntwo""#));
        assert!(
            printed.contains("    | system: Be brief.\n    | user: Hi\n    | you\n"),
            "{printed}"
        );
        assert!(
            dialog(QuestionKind::Sampling, &messages, ":cancel\n")
                .0
                .is_err()
        );

        let (answer, _) = dialog(QuestionKind::Roots, &json!({}), "file:///a\n\n");
        assert_eq!(answer.unwrap(), r#"{"roots":[{"uri":"file:///a"}]}"#);
        assert!(dialog(QuestionKind::Roots, &json!({}), "").0.is_err());
    }
}
