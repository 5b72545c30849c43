//! Replaces a version in service when its files change. No restriction is lost because a file is
//! still being written or because a component is refused.

use std::sync::Arc;

use tokio::time::Instant;
use toolbay_model::text::clean_line;

use super::{
    GrantFile, LoadOccasion, MAX_REASON_BYTES, PluginLoader, PluginSources, codeless_plugin,
};
use crate::grant::{Grant, GrantSecrets};
use crate::load_error::LoadError;
use crate::load_result::{FallbackVersion, LoadCause, LoadOutcome, LoadResult, PreviousVersion};
use crate::loaded_component::LoadedComponent;
use crate::plugin::{Plugin, tool_name};
use crate::plugin_folder::PluginFiles;

/// Reason why the files cannot replace the version in service.
struct UpdateFailure {
    error: LoadError,
    /// The grant, if it has settled and only the component is refused.
    grant: Option<Box<Grant>>,
}

impl PluginLoader {
    /// Loads the plugin `id` from these files. A grant gives rights only after it has been
    /// unchanged for [`SETTLE_TIME`](crate::grant_age::SETTLE_TIME). A first version waits for
    /// that. Until then, a version in service has only the rights that both the new grant and the
    /// grant in force allow.
    pub(crate) async fn load_files(
        self: Arc<Self>,
        id: String,
        files: PluginFiles,
        before: PreviousVersion,
    ) -> LoadResult {
        let Some(previous) = before.plugin.clone() else {
            let is_start = matches!(before.cause, LoadCause::Start { .. });
            let occasion = LoadOccasion {
                known: is_start.then(|| files.clone()),
                cause: before.cause,
            };
            return match self
                .load_first(&id, &files, occasion, &before.grant_age)
                .await
            {
                Ok(loaded) => LoadResult::Loaded(loaded),
                Err(error) => LoadResult::Failed(error, FallbackVersion::Unchanged),
            };
        };
        match self.load_next(&id, &files, &before, &previous).await {
            Ok(result) => result,
            Err(failure) => {
                self.fall_back(&id, &files, &before, &previous, failure)
                    .await
            }
        }
    }

    /// Loads the version after `previous`.
    async fn load_next(
        self: &Arc<Self>,
        id: &str,
        files: &PluginFiles,
        before: &PreviousVersion,
        previous: &Arc<Plugin>,
    ) -> Result<LoadResult, UpdateFailure> {
        let failed = |error| UpdateFailure { error, grant: None };
        files.check_grant_name(id).map_err(failed)?;
        let GrantFile {
            grant,
            settles_at: settles,
            ..
        } = self
            .read_grant(id, &before.grant_age)
            .await
            .map_err(failed)?;
        let in_force = &previous.terms.source_grant;
        if files.component.is_none() {
            let (component, grant) = codeless_plugin(id, &grant).map_err(failed)?;
            if let Some(settles) = settles.filter(|_| !grant.is_equivalent_to(in_force)) {
                let narrowed = self
                    .narrow(id, component, grant, before, previous)
                    .await
                    .map_err(failed)?;
                return Ok(LoadResult::Pending(narrowed, settles));
            }
            let loaded = self
                .load_under_grant(id, component, grant, files, Some(previous))
                .await;
            return Ok(LoadResult::Loaded(loaded.map_err(failed)?));
        }
        let is_same = grant.is_equivalent_to(in_force);
        let narrow = |grant: Grant| {
            let (component, this) = (Arc::clone(&previous.component), Arc::clone(self));
            async move {
                this.narrow(id, component, grant, before, previous)
                    .await
                    .map_err(failed)
            }
        };
        if let Some(settles) = settles.filter(|_| !is_same) {
            return Ok(LoadResult::Pending(narrow(grant).await?, settles));
        }
        let refused = |error| UpdateFailure {
            error,
            grant: (!is_same).then(|| Box::new(grant.clone())),
        };
        let occasion = || LoadOccasion {
            known: None,
            cause: before.cause,
        };
        let component = match self
            .load_component(id, occasion(), None, !is_same)
            .await
            .map_err(refused)?
        {
            PluginSources::Component(component, _) => component,
            // Compiling can take minutes, during which a stricter grant applies.
            PluginSources::NotCompiled => match narrow(grant.clone()).await? {
                Some(narrowed) => return Ok(LoadResult::Pending(Some(narrowed), Instant::now())),
                None => match self
                    .load_component(id, occasion(), None, false)
                    .await
                    .map_err(refused)?
                {
                    PluginSources::Component(component, _) => component,
                    PluginSources::NotCompiled => return Err(failed(LoadError::Gone)),
                },
            },
        };
        let is_new = component.digest != previous.component.digest;
        match self
            .load_under_grant(id, component, grant.clone(), files, Some(previous))
            .await
        {
            Ok(loaded) => Ok(LoadResult::Loaded(loaded)),
            // The grant may be for the component in service.
            Err(error) if is_new => Err(refused(error)),
            Err(error) => Err(failed(error)),
        }
    }

