//! The stages of a load, in order.

use std::sync::Arc;

use tokio::time::sleep_until;
use toolbay_model::Digest;
use toolbay_secrets::ProgramRunner;

use crate::component::blocking_work::run_blocking;
use crate::component::check_queue::CheckQueue;
use crate::component::code_recovery::CodeRecovery;
use crate::component::component_compiler::ComponentCompiler;
use crate::component::component_lookup::ComponentLookup;
use crate::component::component_registry::ComponentRegistry;
use crate::component::load_environment::LoadEnvironment;
use crate::component::loaded_component::LoadedComponent;
use crate::component::refusal_cache::RefusalCache;
use crate::component::source_reader::SourceReader;
use crate::folder::folder_lock::LockRules;
use crate::folder::grant_age::GrantAge;
use crate::folder::load_error::LoadError;
use crate::folder::plugin_folder::PluginFiles;
use crate::load::component_builder::ComponentBuilder;
use crate::load::grant_application::AppliedGrant;
use crate::load::grant_file::GrantFile;
use crate::load::granted_component::GrantedComponent;
use crate::load::load_result::{LoadCause, LoadOutcome};
use crate::load::plain_file_reader::PlainFileReader;
use crate::load::plugin_reader::{ComponentInput, LoadContext, PluginInput, PluginReader};
use crate::load::secret_fetcher::SecretFetcher;
use crate::load::version_check::{approve_parts, check_version, hold, is_grant_held};
use crate::rules::grant::Grant;
use crate::version::plain_files::PlainFiles;
use crate::version::plugin::Plugin;

/// The stages of a load.
pub(crate) struct LoadStages {
    pub(crate) environment: LoadEnvironment,
    pub(crate) sources: Arc<SourceReader>,
    pub(crate) reader: Arc<PluginReader>,
    pub(crate) builder: ComponentBuilder,
    pub(crate) secrets: SecretFetcher,
    pub(crate) plain_files: Arc<PlainFileReader>,
}

/// Compiled and described component, and the grant as it was read.
struct LoadedFiles {
    component: Arc<LoadedComponent>,
    grant: Option<Box<GrantFile>>,
}

impl LoadStages {
    pub(crate) fn new(environment: LoadEnvironment) -> Self {
        let checks = Arc::new(CheckQueue::new());
        let sources = Arc::new(SourceReader::new(environment.clone()));
        let compiler = Arc::new(ComponentCompiler::new(environment.clone()));
        let refusals = Arc::new(RefusalCache::new(environment.clone()));
        let registry = Arc::new(ComponentRegistry::default());
        let recovery = Arc::new(CodeRecovery {
            environment: environment.clone(),
            sources: Arc::clone(&sources),
            compiler: Arc::clone(&compiler),
            refusals: Arc::clone(&refusals),
        });
        let lookup = ComponentLookup {
            environment: environment.clone(),
            registry: Arc::clone(&registry),
            refusals: Arc::clone(&refusals),
            recovery,
        };
        let reader = Arc::new(PluginReader {
            environment: environment.clone(),
            sources: Arc::clone(&sources),
            lookup,
        });
        let builder = ComponentBuilder {
            environment: environment.clone(),
            reader: Arc::clone(&reader),
            compiler,
            checks: Arc::clone(&checks),
            registry,
            refusals,
        };
        let plain_files = Arc::new(PlainFileReader::new(environment.clone(), checks));
        Self {
            secrets: SecretFetcher::new(environment.clone(), ProgramRunner::default()),
            environment,
            sources,
            reader,
            builder,
            plain_files,
        }
    }

    /// Loads the first version of a plugin, after its grant has settled.
    pub(crate) async fn load_first(
        &self,
        id: &str,
        files: &PluginFiles,
        occasion: LoadContext,
        age: &Arc<GrantAge>,
    ) -> Result<LoadOutcome, LoadError> {
        files.check_grant_name(id)?;
        let (component, mut file) = if files.component.is_some() {
            let loaded = self.load_files(id, occasion, Some(age)).await?;
            let file = loaded.grant.ok_or(LoadError::Gone)?;
            (Some(loaded.component), *file)
        } else {
            (None, self.read_grant(id, age).await?)
        };
        // A plugin without a grant is denied everything: there is nothing to wait for.
        while let Some(settles) = file.settles_at.filter(|_| file.exists) {
            sleep_until(settles).await;
            file = self.read_grant(id, age).await?;
        }
        let granted = match component {
            Some(component) => GrantedComponent::check(id, component, file.grant).await?,
            None => GrantedComponent::without_code(id, &file.grant)?,
        };
        self.finish_load(id, granted, Some(files), None).await
    }

    /// Reads a plugin's grant, on a blocking thread.
    pub(crate) async fn read_grant(
        &self,
        id: &str,
        age: &Arc<GrantAge>,
    ) -> Result<GrantFile, LoadError> {
        GrantFile::read(&self.environment.folder, id, age).await
    }

    /// Returns the component in the file. It may be in use already, or in the compile cache.
    /// Otherwise it is compiled now.
    pub(crate) async fn load_component(
        &self,
        id: &str,
        occasion: LoadContext,
    ) -> Result<Arc<LoadedComponent>, LoadError> {
        Ok(self.load_files(id, occasion, None).await?.component)
    }

