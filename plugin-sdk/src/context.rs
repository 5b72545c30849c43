//! The host's functions for a running tool.

use crate::ask::{AskError, ContractQuestion, Question, Questions};
use crate::level::Level;
use crate::recorder::{Progress, TestRecorder};
use crate::{Error, Result};
use serde::de::{DeserializeOwned, IntoDeserializer, value};
use serde_json::Value;

/// Access to the host's functions for a running tool. None of them requires a permission.
///
/// A tool that uses it takes `ctx: &Context`. A test creates a context with [`Context::test`] and
/// can then check what the tool did:
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// /// Works for a while.
/// #[tool]
/// fn work(ctx: &Context) -> &'static str {
///     for step in 1..=3 {
///         ctx.progress(f64::from(step), 3.0);
///     }
///     info!("done");
///     "worked"
/// }
///
/// let ctx = Context::test();
/// assert_eq!(work(&ctx), "worked");
/// assert_eq!(ctx.progress_reports().len(), 3);
/// assert_eq!(ctx.log_lines(), [(Level::Info, "done".to_owned())]);
/// ```
#[derive(Debug)]
pub struct Context(Option<TestRecorder>);

impl Context {
    /// Creates the context of a call from the host.
    pub(crate) fn host() -> Self {
        Self(None)
    }

    /// Creates a context for native tests. It records all progress. It also records the log lines
    /// of this thread, until it is dropped or another context is created.
    pub fn test() -> Self {
        Self(Some(TestRecorder::new()))
    }

