//! Comparison of a grant with the grant that its plugin proposes.

use std::path::Path;

use toolbay_bundle::ProposedGrant;
use toolbay_catalog::Grant;

/// The differences between a grant and a proposal, one permission each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GrantComparison {
    /// Permissions that the grant gives and the proposal does not name.
    pub(crate) excess: Vec<String>,
    /// Permissions that the proposal names and the grant does not give.
    pub(crate) missing: Vec<String>,
}

impl GrantComparison {
    /// Compares a grant with a proposal.
    ///
    /// # Errors
    ///
    /// Returns the reason if the proposal could not be a grant.
    pub(crate) fn new(grant: &Grant, proposal: &ProposedGrant) -> Result<Self, String> {
        let proposed = parse_proposal(proposal)?;
        let mut excess = grant.permissions.excess_over(&proposed.permissions);
        let mut missing = proposed.permissions.excess_over(&grant.permissions);
        excess.extend(secrets_without(grant, &proposed));
        missing.extend(secrets_without(&proposed, grant));
        Ok(Self { excess, missing })
    }
}

/// Returns the secrets of a grant that the other one does not have.
fn secrets_without<'a>(grant: &'a Grant, other: &'a Grant) -> impl Iterator<Item = String> + 'a {
    grant
        .secrets
        .keys()
        .filter(|name| !other.secrets.contains_key(*name))
        .map(|name| format!("secrets.{name}"))
}

/// Parses a proposed grant to check its values and to compare it with a grant. The result is never
/// used as a grant.
pub(crate) fn parse_proposal(proposal: &ProposedGrant) -> Result<Grant, String> {
    let parsed = Grant::parse("proposal", &proposal.checkable_text(), Path::new(""));
    // The position is that of a text that no one reads.
    parsed.map_err(|why| {
        let mistake = why.strip_prefix("proposal:").unwrap_or(&why);
        let mistake =
            mistake.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | ' '));
        mistake.to_owned()
    })
}