    /// Applies the intersection of `grant` and the grant in force to the component. Returns `None`
    /// if that is already in service. If it cannot be applied, the load must be retried.
    async fn narrow(
        self: &Arc<Self>,
        id: &str,
        component: Arc<LoadedComponent>,
        grant: Grant,
        before: &PreviousVersion,
        previous: &Arc<Plugin>,
    ) -> Result<Option<LoadOutcome>, LoadError> {
        let (this, id, previous, are_rules_new) = (
            Arc::clone(self),
            id.to_owned(),
            Arc::clone(previous),
            before.are_rules_new,
        );
        let narrowed = tokio::task::spawn_blocking(move || {
            let in_force = &previous.terms.source_grant;
            let own = component
                .contents
                .tools
                .iter()
                .map(|known| known.tool.name.clone());
            let tools = if component.is_command() {
                vec![tool_name(&id)]
            } else {
                own.collect()
            };
            let both = this.rules.current().intersection(&grant, in_force, &tools);
            let is_same =
                both.is_equivalent_to(in_force) && Arc::ptr_eq(&component, &previous.component);
            if is_same && !are_rules_new {
                Ok(None)
            } else {
                this.reapply(id, component, both, &previous).map(Some)
            }
        });
        narrowed.await.unwrap_or_else(|error| {
            Err(LoadError::Transient(format!(
                "applying its grant failed: {error}"
            )))
        })
    }

    /// Applies a grant that has no more secrets than the version in service, and reuses their
    /// values. Blocks.
    fn reapply(
        &self,
        id: String,
        component: Arc<LoadedComponent>,
        grant: Grant,
        previous: &Plugin,
    ) -> Result<LoadOutcome, LoadError> {
        let refused = |why| LoadError::Refused(format!("{id}.toml: {why}"));
        let secrets = grant.secret_specs().map_err(refused)?;
        let secrets = previous
            .terms
            .context
            .secrets
            .with_rules(secrets)
            .map_err(refused)?;
        let (plugin, remarks) = self.apply_grant(
            id,
            component,
            grant,
            GrantSecrets {
                secrets,
                remarks: Vec::new(),
            },
        )?;
        Ok(LoadOutcome {
            plugin: Arc::new(plugin.with_files(Arc::clone(&previous.files))),
            remarks,
        })
    }

    /// Determines the version in service when the files cannot be loaded.
    async fn fall_back(
        self: &Arc<Self>,
        id: &str,
        files: &PluginFiles,
        before: &PreviousVersion,
        previous: &Arc<Plugin>,
        UpdateFailure { error, grant }: UpdateFailure,
    ) -> LoadResult {
        if error == LoadError::Gone {
            return LoadResult::Failed(error, FallbackVersion::Unchanged);
        }
        if files.component.is_none() && previous.digest().is_some() {
            // The component is deleted, regardless of the grant.
            return LoadResult::Failed(error, FallbackVersion::NoVersion);
        }
        if let Some(grant) = grant {
            return self
                .fall_back_under_grant(id, *grant, before, previous, error)
                .await;
        }
        if !before.are_rules_new {
            return LoadResult::Failed(error, FallbackVersion::Unchanged);
        }
        if previous.terms.source_grant.is_partial {
            // The intersection of two files depends on the rules, and these files are not in force.
            return LoadResult::Failed(error, FallbackVersion::NoVersion);
        }
        let (this, id, previous) = (Arc::clone(self), id.to_owned(), Arc::clone(previous));
        let applied = tokio::task::spawn_blocking(move || {
            let grant = Grant::clone(&previous.terms.source_grant);
            this.reapply(id, Arc::clone(&previous.component), grant, &previous)
        });
        match applied.await {
            Ok(Ok(loaded)) => LoadResult::Failed(error, FallbackVersion::Narrowed(loaded)),
            Ok(Err(_)) | Err(_) => LoadResult::Failed(error, FallbackVersion::NoVersion),
        }
    }

    /// Applies a grant to the component in service, because the component in the file is refused
    /// with this error.
    async fn fall_back_under_grant(
        self: &Arc<Self>,
        id: &str,
        grant: Grant,
        before: &PreviousVersion,
        previous: &Arc<Plugin>,
        error: LoadError,
    ) -> LoadResult {
        let component = Arc::clone(&previous.component);
        if grant
            .component
            .is_some_and(|pinned| pinned != component.digest)
        {
            return LoadResult::Failed(error, FallbackVersion::NoVersion);
        }
        let fits = {
            let (grant, id, component) = (grant.clone(), id.to_owned(), Arc::clone(&component));
            let check = move || {
                let is_command = component.is_command();
                grant
                    .check_component(&id, component.digest, &component.contents, is_command)
                    .is_ok()
            };
            tokio::task::spawn_blocking(check).await.unwrap_or_default()
        };
        let applied = if fits {
            self.load_with_secrets(id, component, grant, None, Some(previous))
                .await
                .map(Some)
        } else {
            // The grant names tools of another component. Its settings of the other tools apply.
            self.narrow(id, component, grant, before, previous).await
        };
        match applied {
            Ok(Some(loaded)) => LoadResult::Failed(error, FallbackVersion::Narrowed(loaded)),
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
}
