//! Collects several mistakes, to report them together.

use proc_macro2::Span;

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct ErrorCollector(Option<syn::Error>);

impl ErrorCollector {
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value of a success, or records the error and returns `None`.
    pub(crate) fn record<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Returns `value`, or the recorded mistakes if there are any.
    pub(crate) fn into_result<T>(self, value: T) -> syn::Result<T> {
        self.0.map_or(Ok(value), Err)
    }

    /// Returns all mistakes as one error. The caller must have recorded at least one.
    pub(crate) fn into_error(self) -> syn::Error {
        self.0
            .unwrap_or_else(|| syn::Error::new(Span::call_site(), "this is not a tool"))
    }
}
