//! Reads the component and the grant of a plugin.

use std::sync::Arc;

use toolbay_model::Digest;
use toolbay_sandbox::CompileSource;

use crate::component::blocking_work::run_blocking;
use crate::component::component_lookup::{ComponentLookup, KnownComponent};
use crate::component::load_environment::LoadEnvironment;
use crate::component::source_reader::{ReadSource, SourceReader};
use crate::folder::grant_age::GrantAge;
use crate::folder::load_error::LoadError;
use crate::folder::plugin_folder::PluginFiles;
use crate::load::grant_file::GrantFile;
use crate::load::load_result::LoadCause;

/// Reads the component and the grant of a plugin.
pub(crate) struct PluginReader {
    pub(crate) environment: LoadEnvironment,
    pub(crate) sources: Arc<SourceReader>,
    pub(crate) lookup: ComponentLookup,
}

/// Circumstances of a load.
#[derive(Debug, Default)]
pub(crate) struct LoadContext {
    /// The files at a server start: a component that is known from the previous start is not read.
    pub(crate) known: Option<PluginFiles>,
    pub(crate) cause: LoadCause,
}

/// Component and grant that were read.
pub(crate) struct PluginInput {
    pub(crate) digest: Digest,
    pub(crate) component: ComponentInput,
    /// The grant, if it was requested.
    pub(crate) grant: Option<Box<GrantFile>>,
}

/// State of a component before anything is compiled.
pub(crate) enum ComponentInput {
    /// The component is compiled already.
    Known(KnownComponent),
    /// The component must be compiled.
    New(CompileSource),
}

impl PluginReader {
    /// Reads a plugin's files, computes the digest and looks for an existing component, on a
    /// blocking thread. If the files are known from the previous start, the component is not read.
    /// Without an `age`, the grant is not read.
    pub(crate) async fn read(
        self: &Arc<Self>,
        id: &str,
        occasion: LoadContext,
        age: Option<&Arc<GrantAge>>,
    ) -> Result<PluginInput, LoadError> {
        let id = id.to_owned();
        let reader = Arc::clone(self);
        let age = age.map(Arc::clone);
        run_blocking("reading it", move || {
            reader.read_blocking(&id, occasion, age.as_deref())
        })
        .await
    }

    fn read_blocking(
        &self,
        id: &str,
        occasion: LoadContext,
        age: Option<&GrantAge>,
    ) -> Result<PluginInput, LoadError> {
        let LoadContext { known, cause } = occasion;
        let postpones_slow = cause
            == LoadCause::Start {
                postpones_slow: true,
            };
        let folder = &self.environment.folder;
        let grant = age
            .map(|age| GrantFile::read_blocking(folder, id, age).map(Box::new))
            .transpose();
        if let Some(digest) = known.and_then(|files| self.sources.find_digest(id, &files))
            && let Some(component) = self.lookup.find(id, digest, postpones_slow)?
        {
            return Ok(PluginInput {
                digest,
                component: ComponentInput::Known(component),
                grant: grant?,
            });
        }
        let file = self.sources.read(id)?;
        let grant = grant?;
        let ReadSource { digest, source } = self.sources.record(id, file);
        let component = match self.lookup.find(id, digest, postpones_slow)? {
            Some(component) => ComponentInput::Known(component),
            None => ComponentInput::New(source),
        };
        Ok(PluginInput {
            digest,
            component,
            grant,
        })
    }
}
