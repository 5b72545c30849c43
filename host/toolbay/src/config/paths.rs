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
        let writable = |what, path| GuardedPath {
            label: what,
            path,
            is_secret: false,
        };
        let mut guarded = Vec::new();
        if !self.file.as_os_str().is_empty() {
            guarded.push(writable("the server's configuration", self.file.clone()));
        }
        guarded.extend(
            self.http
                .key_files()
                .map(|path| writable("the keys of http.oauth", path.clone())),
        );
        if let Some(TlsConfig { certificate, key }) = &self.http.tls {
            guarded.push(writable("the certificate of http.tls", certificate.clone()));
            guarded.push(GuardedPath {
                label: "the key of http.tls",
                path: key.clone(),
                is_secret: true,
            });
        }
        let trusted = self.http_client.extra_ca.iter();
        guarded.extend(
            trusted.map(|path| writable("a certificate of http_client.extra_ca", path.clone())),
        );
        guarded.extend(
            self.otel
                .extra_ca
                .iter()
                .map(|path| writable("a certificate of otel.extra_ca", path.clone())),
        );
        let secrets = self.otel.secret_files().cloned();
        guarded.extend(secrets.map(|path| GuardedPath {
            label: "the value of a header of otel",
            path,
            is_secret: true,
        }));
        // A plugin that reads its key can forge entries.
        let cache = |(path, _)| GuardedPath {
            label: "the compile cache",
            path,
            is_secret: true,
        };
        guarded.extend(self.compile.cache().map(cache));
        // It contains the state of other plugins.
        let state = |path| GuardedPath {
            label: "the state of plugins",
            path,
            is_secret: true,
        };
        guarded.extend(self.state.folder(&self.plugins).map(state));
        // A plugin that reads the key of the audit log can forge lines.
        let log = |audit: toolbay_audit::AuditSettings| GuardedPath {
            label: "the audit log",
            path: audit.folder,
            is_secret: true,
        };
        guarded.extend(self.audit.settings().map(log));
        // It contains the requests and responses of other callers.
        let recording = |record: toolbay_recording::RecordingSettings| GuardedPath {
            label: "the recording of calls",
            path: record.file,
            is_secret: true,
        };
        guarded.extend(self.record.settings().map(recording));
        // Their content belongs to the calls of one caller.
        let (what, path) = ("the temporary folders of calls", self.server.scratch());
        guarded.push(GuardedPath {
            label: what,
            path,
            is_secret: true,
        });
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
