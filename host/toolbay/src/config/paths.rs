//! The paths that the configuration names: those that mounts must not contain, those that the
//! server writes, and those that it reads again.

use std::path::PathBuf;

use toolbay_catalog::GuardedPath;

use super::Config;
use super::http::TlsConfig;

impl Config {
    /// Returns the paths that mounts must not contain, except the plugin directory, which the
    /// loader adds.
    pub(super) fn guarded_paths(&self) -> Vec<GuardedPath> {
        let mut guarded = Vec::new();
        if !self.file.as_os_str().is_empty() {
            guarded.push(public("the server's configuration", self.file.clone()));
        }
        let keys = self.http.key_files().cloned();
        guarded.extend(keys.map(|path| public("the keys of http.oauth", path)));
        if let Some(TlsConfig { certificate, key }) = &self.http.tls {
            guarded.push(public("the certificate of http.tls", certificate.clone()));
            guarded.push(secret("the key of http.tls", key.clone()));
        }
        let trusted = self.http_client.extra_ca.iter().cloned();
        guarded.extend(trusted.map(|path| public("a certificate of http_client.extra_ca", path)));
        let trusted = self.otel.extra_ca.iter().cloned();
        guarded.extend(trusted.map(|path| public("a certificate of otel.extra_ca", path)));
        let secrets = self.otel.secret_files().cloned();
        guarded.extend(secrets.map(|path| secret("the value of a header of otel", path)));
        // A plugin that reads its key can forge entries.
        let cache = self.compile.cache();
        guarded.extend(cache.map(|(path, _)| secret("the compile cache", path)));
        // It contains the state of other plugins.
        let state = self.state.folder(&self.plugins);
        guarded.extend(state.map(|path| secret("the state of plugins", path)));
        // A plugin that reads the key of the audit log can forge lines.
        let audit = self.audit.settings();
        guarded.extend(audit.map(|audit| secret("the audit log", audit.folder)));
        // It contains the requests and responses of other callers.
        let record = self.record.settings();
        guarded.extend(record.map(|record| secret("the recording of calls", record.file)));
        // Their content belongs to the calls of one caller.
        guarded.push(secret(
            "the temporary folders of calls",
            self.server.scratch(),
        ));
        guarded
    }

    /// Returns the directories that the server uses for itself, with their purposes.
    pub(crate) fn own_folders(&self) -> Vec<(&'static str, PathBuf)> {
        let kept = [
            (
                "compiled components",
                self.compile.cache().map(|(path, _)| path),
            ),
            ("the state of plugins", self.state.folder(&self.plugins)),
            (
                "the audit log",
                self.audit.settings().map(|audit| audit.folder),
            ),
            ("temporary files of calls", Some(self.server.scratch())),
        ];
        kept.into_iter()
            .filter_map(|(what, folder)| Some((what, folder?)))
            .collect()
    }

    /// Returns the files that the server reads again while it runs, except those of the plugin
    /// directory.
    pub(crate) fn watched_files(&self) -> Vec<PathBuf> {
        let own = Some(self.file.clone()).filter(|file| !file.as_os_str().is_empty());
        let tls = self
            .http
            .tls
            .iter()
            .flat_map(|tls| [tls.certificate.clone(), tls.key.clone()]);
        own.into_iter()
            .chain(tls)
            .chain(self.http.key_files().cloned())
            .chain(self.http_client.extra_ca.iter().cloned())
            .chain(self.otel.extra_ca.iter().cloned())
            .chain(self.otel.secret_files().cloned())
            .collect()
    }
}

/// Returns a path that plugins must not change.
fn public(label: &'static str, path: PathBuf) -> GuardedPath {
    GuardedPath {
        label,
        path,
        is_secret: false,
    }
}

/// Returns a path that plugins must not change or read.
fn secret(label: &'static str, path: PathBuf) -> GuardedPath {
    GuardedPath {
        label,
        path,
        is_secret: true,
    }
}
