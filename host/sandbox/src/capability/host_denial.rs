//! Operations that the host denied to a guest without ending the call. They may explain a later
//! failure.

use toolbay_model::{CallError, Limit};

/// A denied operation. The guest received an ordinary error and could continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostDenial {
    /// The operation exceeded a limit.
    Limit(Limit),
    /// The grant does not allow the operation. The text is a sentence.
    Denied(String),
}

impl HostDenial {
    /// Adds the denial to an error, if the guest reported the failure itself or crashed.
    pub fn explain(self, error: CallError) -> CallError {
        let message = match &error {
            CallError::Failed(words) => words.clone(),
            CallError::Trap { .. } => format!("The tool crashed: {error}."),
            _ => return error,
        };
        match self {
            Self::Limit(limit) => CallError::limit(limit),
            Self::Denied(denied) => CallError::Denied {
                message,
                denial: denied,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_the_guest_reports_are_explained() {
        let denied = || HostDenial::Denied("No.".to_owned());
        let failed = CallError::Failed("no weather".to_owned());
        assert_eq!(
            denied().explain(failed.clone()),
            CallError::Denied {
                message: "no weather".to_owned(),
                denial: "No.".to_owned()
            }
        );
        let limit = Limit::HttpRequests(1);
        assert_eq!(
            HostDenial::Limit(limit).explain(failed),
            CallError::limit(limit)
        );
        let crash = CallError::Trap {
            cause: "unreachable".to_owned(),
            stderr: None,
        };
        assert!(
            matches!(denied().explain(crash), CallError::Denied { message, .. } if message.contains("unreachable"))
        );
        let fuel = CallError::limit(Limit::Fuel(1));
        assert_eq!(denied().explain(fuel.clone()), fuel);
    }
}
