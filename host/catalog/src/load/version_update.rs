//! Replaces a version in service when its files change. No restriction is lost while a file is
//! still being written or when a component is refused.

use std::sync::Arc;

use tokio::time::Instant;

use crate::component::loaded_component::LoadedComponent;
use crate::folder::load_error::LoadError;
use crate::folder::plugin_folder::PluginFiles;
use crate::load::grant_file::GrantFile;
use crate::load::granted_component::GrantedComponent;
use crate::load::load_result::{LoadBaseline, LoadOutcome, LoadResult};
use crate::load::load_stages::LoadStages;
use crate::load::plugin_reader::LoadContext;
use crate::load::rights_narrowing::narrow_rights;
use crate::rules::grant::Grant;
use crate::version::plugin::Plugin;

/// Reason why the files cannot replace the version in service.
pub(crate) struct UpdateFailure {
    pub(crate) error: LoadError,
    /// The grant, if it has settled and only the component is refused.
    pub(crate) grant: Option<Box<Grant>>,
}

impl From<LoadError> for UpdateFailure {
    fn from(error: LoadError) -> Self {
        Self { error, grant: None }
    }
}

/// Update of a version in service.
#[derive(Clone, Copy)]
pub(crate) struct VersionUpdate<'a> {
    pub(crate) stages: &'a LoadStages,
    /// The plugin.
    pub(crate) id: &'a str,
    pub(crate) files: &'a PluginFiles,
    pub(crate) before: &'a LoadBaseline,
    /// The version in service.
    pub(crate) previous: &'a Arc<Plugin>,
}

impl VersionUpdate<'_> {
    /// Loads the version that replaces the one in service. A grant gives rights only after it has
    /// settled.
    pub(crate) async fn load(self) -> Result<LoadResult, UpdateFailure> {
        self.files.check_grant_name(self.id)?;
        let GrantFile {
            grant, settles_at, ..
        } = self
            .stages
            .read_grant(self.id, &self.before.grant_age)
            .await?;
        if self.files.component.is_none() {
            return self.load_without_code(&grant, settles_at).await;
        }
        let is_same = grant.is_equivalent_to(&self.previous.terms.source_grant);
        if let Some(settles) = settles_at.filter(|_| !is_same) {
            return Ok(LoadResult::Pending(self.narrow(grant).await?, settles));
        }
        let refused = |error| UpdateFailure {
            error,
            grant: (!is_same).then(|| Box::new(grant.clone())),
        };
        let compiled = if is_same {
            None
        } else {
            // Compiling can take minutes, during which a stricter grant applies.
            let compiled = self
                .stages
                .load_compiled_component(self.id, self.occasion())
                .await
                .map_err(refused)?;
            if compiled.is_none()
                && let Some(narrowed) = self.narrow(grant.clone()).await?
            {
                return Ok(LoadResult::Pending(Some(narrowed), Instant::now()));
            }
            compiled
        };
        let component = match compiled {
            Some(component) => component,
            None => self
                .stages
                .load_component(self.id, self.occasion())
                .await
                .map_err(refused)?,
        };
        let is_new = component.digest != self.previous.component.digest;
        match self.finish(component, grant.clone()).await {
            Ok(loaded) => Ok(LoadResult::Loaded(loaded)),
            // The grant may be for the component in service.
            Err(error @ LoadError::Held(_)) => Err(refused(error)),
            Err(error) if is_new => Err(refused(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Loads the version of a plugin that has only plain files now.
    async fn load_without_code(
        self,
        grant: &Grant,
        settles_at: Option<Instant>,
    ) -> Result<LoadResult, UpdateFailure> {
        let granted = GrantedComponent::without_code(self.id, grant)?;
        let in_force = &self.previous.terms.source_grant;
        let is_same = granted.grant.is_equivalent_to(in_force);
        if let Some(settles) = settles_at.filter(|_| !is_same) {
            let GrantedComponent { component, grant } = granted;
            let narrowed = self.narrow_component(component, grant).await?;
            return Ok(LoadResult::Pending(narrowed, settles));
        }
        let changed_grant = (!is_same).then(|| Box::new(granted.grant.clone()));
        let loaded = self
            .stages
            .finish_load(self.id, granted, Some(self.files), Some(self.previous))
            .await;
        match loaded {
            Ok(loaded) => Ok(LoadResult::Loaded(loaded)),
            Err(error @ LoadError::Held(_)) => Err(UpdateFailure {
                error,
                grant: changed_grant,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that a grant is valid for the component, and applies it with the plain files.
    async fn finish(
        self,
        component: Arc<LoadedComponent>,
        grant: Grant,
    ) -> Result<LoadOutcome, LoadError> {
        let granted = GrantedComponent::check(self.id, component, grant).await?;
        self.stages
            .finish_load(self.id, granted, Some(self.files), Some(self.previous))
            .await
    }

    /// Applies the intersection of `grant` and the grant in force to the component in service.
    /// Returns `None` if that is already in service.
    pub(crate) async fn narrow(self, grant: Grant) -> Result<Option<LoadOutcome>, LoadError> {
        self.narrow_component(Arc::clone(&self.previous.component), grant)
            .await
    }

    async fn narrow_component(
        self,
        component: Arc<LoadedComponent>,
        grant: Grant,
    ) -> Result<Option<LoadOutcome>, LoadError> {
        narrow_rights(
            &self.stages.environment,
            self.id,
            component,
            grant,
            self.previous,
            self.before.have_rules_changed,
        )
        .await
    }

    /// Returns whether a version of the plugin is approved: in the lock file or in the console.
    pub(crate) fn has_approved_version(self) -> bool {
        let rules = self.stages.environment.lock.rules();
        rules.is_some_and(|rules| !rules.accepted_sources(self.id).is_empty())
    }

    fn occasion(self) -> LoadContext {
        LoadContext {
            known: None,
            cause: self.before.cause,
        }
    }
}
