//! Reasons of refused components, in memory and in the compile cache.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use toolbay_model::Digest;
use toolbay_model::text::clean_line;
use toolbay_sandbox::StoredRefusal;

use crate::component::failed_step::{FailedStep, FailureMemory};
use crate::component::load_environment::LoadEnvironment;
use crate::folder::description_limits::DescribeLimits;
use crate::folder::load_error::LoadError;
use crate::rules::load_policy::LoadPolicy;

/// Maximum number of cached refusals.
const MAX_CACHED_REFUSALS: usize = 4096;

/// Maximum length of the reason of a cached refusal, in bytes.
pub(crate) const MAX_REASON_BYTES: usize = 2_000;

/// Reasons of refused components, by digest: the same bytes would be refused again, possibly after
/// minutes of work.
pub(crate) struct RefusalCache {
    environment: LoadEnvironment,
    reasons: Mutex<HashMap<Digest, String>>,
}

impl RefusalCache {
    /// Creates an empty cache.
    pub(crate) fn new(environment: LoadEnvironment) -> Self {
        Self {
            environment,
            reasons: Mutex::default(),
        }
    }

    /// Returns the reason why this process refused the component.
    pub(crate) fn find(&self, digest: Digest) -> Option<String> {
        self.lock().get(&digest).cloned()
    }

    /// Returns the refusal in the compile cache, which another server may have stored. Blocks.
    pub(crate) fn find_stored(&self, digest: Digest) -> Option<StoredRefusal> {
        let conditions = refusal_conditions(&self.environment.rules.current());
        self.environment.sandbox.find_refusal(digest, &conditions)
    }

    /// Caches a refusal in memory. Returns the error with a cleaned reason.
    pub(crate) fn record(&self, digest: Digest, mut error: LoadError) -> LoadError {
        if let LoadError::Refused(why) | LoadError::Transient(why) = &mut error {
            // The reason may quote the plugin: a name, a list of imports.
            *why = clean_line(why, MAX_REASON_BYTES);
        }
        if let LoadError::Refused(why) = &error {
            let mut reasons = self.lock();
            if reasons.len() >= MAX_CACHED_REFUSALS {
                reasons.clear();
            }
            reasons.insert(digest, why.clone());
        }
        error
    }

    /// Caches a failure in memory and, if the next start can use it, in the compile cache.
    pub(crate) async fn record_failure(&self, digest: Digest, failure: FailedStep) -> LoadError {
        let FailedStep { error, memory } = failure;
        let error = self.record(digest, error);
        let is_final = match memory {
            FailureMemory::Process => return error,
            FailureMemory::Slow => false,
            // The machine may be to blame, or the guest may only quote such an error.
            FailureMemory::Lasting => !error.reason().contains("(os error "),
        };
        let refusal = StoredRefusal {
            reason: error.reason().to_owned(),
            is_final,
        };
        let environment = self.environment.clone();
        let store = move || {
            let conditions = refusal_conditions(&environment.rules.current());
            environment
                .sandbox
                .store_refusal(digest, &conditions, &refusal);
        };
        if let Err(error) = tokio::task::spawn_blocking(store).await {
            tracing::debug!(%digest, "storing a refusal failed: {error}");
        }
        error
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, String>> {
        self.reasons.lock()
    }
}

/// Returns the rules that decide whether a component is refused. The rules about files and grants
/// are not included, because they are applied without the compile cache.
fn refusal_conditions(rules: &LoadPolicy) -> String {
    let DescribeLimits {
        tools,
        prompts,
        resources,
        schemas,
        size,
        skills: _,
    } = rules.description_limits;
    let schemas = schemas.as_u64();
    let size = size.as_u64();
    let limits = serde_json::to_string(&rules.describe_limits).unwrap_or_default();
    format!("{limits} {tools} {prompts} {resources} {schemas} {size}")
}