    /// Sets a configuration value for the test.
    #[must_use]
    pub fn with_config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        if let Some(recorder) = &mut self.0 {
            recorder.config.insert(key.into(), value.into());
        }
        self
    }

    /// Sets the answer to a question in the test: the client's result, such as
    /// `{"action": "accept", "content": {…}}`.
    #[must_use]
    pub fn with_answer(mut self, key: impl Into<String>, result: impl Into<Value>) -> Self {
        if let Some(recorder) = &mut self.0 {
            recorder.answers.insert(key.into(), result.into());
        }
        self
    }

    /// Simulates a client that has cancelled the call.
    #[must_use]
    pub fn with_cancelled(self) -> Self {
        if let Some(recorder) = &self.0 {
            recorder.cancelled.set(true);
        }
        self
    }

    /// Reports the progress of the call: `ctx.progress(3.0, 10.0)`, or `ctx.progress(3.0, None)` if
    /// the total is unknown. Each value must be greater than the one before. Does nothing if the
    /// client did not request progress.
    pub fn progress(&self, done: f64, total: impl Into<Option<f64>>) {
        self.report_progress(done, total.into(), None);
    }

    /// Reports the progress like [`progress`](Self::progress), with a description of the current
    /// step.
    pub fn progress_message(
        &self,
        done: f64,
        total: impl Into<Option<f64>>,
        message: impl AsRef<str>,
    ) {
        self.report_progress(done, total.into(), Some(message.as_ref()));
    }

    fn report_progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(recorder) = &self.0 {
            let message = message.map(str::to_owned);
            let mut reports = recorder.progress.borrow_mut();
            reports.push(Progress {
                done,
                total,
                message,
            });
        } else {
            host::progress(done, total, message);
        }
    }

    /// Returns whether the client no longer waits for the result. The host stops the call in any
    /// case, so check this only if there is something to clean up.
    pub fn cancelled(&self) -> bool {
        match &self.0 {
            Some(recorder) => recorder.cancelled.get(),
            None => host::cancelled(),
        }
    }

    /// Returns the value of a key in `[config]` of the operator's grant. A string is returned
    /// unchanged, and any other value as JSON text.
    pub fn config(&self, key: &str) -> Option<String> {
        match &self.0 {
            Some(recorder) => recorder.config.get(key).cloned(),
            None => host::config(key),
        }
    }

    /// Returns the value of a key in `[config]` as a number, a list, an enum or any other type that
    /// can be deserialized from JSON. Fails if the value has another type.
    ///
    /// ```
    /// # use toolbay_plugin::Context;
    /// let ctx = Context::test().with_config("hosts", r#"["a", "b"]"#);
    /// let hosts: Option<Vec<String>> = ctx.config_as("hosts").unwrap();
    /// assert_eq!(hosts.unwrap(), ["a", "b"]);
    /// assert_eq!(ctx.config_as::<u16>("port").unwrap(), None);
    /// ```
    pub fn config_as<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(text) = self.config(key) else {
            return Ok(None);
        };
        // Try a string first: `T` may be a string, and `5` may be its text.
        let string: Result<T, value::Error> = T::deserialize(text.as_str().into_deserializer());
        string
            .or_else(|_| serde_json::from_str(&text))
            .map(Some)
            .map_err(|error| {
                Error::msg(format_args!(
                    "the operator's `config.{key}` cannot be used: {error}"
                ))
            })
    }

    /// Asks the caller a question. `key` identifies it within the call: 1 to 64 characters of
    /// `A-Z a-z 0-9 _ - .`.
    ///
    /// A plugin does not wait while a person thinks. The call ends here, and starts again in a new
    /// instance when the answer is available. Then, `ask` returns immediately. Therefore, the code
    /// before `ask` runs again. If HTTP requests other than `GET` and `HEAD`, or operations on a
    /// key-value store, precede `ask`, the host makes sure that they are executed only once. A tool
    /// that changes files must call `ask` first. [`Form`](crate::Form) has an example.
    ///
    /// # Errors
    ///
    /// Returns [`AskError::Unsupported`] if the question is optional and the client cannot answer
    /// it. If the question is not optional, the host reports this to the client, and the call ends.
    ///
    /// Returns [`AskError::Invalid`] if the question or the client's answer is invalid.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "questions are made to be asked, where they are asked"
    )]
    pub fn ask<Q: Question>(&self, key: &str, question: Q) -> Result<Q::Answer, AskError> {
        let results = self.request_answers(vec![(key, question.question())])?;
        let result = results.into_iter().next().unwrap_or_default();
        question
            .answer(result)
            .map_err(|error| AskError::Invalid(error.to_string()))
    }

    /// Asks several questions at once: a tuple of pairs of a key and a question. Returns a tuple of
    /// the answers.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`ask`](Self::ask).
    #[expect(
        clippy::needless_pass_by_value,
        reason = "questions are made to be asked, where they are asked"
    )]
    pub fn ask_all<Q: Questions>(&self, questions: Q) -> Result<Q::Answers, AskError> {
        let results = self.request_answers(questions.questions())?;
        questions
            .answers(results)
            .map_err(|error| AskError::Invalid(error.to_string()))
    }

    /// Returns the client's results, in the order of the questions.
    fn request_answers(
        &self,
        questions: Vec<(&str, ContractQuestion)>,
    ) -> Result<Vec<Value>, AskError> {
        if let Some(recorder) = &self.0 {
            let answer = |(key, _): &(&str, ContractQuestion)| {
                let missing = || {
                    format!(
                        "the test has no answer to the question `{key}`: add it by `with_answer`"
                    )
                };
                recorder
                    .answers
                    .get(*key)
                    .cloned()
                    .ok_or_else(missing)
                    .map_err(AskError::Invalid)
            };
            return questions.iter().map(answer).collect();
        }
        let questions: Vec<types::Question> = questions
            .into_iter()
            .map(
                |(
                    key,
                    ContractQuestion {
                        kind,
                        params,
                        required,
                    },
                )| types::Question {
                    key: key.to_owned(),
                    kind,
                    params: params.to_string(),
                    required,
                },
            )
            .collect();
        let answers = host::ask(&questions)?;
        let read = |text: &String| {
            serde_json::from_str(text).map_err(|error| AskError::Invalid(error.to_string()))
        };
        answers.iter().map(read).collect()
    }

    /// Notifies the clients that are subscribed to the resource `uri` of this plugin that its
    /// content has changed.
    pub fn resource_updated(&self, uri: impl AsRef<str>) {
        if let Some(recorder) = &self.0 {
            recorder.updates.borrow_mut().push(uri.as_ref().to_owned());
        } else {
            host::resource_updated(uri.as_ref());
        }
    }

    /// In a test, returns the URIs that the tool has passed to
    /// [`resource_updated`](Self::resource_updated).
    pub fn updated_resources(&self) -> Vec<String> {
        self.0
            .as_ref()
            .map(|recorder| recorder.updates.borrow().clone())
            .unwrap_or_default()
    }

    /// In a test, returns the progress that the tool has reported.
    pub fn progress_reports(&self) -> Vec<Progress> {
        self.0
            .as_ref()
            .map(|recorder| recorder.progress.borrow().clone())
            .unwrap_or_default()
    }

    /// In a test, returns the lines that the tool has logged.
    pub fn log_lines(&self) -> Vec<(Level, String)> {
        self.0
            .as_ref()
            .map(|recorder| recorder.lines.borrow().clone())
            .unwrap_or_default()
    }
}

