//! The intersection of two versions of the same permissions.

use std::path::Path;

use crate::http_rule::HttpRule;
use crate::permissions::{MountAccess, MountPermission, Permissions};
use crate::scratch::ScratchPermission;
use crate::state_grant::StateGrant;

impl Permissions {
    /// Returns the rights that both these permissions and those `in_force` grant, as far as the
    /// entries can be compared. An entry that cannot be compared is not allowed. A setting that is
    /// neither a right nor a restriction keeps its value in `in_force`.
    #[must_use]
    pub fn intersection(&self, in_force: &Self) -> Self {
        let mounts = self.mounts.iter().filter_map(|mount| {
            let is_same_mount = |other: &&MountPermission| {
                Path::new(&other.guest) == Path::new(&mount.guest) && other.host == mount.host
            };
            common_mount(mount, in_force.mounts.iter().find(is_same_mount)?)
        });
        Self {
            environment: common_entries(&self.environment, &in_force.environment),
            mounts: mounts.collect(),
            scratch: self
                .scratch
                .as_ref()
                .zip(in_force.scratch.as_ref())
                .and_then(|(one, two)| common_scratch(one, two)),
            http: common_http_rules(&self.http, &in_force.http),
            tcp: common_entries(&self.tcp, &in_force.tcp),
            private_networks: common_entries(&self.private_networks, &in_force.private_networks),
            deterministic: in_force.deterministic,
            state: self
                .state
                .zip(in_force.state)
                .and_then(|(one, two)| common_state(one, two)),
            ui: in_force.ui.restrict(&self.ui).0,
        }
    }
}

/// Returns the entries that are in both lists.
fn common_entries<T: Clone + PartialEq>(one: &[T], two: &[T]) -> Vec<T> {
    one.iter()
        .filter(|entry| two.contains(entry))
        .cloned()
        .collect()
}

/// Returns the rules of each list that the other list covers.
fn common_http_rules(one: &[HttpRule], two: &[HttpRule]) -> Vec<HttpRule> {
    let is_covered =
        |rule: &&HttpRule, by: &[HttpRule]| by.iter().any(|other| other.covers_all_of(rule));
    let mut common: Vec<HttpRule> = one
        .iter()
        .filter(|rule| is_covered(rule, two))
        .cloned()
        .collect();
    let additional: Vec<HttpRule> = two
        .iter()
        .filter(|rule| is_covered(rule, one) && !is_covered(rule, &common))
        .cloned()
        .collect();
    common.extend(additional);
    common
}

/// Returns the mount with the narrower access and limits of the two. Both have the same folder and
/// path.
fn common_mount(mount: &MountPermission, in_force: &MountPermission) -> Option<MountPermission> {
    if mount.scope != in_force.scope {
        return None;
    }
    let mut common = MountPermission {
        allows_control_files: mount.allows_control_files && in_force.allows_control_files,
        ..mount.clone()
    };
    if mount.access == MountAccess::Read || in_force.access == MountAccess::Read {
        common.access = MountAccess::Read;
        (common.quota, common.entries) = (None, None);
        return Some(common);
    }
    common.quota = [mount.quota, in_force.quota].into_iter().flatten().min();
    let entries = [mount.max_entries(), in_force.max_entries()]
        .into_iter()
        .flatten()
        .min();
    if common.max_entries() != entries {
        common.entries = entries;
    }
    Some(common)
}

fn common_scratch(one: &ScratchPermission, two: &ScratchPermission) -> Option<ScratchPermission> {
    (Path::new(&one.guest) == Path::new(&two.guest)).then(|| ScratchPermission {
        guest: one.guest.clone(),
        size: one.size.min(two.size),
        entries: one.entries.min(two.entries),
    })
}

/// Returns the smaller of two state grants. The scope determines who can read the state, so
/// grants of different scopes have nothing in common.
fn common_state(one: StateGrant, two: StateGrant) -> Option<StateGrant> {
    (one.scope == two.scope).then(|| StateGrant {
        size: one.size.min(two.size),
        keys: one.keys.min(two.keys),
        scope: one.scope,
    })
}

#[cfg(test)]
mod tests {
    use toolbay_settings::toml_file;

