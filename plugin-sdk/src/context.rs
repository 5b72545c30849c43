//! What a tool may ask of the host while it runs.

use crate::level::Level;
use crate::recorder::{Progress, Recorder};
use crate::{Error, Result};
use serde::de::{DeserializeOwned, IntoDeserializer, value};

/// What a tool may ask of the host while it runs. None of it needs a
/// permission.
///
/// A tool takes `ctx: &Context` if it needs it. A test makes one with
/// [`Context::test`] and asks it afterwards what the tool did:
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
pub struct Context(Option<Recorder>);

impl Context {
    /// The context of a call from the host.
    pub(crate) fn host() -> Self {
        Self(None)
    }

    /// A context for native tests. It keeps every report of progress, and the
    /// log lines of this thread until it is dropped or another one is made.
    pub fn test() -> Self {
        Self(Some(Recorder::new()))
    }

    /// Sets a configuration value for the test.
    #[must_use]
    pub fn with_config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        if let Some(recorder) = &mut self.0 {
            recorder.config.insert(key.into(), value.into());
        }
        self
    }

    /// Has the client of the test lose its interest.
    #[must_use]
    pub fn with_cancelled(self) -> Self {
        if let Some(recorder) = &self.0 {
            recorder.cancelled.set(true);
        }
        self
    }

    /// Tells the client how far the call is: `ctx.progress(3.0, 10.0)`, or
    /// `ctx.progress(3.0, None)` if the end is unknown. Each value must be
    /// greater than the last. Does nothing if the client did not ask.
    pub fn progress(&self, done: f64, total: impl Into<Option<f64>>) {
        self.report(done, total.into(), None);
    }

    /// As [`progress`](Self::progress), and says what happens at the moment.
    pub fn progress_message(&self, done: f64, total: impl Into<Option<f64>>, message: impl AsRef<str>) {
        self.report(done, total.into(), Some(message.as_ref()));
    }

    fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(recorder) = &self.0 {
            let message = message.map(str::to_owned);
            let mut reports = recorder.progress.borrow_mut();
            reports.push(Progress { done, total, message });
        } else {
            host::progress(done, total, message);
        }
    }

    /// Whether the client no longer wants the answer. The host stops the call
    /// in any case: ask only if there is something to put in order.
    pub fn cancelled(&self) -> bool {
        match &self.0 {
            Some(recorder) => recorder.cancelled.get(),
            None => host::cancelled(),
        }
    }

    /// The value of a key in `[config]` of the operator's grant: a string as it
    /// is, any other value as JSON text.
    pub fn config(&self, key: &str) -> Option<String> {
        match &self.0 {
            Some(recorder) => recorder.config.get(key).cloned(),
            None => host::config(key),
        }
    }

    /// The value of a key in `[config]`, as a number, a list, an enum or
    /// whatever else can be read from JSON. Fails if it cannot.
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
        // As a string first: `T` may be one, and `5` may be what it says.
        let string: Result<T, value::Error> = T::deserialize(text.as_str().into_deserializer());
        string
            .or_else(|_| serde_json::from_str(&text))
            .map(Some)
            .map_err(|error| Error::msg(format_args!("the operator's `config.{key}` cannot be used: {error}")))
    }

    /// In a test: the progress that the tool reported.
    pub fn progress_reports(&self) -> Vec<Progress> {
        self.0.as_ref().map(|recorder| recorder.progress.borrow().clone()).unwrap_or_default()
    }

    /// In a test: the lines that the tool logged.
    pub fn log_lines(&self) -> Vec<(Level, String)> {
        self.0.as_ref().map(|recorder| recorder.lines.borrow().clone()).unwrap_or_default()
    }
}

#[cfg(target_family = "wasm")]
use crate::bindings::toolbay::plugin::host;

/// Outside a plugin there is no host: only a test's context exists, but for the
/// one that a native `call_tool` would make.
#[cfg(not(target_family = "wasm"))]
mod host {
    pub(super) fn progress(_: f64, _: Option<f64>, _: Option<&str>) {}

    pub(super) fn cancelled() -> bool {
        false
    }

    pub(super) fn config(_: &str) -> Option<String> {
        None
    }
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
    fn config_is_read_as_what_is_asked_for() {
        let ctx =
            Context::test().with_config("number", "5").with_config("text", "\"quoted\"").with_config("units", "metric");
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
    fn a_test_may_be_cancelled() {
        assert!(!Context::test().cancelled());
        assert!(Context::test().with_cancelled().cancelled());
    }
}