#[cfg(target_family = "wasm")]
use crate::bindings::toolbay::plugin::host;
use crate::bindings::toolbay::plugin::types;

/// Stand-ins for the host's functions outside a plugin, where there is no host. The only contexts
/// there are those of tests and the one that a native `call_tool` would create.
#[cfg(not(target_family = "wasm"))]
mod host {
    pub(super) fn progress(_: f64, _: Option<f64>, _: Option<&str>) {}

    pub(super) fn cancelled() -> bool {
        false
    }

    pub(super) fn config(_: &str) -> Option<String> {
        None
    }

    pub(super) fn ask(_: &[super::types::Question]) -> Result<Vec<String>, super::types::AskError> {
        Err(super::types::AskError::Unsupported(
            "there is no client".to_owned(),
        ))
    }

    pub(super) fn resource_updated(_: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{debug, error};
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Units {
        Metric,
    }

    #[test]
    fn config_is_deserialized_as_the_requested_type() {
        let ctx = Context::test()
            .with_config("number", "5")
            .with_config("text", "\"quoted\"")
            .with_config("units", "metric");
        assert_eq!(ctx.config_as("number").unwrap(), Some(5));
        assert_eq!(ctx.config_as("number").unwrap(), Some("5".to_owned()));
        assert_eq!(ctx.config_as("text").unwrap(), ctx.config("text"));
        assert_eq!(ctx.config_as("units").unwrap(), Some(Units::Metric));
        assert_eq!(ctx.config_as::<bool>("absent").unwrap(), None);
        let error = ctx.config_as::<u8>("units").unwrap_err();
        assert!(error.message().contains("`config.units`"), "{error}");
    }

    #[test]
    fn progress_is_kept_in_order() {
        let ctx = Context::test();
        ctx.progress(1.0, None);
        ctx.progress_message(2.0, 2.0, "almost");
        let reports = ctx.progress_reports();
        assert_eq!(reports[0].total, None);
        assert!((reports[1].done - 2.0).abs() < f64::EPSILON);
        assert_eq!(reports[1].message.as_deref(), Some("almost"));
    }

    #[test]
    fn lines_go_to_the_newest_context() {
        let first = Context::test();
        debug!("one");
        let second = Context::test();
        error!("{}", "two");
        assert_eq!(first.log_lines(), [(Level::Debug, "one".to_owned())]);
        assert_eq!(second.log_lines(), [(Level::Error, "two".to_owned())]);
    }

    #[test]
    fn a_test_can_simulate_cancellation() {
        assert!(!Context::test().cancelled());
        assert!(Context::test().with_cancelled().cancelled());
    }
}
