//! Approvals that cover later calls of a tool (`require_approval = "first"`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use toolbay_model::CallerIdentity;

/// Maximum number of remembered approvals per caller and plugin version. Beyond it, the oldest one
/// is dropped, and the user is asked again.
const MAX_APPROVALS: usize = 256;

/// Lifetime of an approval for a caller without a session. Approvals in a session end with it.
pub(super) const APPROVAL_LIFETIME: Duration = Duration::from_hours(1);

/// Scope of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalScope {
    /// The session with this number.
    Session(u64),
    /// All requests of the caller without a session, for an hour.
    Caller,
}

impl ApprovalScope {
    /// Returns the scope of a request; `None` for an unauthenticated caller without a session,
    /// because many users can share an address.
    pub(crate) fn for_request(
        session: Option<u64>,
        caller: Option<&CallerIdentity>,
    ) -> Option<Self> {
        session.map(Self::Session).or(caller.map(|_| Self::Caller))
    }
}

/// Approvals of one caller for one loaded version of a plugin. At most 256.
#[derive(Debug, Default)]
pub(crate) struct RememberedApprovals(Mutex<VecDeque<GivenApproval>>);

#[derive(Debug)]
struct GivenApproval {
    scope: ApprovalScope,
    tool: String,
    approved_at: Instant,
}

impl RememberedApprovals {
    /// Returns whether an approval covers calls of this tool.
    pub(super) fn is_approved(&self, scope: ApprovalScope, tool: &str) -> bool {
        let covers = |yes: &GivenApproval| {
            yes.scope == scope && yes.tool == tool && yes.is_valid(APPROVAL_LIFETIME)
        };
        self.lock().iter().any(covers)
    }

    /// Remembers an approval.
    pub(super) fn remember(&self, scope: ApprovalScope, tool: &str) {
        let mut approvals = self.lock();
        approvals.retain(|yes| {
            yes.is_valid(APPROVAL_LIFETIME) && (yes.scope != scope || yes.tool != tool)
        });
        if approvals.len() >= MAX_APPROVALS {
            approvals.pop_front();
        }
        approvals.push_back(GivenApproval {
            scope,
            tool: tool.to_owned(),
            approved_at: Instant::now(),
        });
    }

    // Held for a few comparisons and never across an await.
    fn lock(&self) -> MutexGuard<'_, VecDeque<GivenApproval>> {
        self.0.lock()
    }
}

impl GivenApproval {
    /// Returns whether the approval is still valid. `lifetime` applies outside of a session.
    fn is_valid(&self, lifetime: Duration) -> bool {
        matches!(self.scope, ApprovalScope::Session(_)) || self.approved_at.elapsed() < lifetime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_covers_only_its_tool_and_session() {
        let remembered = RememberedApprovals::default();
        remembered.remember(ApprovalScope::Session(1), "erase");
        assert!(remembered.is_approved(ApprovalScope::Session(1), "erase"));
        for (scope, tool) in [
            (ApprovalScope::Session(2), "erase"),
            (ApprovalScope::Caller, "erase"),
            (ApprovalScope::Session(1), "eras"),
        ] {
            assert!(!remembered.is_approved(scope, tool), "{scope:?} {tool}");
        }
    }

    #[test]
    fn the_number_of_remembered_approvals_is_bounded() {
        let remembered = RememberedApprovals::default();
        for session in 0..10_000 {
            remembered.remember(ApprovalScope::Session(session), "erase");
            remembered.remember(ApprovalScope::Session(session), "erase");
        }
        assert_eq!(remembered.lock().len(), MAX_APPROVALS);
        assert!(
            remembered.is_approved(ApprovalScope::Session(9_999), "erase")
                && !remembered.is_approved(ApprovalScope::Session(0), "erase")
        );
    }

    #[test]
    fn an_approval_without_a_session_expires() {
        let yes = |scope| GivenApproval {
            scope,
            tool: "erase".to_owned(),
            approved_at: Instant::now(),
        };
        assert!(yes(ApprovalScope::Caller).is_valid(APPROVAL_LIFETIME));
        assert!(!yes(ApprovalScope::Caller).is_valid(Duration::ZERO));
        assert!(yes(ApprovalScope::Session(1)).is_valid(Duration::ZERO));
    }

    #[test]
    fn no_approval_of_an_unidentified_caller_is_remembered() {
        let ada = CallerIdentity::from_name("token:ada");
        assert_eq!(
            ApprovalScope::for_request(None, ada.as_ref()),
            Some(ApprovalScope::Caller)
        );
        assert_eq!(
            ApprovalScope::for_request(Some(7), ada.as_ref()),
            Some(ApprovalScope::Session(7))
        );
        assert_eq!(
            ApprovalScope::for_request(Some(7), None),
            Some(ApprovalScope::Session(7))
        );
        assert_eq!(
            ApprovalScope::for_request(None, CallerIdentity::from_name("ip:192.0.2.7").as_ref()),
            None
        );
    }
}