    use super::*;

    fn permissions(text: &str) -> Permissions {
        toml_file::parse("a.toml", text).unwrap_or_else(|why| panic!("{why}\n{text}"))
    }

    fn mount(settings: &str) -> String {
        format!("[[mounts]]\nhost = \"/srv/a\"\nguest = \"/a\"\naccess = {settings}\n")
    }

    #[test]
    fn intersection_allows_only_common_permissions() {
        let rule =
            |settings: &str| format!("http = [{{ origin = \"https://*.a.example\"{settings} }}]");
        let cases = [
            (
                "environment = [\"A\", \"B\"]",
                "environment = [\"B\", \"C\"]",
                "environment = [\"B\"]",
            ),
            (
                "tcp = [\"a:1\", \"b:1\"]",
                "tcp = [\"a:1\", \"a:2\"]",
                "tcp = [\"a:1\"]",
            ),
            ("private_networks = [\"10.0.0.0/8\"]", "", ""),
            ("", "state = {}", ""),
            (
                "state = { size = \"1KiB\", keys = 9 }",
                "state = { size = \"2KiB\", keys = 3 }",
                "state = { size = \"1KiB\", keys = 3 }",
            ),
            ("state = { scope = \"caller\" }", "state = {}", ""),
            (
                "scratch = { size = \"1KiB\" }",
                "scratch = { entries = 3 }",
                "scratch = { size = \"1KiB\", entries = 3 }",
            ),
            ("scratch = { guest = \"/s\" }", "scratch = {}", ""),
            ("deterministic = true", "", ""),
            ("", "deterministic = true", "deterministic = true"),
            (
                "ui.connect = [\"https://a.b.example\"]",
                "ui.connect = [\"https://*.b.example\"]",
                "ui.connect = [\"https://a.b.example\"]",
            ),
            ("ui.permissions = [\"camera\"]", "", ""),
            (
                &rule(""),
                "http = [\"https://x.a.example\"]",
                "http = [\"https://x.a.example\"]",
            ),
            (
                &rule(""),
                &rule(", methods = [\"GET\"]"),
                &rule(", methods = [\"GET\"]"),
            ),
            (
                &rule(", methods = [\"GET\"]"),
                &rule(", methods = [\"GET\", \"PUT\"]"),
                &rule(", methods = [\"GET\"]"),
            ),
            (
                &rule(", methods = [\"GET\"]"),
                &rule(", methods = [\"PUT\"]"),
                "",
            ),
            (
                &rule(", paths = [\"/v1/\"]"),
                &rule(""),
                &rule(", paths = [\"/v1/\"]"),
            ),
            (
                &rule(", paths = [\"/v1/\"]"),
                &rule(", paths = [\"/v2/\"]"),
                "",
            ),
            (
                &mount("\"read-write\""),
                &mount("\"read\""),
                &mount("\"read\""),
            ),
            (
                &mount("\"read-write\"\nquota = \"2KiB\""),
                &mount("\"read-write\"\nquota = \"1KiB\"\nentries = 3"),
                &mount("\"read-write\"\nquota = \"1KiB\"\nentries = 3"),
            ),
            (
                &mount("\"read-write\"\nquota = \"2KiB\""),
                &mount("\"read\""),
                &mount("\"read\""),
            ),
            (
                &mount("\"read-write\""),
                &mount("\"read-write\"\nscope = \"caller\""),
                "",
            ),
            (
                &mount("\"read\"\nunsafe = true"),
                &mount("\"read\""),
                &mount("\"read\""),
            ),
            (&mount("\"read\""), "", ""),
        ];
        for (one, two, both) in cases {
            let one = permissions(one);
            let two = permissions(two);
            let both = permissions(both);
            assert_eq!(one.intersection(&two), both, "{one:?} and {two:?}");
            // The permissions in force determine `deterministic`.
            let turned = Permissions {
                deterministic: both.deterministic,
                ..two.intersection(&one)
            };
            assert_eq!(turned.intersection(&both), turned, "{two:?} and {one:?}");
            assert_eq!((one.intersection(&one), two.intersection(&two)), (one, two));
        }
    }
}
