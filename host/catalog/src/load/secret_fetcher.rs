//! Fetches the secrets of grants.

use tokio::sync::Semaphore;
use toolbay_secrets::{FixedSecrets, ProgramRunner};

use crate::component::load_environment::LoadEnvironment;
use crate::folder::load_error::LoadError;
use crate::load::mount_check::check_mounts;
use crate::rules::grant::{Grant, GrantSecrets};

/// Maximum number of plugins whose secret programs run at the same time.
const MAX_CONCURRENT_SECRET_FETCHES: usize = 4;

/// Fetches the secrets of grants.
pub(crate) struct SecretFetcher {
    environment: LoadEnvironment,
    /// Permits for plugins whose secrets are printed by programs: a thousand plugins may load at
    /// the same time.
    program_permits: Semaphore,
    /// Runner of programs that print secrets.
    programs: ProgramRunner,
}

impl SecretFetcher {
    pub(crate) fn new(environment: LoadEnvironment, programs: ProgramRunner) -> Self {
        Self {
            environment,
            program_permits: Semaphore::new(MAX_CONCURRENT_SECRET_FETCHES),
            programs,
        }
    }

    /// Fetches the secrets of the plugin `id` under this grant.
    pub(crate) async fn fetch(&self, id: &str, grant: &Grant) -> Result<GrantSecrets, LoadError> {
        let file = format!("{id}.toml");
        let refused = |why| LoadError::Refused(format!("{file}: {why}"));
        let folder = &self.environment.folder;
        let secrets = grant.secret_specs().map_err(refused)?;
        let fixed = {
            let _asking = if FixedSecrets::needs_programs(&secrets) {
                // Do not run a program that the plugin itself could have replaced.
                check_mounts(&self.environment, id, grant, &secrets).await?;
                // The semaphore is never closed.
                Some(self.program_permits.acquire().await)
            } else {
                None
            };
            FixedSecrets::fetch(&secrets, (&file, folder), &self.programs, |name| {
                std::env::var(name).ok()
            })
            .await
        };
        grant
            .build_secrets(&file, folder, secrets, fixed)
            .map_err(refused)
    }
}
