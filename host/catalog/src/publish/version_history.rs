//! The time at which a version of a plugin was loaded, and the grant before the last change.

use std::sync::Arc;
use std::time::SystemTime;

use toolbay_model::Digest;

use crate::version::plugin::Plugin;

/// The history of a plugin since the server started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionHistory {
    /// Time at which the version in service was loaded.
    pub loaded_at: Option<SystemTime>,
    /// The grant before the last change, if it has changed.
    pub replaced_grant: Option<ReplacedGrant>,
    /// The grant that was applied last.
    applied_grant: Option<AppliedText>,
}

/// A grant that another one has replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedGrant {
    /// The text of its file; `None` if there was no file.
    pub text: Option<Arc<str>>,
    /// Time at which it was replaced.
    pub replaced_at: SystemTime,
}

/// The text of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AppliedText {
    digest: Option<Digest>,
    text: Option<Arc<str>>,
}

impl VersionHistory {
    /// Records that this version is in service since `now`.
    pub(crate) fn record(&mut self, plugin: &Plugin, now: SystemTime) {
        self.loaded_at = Some(now);
        let grant = &plugin.terms.source_grant;
        // Until a changed grant settles, an intersection of both versions applies.
        if grant.is_partial {
            return;
        }
        let is_same = |applied: &AppliedText| applied.digest == grant.digest;
        if self.applied_grant.as_ref().is_some_and(is_same) {
            return;
        }
        let replaced = self.applied_grant.replace(AppliedText {
            digest: grant.digest,
            text: grant.text.clone(),
        });
        if let Some(AppliedText { text, .. }) = replaced {
            self.replaced_grant = Some(ReplacedGrant {
                text,
                replaced_at: now,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::component::loaded_component::LoadedComponent;
    use crate::definition::component_contents::ComponentContents;
    use crate::rules::grant::Grant;
    use crate::rules::terms::PluginTerms;

    fn plugin(grant: Grant) -> Plugin {
        let component = LoadedComponent::without_code(ComponentContents::default());
        let terms = PluginTerms {
            source_grant: Arc::new(grant),
            ..PluginTerms::default()
        };
        Plugin::new("p".to_owned(), Arc::new(component), Arc::default(), terms)
    }

    fn parse(text: &str) -> Grant {
        Grant::parse("p.toml", text, Path::new("")).unwrap()
    }

    #[test]
    fn the_grant_before_the_last_change_is_kept() {
        let mut history = VersionHistory::default();
        let start = SystemTime::UNIX_EPOCH;
        let mut seconds = 0;
        let mut replaced = |grant: Grant| {
            seconds += 1;
            history.record(&plugin(grant), start + Duration::from_secs(seconds));
            assert_eq!(
                history.loaded_at,
                Some(start + Duration::from_secs(seconds))
            );
            history
                .replaced_grant
                .as_ref()
                .map(|grant| (grant.text.clone(), grant.replaced_at))
        };
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(replaced(Grant::default()), None);
        assert_eq!(replaced(parse("prefix = \"a\"")), Some((None, at(2))));
        assert_eq!(replaced(parse("prefix = \"a\"")), Some((None, at(2))));
        let partial = Grant {
            is_partial: true,
            ..parse("prefix = \"b\"")
        };
        assert_eq!(replaced(partial), Some((None, at(2))));
        let before = Some("prefix = \"a\"".into());
        assert_eq!(replaced(parse("prefix = \"b\"")), Some((before, at(5))));
    }
}
