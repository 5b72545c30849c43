//! The operators of a console, and the tools that they may call. Both can change while the server
//! runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolbay_console::{AdminToken, ConsoleAccess};
use toolbay_mcp::CallerRights;

use crate::config::{Config, ConsoleOpener};

/// The operators of a server with a console, which the configuration can change at run time.
pub(crate) struct ConsoleOperators {
    access: ConsoleAccess,
    rights: OperatorRights,
}

/// The tools that operators with a token may call, by the names of the callers.
#[derive(Clone)]
pub(super) struct OperatorRights(Arc<Mutex<BTreeMap<String, CallerRights>>>);

impl OperatorRights {
    /// Reads the rights of the operators that `config` names.
    pub(super) fn new(config: &Config) -> Self {
        Self(Arc::new(Mutex::new(rights_by_operator(config))))
    }

    /// Returns whether the operator may call the tool. A token that is no longer configured has no
    /// rights.
    pub(super) fn allow(&self, operator: &str, tool: &str) -> bool {
        let rights = self.0.lock();
        rights
            .get(operator)
            .is_some_and(|rights| rights.allow(tool))
    }
}

impl ConsoleOperators {
    /// Creates the operators that `access` admits.
    pub(super) const fn new(access: ConsoleAccess, rights: OperatorRights) -> Self {
        Self { access, rights }
    }

    /// Restricts access to the operators that `config` names, and updates their rights. A console
    /// that is opened with an address from the log is still opened that way if no token is
    /// required.
    pub(crate) fn update(&self, config: &Config) {
        if !matches!(
            config.console.opener(&config.http),
            Some(ConsoleOpener::LogReader)
        ) {
            self.access
                .set_admins(admin_tokens(config), other_tokens(config));
        }
        *self.rights.0.lock() = rights_by_operator(config);
    }
}

/// Returns the name of the caller with this token.
fn caller_name(token: &str) -> String {
    format!("token:{token}")
}

/// Returns the tokens that open the console.
pub(super) fn admin_tokens(config: &Config) -> Vec<AdminToken> {
    console_tokens(config, true)
}

/// Returns the tokens that do not open the console.
pub(super) fn other_tokens(config: &Config) -> Vec<AdminToken> {
    console_tokens(config, false)
}

fn console_tokens(config: &Config, is_admin: bool) -> Vec<AdminToken> {
    let tokens = config.http.tokens.iter();
    tokens
        .filter(|token| token.admin == is_admin)
        .map(|token| AdminToken {
            name: caller_name(&token.name),
            sha256: token.sha256,
        })
        .collect()
}

/// Returns the rights of the operators, by the names of the callers.
fn rights_by_operator(config: &Config) -> BTreeMap<String, CallerRights> {
    let admins = config.http.tokens.iter().filter(|token| token.admin);
    admins
        .map(|token| {
            (
                caller_name(&token.name),
                token
                    .tools
                    .clone()
                    .map_or(CallerRights::All, CallerRights::Only),
            )
        })
        .collect()
}