    /// Returns the component in the file, or `None` if it must be compiled first.
    pub(crate) async fn load_compiled_component(
        &self,
        id: &str,
        occasion: LoadContext,
    ) -> Result<Option<Arc<LoadedComponent>>, LoadError> {
        let _reading = self.sources.acquire().await;
        let read = self.reader.read(id, occasion, None).await?;
        match read.component {
            ComponentInput::New(_) => Ok(None),
            ComponentInput::Known(known) => {
                let component = self.builder.check_known(read.digest, known).await?;
                Ok(Some(component))
            }
        }
    }

    /// Loads the component in the file. Also reads the grant if `age` is set.
    async fn load_files(
        &self,
        id: &str,
        occasion: LoadContext,
        age: Option<&Arc<GrantAge>>,
    ) -> Result<LoadedFiles, LoadError> {
        let reading = self.sources.acquire().await;
        let is_retry = occasion.cause == LoadCause::Retry;
        let PluginInput {
            digest,
            component,
            grant,
        } = self.reader.read(id, occasion, age).await?;
        let component = self
            .builder
            .build(id, digest, component, reading, is_retry)
            .await?;
        Ok(LoadedFiles { component, grant })
    }

    /// Fetches the secrets of a grant and applies the grant to the component. Reads the plain files
    /// in `files`. If `files` is `None`, keeps the plain files of `previous`, the version in
    /// service.
    pub(crate) async fn finish_load(
        &self,
        id: &str,
        granted: GrantedComponent,
        files: Option<&PluginFiles>,
        previous: Option<&Arc<Plugin>>,
    ) -> Result<LoadOutcome, LoadError> {
        let rules = self.environment.lock.rules();
        // Secrets are fetched only for an approved grant: a program of the grant may print them.
        let secrets = if is_grant_held(rules.as_ref(), id, &granted.grant) {
            None
        } else {
            Some(self.secrets.fetch(id, &granted.grant).await?)
        };
        let environment = self.environment.clone();
        let reader = Arc::clone(&self.plain_files);
        let id = id.to_owned();
        let files = files.cloned();
        let previous = previous
            .map(|plugin| Arc::clone(&plugin.files))
            .unwrap_or_default();
        let permit = match &files {
            Some(files) => reader.acquire(files).await,
            None => None,
        };
        // A plugin can have thousands of tools, and a grant can change each of them. Opening
        // mounted folders can block.
        run_blocking("applying its grant", move || {
            let _permit = permit;
            let read_plain = |plugin: &Plugin| match &files {
                Some(files) => reader.read(plugin, files, &previous),
                None => Ok(Arc::clone(&previous)),
            };
            if let (Some(rules), None) = (&rules, &secrets) {
                let held = AppliedGrant::for_comparison(&environment, id, granted);
                return Err(hold(rules, &held.with_files(read_plain(&held)?)));
            }
            let secrets = secrets.unwrap_or_default();
            let applied = AppliedGrant::new(&environment, id, granted, secrets)?;
            let plain = read_plain(&applied.plugin)?;
            check_version(environment.lock.rules().as_ref(), applied.with_files(plain))
        })
        .await
    }

    /// Loads an approved version of a plugin whose files were held, if its component is in use or in
    /// the compile cache and its grant is the approved one. Plain files that were not approved are
    /// left out.
    pub(crate) async fn load_approved(
        &self,
        id: &str,
        files: &PluginFiles,
        age: &Arc<GrantAge>,
    ) -> Option<LoadOutcome> {
        let rules = self.environment.lock.rules()?;
        let grant = self.read_grant(id, age).await.ok()?.grant;
        for accepted in rules.accepted_sources(id) {
            if grant.digest != accepted.grant {
                continue;
            }
            let component = accepted.component;
            let approved = self
                .load_parts(&rules, id, files, component, grant.clone())
                .await;
            if approved.is_some() {
                return approved;
            }
        }
        None
    }

    /// Loads the approved parts of a plugin with this component and an approved grant.
    async fn load_parts(
        &self,
        rules: &LockRules,
        id: &str,
        files: &PluginFiles,
        component: Option<Digest>,
        grant: Grant,
    ) -> Option<LoadOutcome> {
        let granted = match component {
            Some(digest) => {
                let component = self.find_component(id, digest).await?;
                GrantedComponent::check(id, component, grant).await.ok()?
            }
            None => GrantedComponent::without_code(id, &grant).ok()?,
        };
        let secrets = self.secrets.fetch(id, &granted.grant).await.ok()?;
        let environment = self.environment.clone();
        let reader = Arc::clone(&self.plain_files);
        let _permit = reader.acquire(files).await;
        let (id, files, rules) = (id.to_owned(), files.clone(), rules.clone());
        let approved = run_blocking("applying its grant", move || {
            let applied = AppliedGrant::new(&environment, id, granted, secrets)?;
            let plain = reader.read(&applied.plugin, &files, &PlainFiles::default())?;
            approve_parts(&rules, &applied, plain)
        });
        approved.await.ok()
    }

    /// Returns a component that is in use or in the compile cache.
    async fn find_component(&self, id: &str, digest: Digest) -> Option<Arc<LoadedComponent>> {
        let reader = Arc::clone(&self.reader);
        let id = id.to_owned();
        let known = run_blocking("searching the compile cache", move || {
            reader.lookup.find(&id, digest, false)
        });
        let known = known.await.ok()??;
        self.builder.check_known(digest, known).await.ok()
    }
}
