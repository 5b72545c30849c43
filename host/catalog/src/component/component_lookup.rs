//! Finds components that are already compiled.

use std::sync::Arc;

use toolbay_model::Digest;
use toolbay_sandbox::{CachedCode, ComponentSummary};

use crate::component::code_recovery::CodeRecovery;
use crate::component::component_code::{ComponentCode, StoredOrigin};
use crate::component::component_registry::ComponentRegistry;
use crate::component::load_environment::LoadEnvironment;
use crate::component::loaded_component::LoadedComponent;
use crate::component::refusal_cache::RefusalCache;
use crate::component::stored_component::StoredComponent;
use crate::folder::load_error::LoadError;

/// Finds components that are already compiled.
pub(crate) struct ComponentLookup {
    pub(crate) environment: LoadEnvironment,
    pub(crate) registry: Arc<ComponentRegistry>,
    pub(crate) refusals: Arc<RefusalCache>,
    pub(crate) recovery: Arc<CodeRecovery>,
}

/// A component that is already compiled.
pub(crate) enum KnownComponent {
    /// The component is loaded and checked.
    Ready(Arc<LoadedComponent>),
    /// The component is stored, but checking its long description takes a while.
    Unchecked(Box<StoredComponent>),
}

impl ComponentLookup {
    /// Returns the component in use with this digest, or the stored one. Another server may have
    /// stored it. Blocks.
    ///
    /// # Errors
    ///
    /// The component was refused before, by this server or another one. If `postpones_slow` is set,
    /// this includes a component whose load timed out, which is retried later.
    pub(crate) fn find(
        &self,
        id: &str,
        digest: Digest,
        postpones_slow: bool,
    ) -> Result<Option<KnownComponent>, LoadError> {
        if let Some(why) = self.refusals.find(digest) {
            return Err(LoadError::Refused(why));
        }
        if let Some(component) = self.registry.find(digest) {
            return Ok(Some(KnownComponent::Ready(component)));
        }
        let Some(cached) = self.environment.sandbox.find_cached(digest) else {
            return match self.refusals.find_stored(digest) {
                Some(refusal) if refusal.is_final => Err(LoadError::Refused(refusal.reason)),
                Some(refusal) if postpones_slow => Err(LoadError::Transient(refusal.reason)),
                _ => Ok(None),
            };
        };
        let stored = StoredComponent {
            digest,
            code: self.build_code(id, cached.summary, cached.code),
            description: cached.description,
            about: cached.about,
        };
        if !stored.is_quick_to_check() {
            return Ok(Some(KnownComponent::Unchecked(Box::new(stored))));
        }
        let checked = stored.check(&self.environment.rules.current().description_limits);
        let component =
            checked.map_err(|why| self.refusals.record(digest, LoadError::Refused(why)))?;
        Ok(Some(KnownComponent::Ready(self.registry.intern(component))))
    }

    fn build_code(&self, id: &str, summary: ComponentSummary, code: CachedCode) -> ComponentCode {
        match code {
            CachedCode::Open(prepared) => (*prepared).into(),
            CachedCode::Unopened(code) => {
                let origin = StoredOrigin {
                    code,
                    id: id.to_owned(),
                    recovery: Arc::clone(&self.recovery),
                };
                ComponentCode::from_stored(summary, origin)
            }
        }
    }
}
