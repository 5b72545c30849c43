//! Answers to the questions of a call: from `--answer`, or from a person on the terminal.

mod answer_option;
mod field_input;
mod question_dialog;

use std::collections::BTreeSet;
use std::io::stdin;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde_json::Value;
use toolbay_model::text::clean_line;
use toolbay_model::{CallFailure, CallResult, Question, QuestionKind};
use toolbay_schema::JsonSchema;

pub(super) use self::answer_option::AnswerOption;
use super::call_printer::CallPrinter;
use super::confirm;
use super::output::{complain, note};
use crate::serve::embedder_calls::CallAnswers;

/// Maximum size of a printed message of a plugin, in bytes.
const MAX_MESSAGE_BYTES: usize = 4_000;

/// Answers to the questions of one call.
pub(super) struct CommandAnswers {
    /// The answers of the command line.
    given: Vec<AnswerOption>,
    /// Keys of the answers that were used.
    used: BTreeSet<String>,
    /// If set, the call is allowed without a question.
    yes: bool,
    /// True if a person refused to allow the call.
    was_refused: bool,
    /// Hints for the questions that have no answer.
    unanswered: Vec<String>,
    printer: Arc<CallPrinter>,
}

impl CommandAnswers {
    /// Creates the answers. If `yes` is set, the call is allowed without a question.
    ///
    /// # Errors
    ///
    /// Two answers have the same key.
    pub(super) fn new(
        given: Vec<AnswerOption>,
        yes: bool,
        printer: Arc<CallPrinter>,
    ) -> anyhow::Result<Self> {
        let mut keys = BTreeSet::new();
        for AnswerOption { key, .. } in &given {
            if !keys.insert(key) {
                bail!("--answer {key}: there are two answers with this key");
            }
        }
        Ok(Self {
            given,
            used: BTreeSet::new(),
            yes,
            was_refused: false,
            unanswered: Vec::new(),
            printer,
        })
    }

    /// Returns whether a person refused to allow the call.
    pub(super) fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// Reports answers that no question used.
    ///
    /// # Errors
    ///
    /// The call failed because its questions have no answers. The message has the questions, and the
    /// options that answer them.
    pub(super) fn finish(&self, answer: &CallResult) -> anyhow::Result<()> {
        if matches!(answer.result, Err(CallFailure::MissingCapabilities(_)))
            && !self.unanswered.is_empty()
        {
            bail!("{}", self.unanswered.join("\n"));
        }
        for AnswerOption { key, .. } in &self.given {
            if !self.used.contains(key) {
                complain(&format!("--answer {key}: no question had this key"));
            }
        }
        Ok(())
    }

    /// Returns the answer of the command line, if there is one.
    fn given_answer(&mut self, question: &Question) -> anyhow::Result<Option<String>> {
        let key = &question.key;
        let Some(option) = self.given.iter().find(|option| option.key == *key) else {
            return Ok(None);
        };
        if !self.used.insert(key.clone()) {
            // The message has the reason why the answer is invalid.
            bail!("--answer {key}: {}", question_message(question));
        }
        let answer = option.to_client_result(question.kind);
        answer
            .map(Some)
            .map_err(|why| anyhow::anyhow!("--answer {key}: {why}"))
    }
}

impl CallAnswers for CommandAnswers {
    async fn allow(&mut self, question: &str) -> bool {
        let allowed = self.yes || confirm::ask_to_allow(question).await;
        self.was_refused = !allowed;
        allowed
    }

    async fn answer(&mut self, question: &Question) -> anyhow::Result<Option<String>> {
        if let Some(answer) = self.given_answer(question)? {
            return Ok(Some(answer));
        }
        if !confirm::is_possible() {
            self.unanswered.push(hint(question));
            return Ok(None);
        }
        let question = question.clone();
        // Reads on another thread, so that a signal can end the program meanwhile.
        let asked = tokio::task::spawn_blocking(move || {
            question_dialog::ask(&question, &mut stdin().lock(), &mut |line| note(line))
        });
        asked
            .await
            .context("reading the answer failed unexpectedly")?
            .map(Some)
    }

    fn begin_next_run(&mut self) {
        self.printer.begin_next_run();
    }
}

/// Returns the message of a question, on one line.
fn question_message(question: &Question) -> String {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let message = params.get("message").and_then(Value::as_str);
    clean_line(
        message.unwrap_or("the answer is invalid"),
        MAX_MESSAGE_BYTES,
    )
}

/// Says how to answer a question without a terminal.
fn hint(question: &Question) -> String {
    let key = &question.key;
    let what = match question.kind {
        QuestionKind::Form => "its user to fill in a form",
        QuestionKind::Url => "its user to open a page",
        QuestionKind::Sampling | QuestionKind::SamplingWithTools => "the client's model for a text",
        QuestionKind::Roots => "for the folders of its user",
    };
    let example = match question.kind {
        QuestionKind::Form => form_example(question),
        QuestionKind::Url => "accept".to_owned(),
        QuestionKind::Sampling | QuestionKind::SamplingWithTools => "\"a text\"".to_owned(),
        QuestionKind::Roots => r#"["file:///home/ada/project"]"#.to_owned(),
    };
    let message = match question.kind {
        QuestionKind::Form | QuestionKind::Url => format!(": {}", question_message(question)),
        _ => String::new(),
    };
    format!(
        "the tool asks {what} (question {key:?}){message}\n    Call it from a terminal to answer, or add --answer {}",
        shell_quoted(&format!("{key}={example}"))
    )
}

/// Returns content that a form accepts.
fn form_example(question: &Question) -> String {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let schema = params.get("requestedSchema").map(Value::to_string);
    schema
        .and_then(|text| JsonSchema::compile(&text).ok())
        .and_then(|schema| schema.example().map(str::to_owned))
        .unwrap_or_else(|| "{}".to_owned())
}

/// Quotes a word for a shell.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolbay_model::JsonText;

    use super::*;
    use crate::cli::stack_frames::StackFrames;

    fn form(message: &str) -> Question {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        Question {
            key: "who".to_owned(),
            kind: QuestionKind::Form,
            params: JsonText::new(&json!({"message": message, "requestedSchema": schema})),
        }
    }

    fn answers(options: &[&str]) -> anyhow::Result<CommandAnswers> {
        let given = options.iter().map(|option| option.parse().unwrap());
        let printer = CallPrinter::new("a", StackFrames::default());
        CommandAnswers::new(given.collect(), false, Arc::new(printer))
    }

    #[test]
    fn a_question_without_an_answer_names_the_option() {
        assert_eq!(
            hint(&form("It's whose?\nReally")),
            "the tool asks its user to fill in a form (question \"who\"): It's whose?\\nReally\n    \
             Call it from a terminal to answer, or add --answer 'who={\"name\":\"text\"}'"
        );
        assert_eq!(shell_quoted("a='b'"), r"'a='\''b'\'''");
    }

    #[test]
    fn an_answer_is_used_once() {
        let mut answers = answers(&[r#"who={"name": 7}"#]).unwrap();
        let first = answers.given_answer(&form("Whose?")).unwrap();
        assert_eq!(
            first.as_deref(),
            Some(r#"{"action":"accept","content":{"name":7}}"#)
        );
        let again = answers.given_answer(&form("Whose?\n\nThe last answer is invalid: no"));
        assert_eq!(
            again.unwrap_err().to_string(),
            "--answer who: Whose?\\n\\nThe last answer is invalid: no"
        );
        assert!(self::answers(&["a=decline", "a=cancel"]).is_err());
    }
}
