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
            guarded.push(readable_path(
                "the server's configuration",
                self.file.clone(),
            ));
        }
        let keys = self.http.key_files().cloned();
        guarded.extend(keys.map(|path| readable_path("the keys of http.oauth", path)));
        if let Some(TlsConfig { certificate, key }) = &self.http.tls {
            guarded.push(readable_path(
                "the certificate of http.tls",
                certificate.clone(),
            ));
            guarded.push(secret_path("the key of http.tls", key.clone()));
        }
        // A plugin that changes it runs code outside of its sandbox.
        let program = self.approve.program_files().into_iter();
        guarded.extend(program.map(|path| readable_path("the program of approve.notify", path)));
        let client_certificates = self.http_client.extra_ca.iter().cloned();
        guarded.extend(
            client_certificates
                .map(|path| readable_path("a certificate of http_client.extra_ca", path)),
        );
        let otel_certificates = self.otel.extra_ca.iter().cloned();
        guarded.extend(
            otel_certificates.map(|path| readable_path("a certificate of otel.extra_ca", path)),
        );
        let secrets = self.otel.secret_files().cloned();
        guarded.extend(secrets.map(|path| secret_path("the value of a header of otel", path)));
        // A plugin that reads its key can forge entries.
        let cache = self.compile.cache();
        guarded.extend(cache.map(|(path, _)| secret_path("the compile cache", path)));
        // It contains the state of other plugins.
        let state = self.state.folder(&self.plugins);
        guarded.extend(state.map(|path| secret_path("the state of plugins", path)));
        // A plugin that reads the key of the audit log can forge lines.
        let audit = self.audit.settings();
        guarded.extend(audit.map(|audit| secret_path("the audit log", audit.folder)));
        // It contains the requests and responses of other callers.
        let record = self.record.settings();
        guarded.extend(record.map(|record| secret_path("the recording of calls", record.file)));
        // Their content belongs to the calls of one caller.
        guarded.push(secret_path(
            "the temporary folders of calls",
            self.server.scratch(),
        ));
        guarded
    }

    /// Returns the directories that the server uses for itself, with their purposes.
    pub(crate) fn server_folders(&self) -> Vec<(&'static str, PathBuf)> {
        let folders = [
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
        folders
            .into_iter()
            .filter_map(|(what, folder)| Some((what, folder?)))
            .collect()
    }

    /// Returns the files that the server reads again while it runs, except those of the plugin
    /// directory.
    pub(crate) fn watched_files(&self) -> Vec<PathBuf> {
        let config_file = Some(self.file.clone()).filter(|file| !file.as_os_str().is_empty());
        let tls = self
            .http
            .tls
            .iter()
            .flat_map(|tls| [tls.certificate.clone(), tls.key.clone()]);
        config_file
            .into_iter()
            .chain(tls)
            .chain(self.http.key_files().cloned())
            .chain(self.http_client.extra_ca.iter().cloned())
            .chain(self.otel.extra_ca.iter().cloned())
            .chain(self.otel.secret_files().cloned())
            .collect()
    }
}

/// Returns a path that plugins must not change.
fn readable_path(label: &'static str, path: PathBuf) -> GuardedPath {
    GuardedPath {
        label,
        path,
        is_secret: false,
    }
}

/// Returns a path that plugins must not change or read.
fn secret_path(label: &'static str, path: PathBuf) -> GuardedPath {
    GuardedPath {
        label,
        path,
        is_secret: true,
    }
}
