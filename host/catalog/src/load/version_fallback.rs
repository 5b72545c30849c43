//! Determines the version in service when the new files cannot be loaded.

use std::sync::Arc;

use toolbay_model::text::clean_line;

use crate::component::refusal_cache::MAX_REASON_BYTES;
use crate::folder::load_error::LoadError;
use crate::load::granted_component::GrantedComponent;
use crate::load::load_result::{FallbackVersion, LoadResult};
use crate::load::rights_narrowing::reapply_grant;
use crate::load::version_update::{UpdateFailure, VersionUpdate};
use crate::rules::grant::Grant;

/// Determines the version in service when the files cannot be loaded.
pub(crate) async fn fall_back(update: VersionUpdate<'_>, failure: UpdateFailure) -> LoadResult {
    let UpdateFailure { error, grant } = failure;
    if error == LoadError::Gone {
        return LoadResult::Failed(error, FallbackVersion::Unchanged);
    }
    if update.files.component.is_none() && update.previous.digest().is_some() {
        // The component is deleted, regardless of the grant.
        return LoadResult::Failed(error, FallbackVersion::NoVersion);
    }
    if update.before.is_approval_void
        || matches!(error, LoadError::Held(_)) && !update.has_approved_version()
    {
        // The version in service is not an approved one either.
        return LoadResult::Failed(error, FallbackVersion::NoVersion);
    }
    if let Some(grant) = grant {
        return fall_back_under_grant(update, *grant, error).await;
    }
    if !update.before.have_rules_changed {
        return LoadResult::Failed(error, FallbackVersion::Unchanged);
    }
    if update.previous.terms.source_grant.is_partial {
        // The grant in force is the intersection of two files under the previous rules, and cannot
        // be computed again.
        return LoadResult::Failed(error, FallbackVersion::NoVersion);
    }
    let environment = update.stages.environment.clone();
    let id = update.id.to_owned();
    let previous = Arc::clone(update.previous);
    let applied = tokio::task::spawn_blocking(move || {
        let component = Arc::clone(&previous.component);
        let grant = Grant::clone(&previous.terms.source_grant);
        let granted = GrantedComponent::with_rights_in_force(component, grant);
        reapply_grant(&environment, id, granted, &previous)
    });
    match applied.await {
        Ok(Ok(loaded)) => LoadResult::Failed(error, FallbackVersion::Regranted(loaded)),
        Ok(Err(_)) | Err(_) => LoadResult::Failed(error, FallbackVersion::NoVersion),
    }
}

/// Applies a grant to the component in service, because the component in the file is refused with
/// this error.
async fn fall_back_under_grant(
    update: VersionUpdate<'_>,
    grant: Grant,
    error: LoadError,
) -> LoadResult {
    let VersionUpdate { id, previous, .. } = update;
    let component = &previous.component;
    if grant
        .component
        .is_some_and(|pinned| pinned != component.digest)
    {
        return LoadResult::Failed(error, FallbackVersion::NoVersion);
    }
    let applied = match GrantedComponent::check_fit(id, component, &grant).await {
        Some(granted) => {
            let applied = update
                .stages
                .finish_load(id, granted, None, Some(previous))
                .await;
            match applied {
                // The grant is not approved. It can only remove rights.
                Err(LoadError::Held(_)) => update.narrow(grant).await,
                applied => applied.map(Some),
            }
        }
        // The grant also names tools of another component. Its settings for this component's tools
        // apply.
        None => update.narrow(grant).await,
    };
    match applied {
        Ok(Some(loaded)) => LoadResult::Failed(error, FallbackVersion::Regranted(loaded)),
        Ok(None) => LoadResult::Failed(error, FallbackVersion::Unchanged),
        Err(LoadError::Refused(why)) => {
            // The grant would be refused without the new component, too. Both files are
            // refused.
            let both = clean_line(&format!("{}; and {why}", error.reason()), MAX_REASON_BYTES);
            LoadResult::Failed(LoadError::Refused(both), FallbackVersion::Unchanged)
        }
        Err(why) => {
            let both = clean_line(
                &format!(
                    "{}; and applying its grant failed: {}",
                    error.reason(),
                    why.reason()
                ),
                MAX_REASON_BYTES,
            );
            LoadResult::Failed(LoadError::Transient(both), FallbackVersion::NoVersion)
        }
    }
}
