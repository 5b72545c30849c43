//! Approvals that cover later calls of a tool (`require_approval = "first"`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use toolbay_catalog::Approver;
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
    /// The approver that the configuration required for it.
    approver: Approver,
    approved_at: Instant,
}

impl RememberedApprovals {
    /// Returns whether an approval covers calls of this tool. If an operator must answer now, an
    /// approval that a client could give does not count.
    pub(super) fn is_approved(&self, scope: ApprovalScope, tool: &str, by: Approver) -> bool {
        let covers = |yes: &GivenApproval| {
            yes.scope == scope
                && yes.tool == tool
                && yes.approver >= by
                && yes.is_valid(APPROVAL_LIFETIME)
        };
        self.lock().iter().any(covers)
    }

    /// Remembers an approval.
    pub(super) fn remember(&self, scope: ApprovalScope, tool: &str, by: Approver) {
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
            approver: by,
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
        remembered.remember(ApprovalScope::Session(1), "erase", Approver::Client);
        assert!(remembered.is_approved(ApprovalScope::Session(1), "erase", Approver::Client));
        for (scope, tool) in [
            (ApprovalScope::Session(2), "erase"),
            (ApprovalScope::Caller, "erase"),
            (ApprovalScope::Session(1), "eras"),
        ] {
            assert!(
                !remembered.is_approved(scope, tool, Approver::Client),
                "{scope:?} {tool}"
            );
        }
    }

    #[test]
    fn an_approval_that_a_client_could_give_does_not_replace_that_of_an_operator() {
        let remembered = RememberedApprovals::default();
        let scope = ApprovalScope::Session(1);
        remembered.remember(scope, "erase", Approver::Client);
        assert!(!remembered.is_approved(scope, "erase", Approver::Console));
        remembered.remember(scope, "erase", Approver::Console);
        assert!(
            remembered.is_approved(scope, "erase", Approver::Console)
                && remembered.is_approved(scope, "erase", Approver::Client)
        );
    }

    #[test]
    fn the_number_of_remembered_approvals_is_bounded() {
        let remembered = RememberedApprovals::default();
        for session in 0..10_000 {
            remembered.remember(ApprovalScope::Session(session), "erase", Approver::Client);
            remembered.remember(ApprovalScope::Session(session), "erase", Approver::Client);
        }
        assert_eq!(remembered.lock().len(), MAX_APPROVALS);
        assert!(
            remembered.is_approved(ApprovalScope::Session(9_999), "erase", Approver::Client)
                && !remembered.is_approved(ApprovalScope::Session(0), "erase", Approver::Client)
        );
    }

    #[test]
    fn an_approval_without_a_session_expires() {
        let yes = |scope| GivenApproval {
            scope,
            tool: "erase".to_owned(),
            approver: Approver::Client,
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
