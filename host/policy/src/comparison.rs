//! The differences between two versions of the same permissions, for people.

use std::path::Path;

use crate::permissions::{MountAccess, MountPermission, Permissions};

impl Permissions {
    /// Returns what these permissions allow and `other` does not, one line for each entry. Folders
    /// of the host are not compared, because each machine has its own.
    #[must_use]
    pub fn excess_over(&self, other: &Self) -> Vec<String> {
        let Self {
            environment,
            mounts,
            scratch,
            http,
            tcp,
            private_networks,
            // Restricts, and allows nothing.
            deterministic: _,
            state,
            ui,
        } = self;
        let mut lines = Vec::new();
        for name in environment {
            if !other.environment.contains(name) {
                lines.push(format!("environment = [{name:?}]"));
            }
        }
        for mount in mounts {
            if !other.mounts.iter().any(|known| covers(known, mount)) {
                let access = match mount.access {
                    MountAccess::Read => "read",
                    MountAccess::ReadWrite => "read-write",
                };
                let control_files = if mount.allows_control_files {
                    ", unsafe = true"
                } else {
                    ""
                };
                lines.push(format!(
                    "mounts = [{{ guest = {:?}, access = {access:?}{control_files} }}]",
                    mount.guest
                ));
            }
        }
        let has_more_scratch = scratch.as_ref().is_some_and(|scratch| {
            other
                .scratch
                .as_ref()
                .is_none_or(|known| scratch.size > known.size || scratch.entries > known.entries)
        });
        if has_more_scratch {
            lines.push("scratch".to_owned());
        }
        for rule in http {
            if !other.http.iter().any(|known| known.covers_all_of(rule)) {
                lines.push(format!("http = [{rule}]"));
            }
        }
        for rule in tcp {
            if !other.tcp.contains(rule) {
                lines.push(format!("tcp = [\"{rule}\"]"));
            }
        }
        for network in private_networks {
            if !other.private_networks.contains(network) {
                lines.push(format!("private_networks = [\"{network}\"]"));
            }
        }
        let has_more_state = state.is_some_and(|state| {
            other.state.is_none_or(|known| {
                state.size > known.size || state.keys > known.keys || state.scope != known.scope
            })
        });
        if has_more_state {
            lines.push("state".to_owned());
        }
        if !other.ui.restrict(ui).1.is_empty() {
            lines.push("ui".to_owned());
        }
        lines
    }
}

/// Returns whether `known` allows everything that `mount` allows at the same path.
fn covers(known: &MountPermission, mount: &MountPermission) -> bool {
    Path::new(&known.guest) == Path::new(&mount.guest)
        && (mount.access == MountAccess::Read || known.access == MountAccess::ReadWrite)
        && (!mount.allows_control_files || known.allows_control_files)
}

#[cfg(test)]
mod tests {
    use toolbay_settings::toml_file;

    use super::*;

    fn permissions(text: &str) -> Permissions {
        toml_file::parse("a.toml", text).unwrap_or_else(|why| panic!("{why}\n{text}"))
    }

    #[test]
    fn each_entry_that_only_one_side_allows_is_a_line() {
        let wide = permissions(
            "environment = [\"A\", \"B\"]\nhttp = [\"https://*.a.example\"]\ntcp = [\"a:1\"]\n\
             private_networks = [\"10.0.0.0/8\"]\nstate = { keys = 9 }\nscratch = {}\n\
             ui.permissions = [\"camera\"]\n\
             [[mounts]]\nhost = \"/srv\"\nguest = \"/data/\"\naccess = \"read-write\"\n",
        );
        let narrow = permissions(
            "environment = [\"A\"]\nhttp = [\"https://x.a.example\"]\nstate = { keys = 3 }\n\
             [[mounts]]\nhost = \"data\"\nguest = \"/data\"\naccess = \"read\"\n",
        );
        assert_eq!(
            wide.excess_over(&narrow),
            [
                "environment = [\"B\"]",
                "mounts = [{ guest = \"/data/\", access = \"read-write\" }]",
                "scratch",
                "http = [\"https://*.a.example\"]",
                "tcp = [\"a:1\"]",
                "private_networks = [\"10.0.0.0/8\"]",
                "state",
                "ui",
            ]
        );
        assert_eq!(narrow.excess_over(&wide), [""; 0]);
        assert_eq!(wide.excess_over(&wide), [""; 0]);
        assert_eq!(Permissions::default().excess_over(&narrow), [""; 0]);
    }
}
