//! The folders of skills, derived from the URIs of their files: the children of a folder, and
//! whether a caller may access all files of a skill.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use toolbay_model::ListedResource;

use crate::plain::file_resource::listed_resource;
use crate::resource_uri::uri;
use crate::version::offer::ResourceOffer;

/// The MIME type of folders.
const FOLDER_MIME_TYPE: &str = "inode/directory";

/// The files of skills, by URI.
type SkillFiles = BTreeMap<String, Arc<ResourceOffer>>;

/// Returns whether all files of the skill whose `SKILL.md` has this URI are `visible`. Clients
/// receive a skill completely or not at all.
pub(crate) fn is_skill_visible(
    files: &SkillFiles,
    manifest: &str,
    visible: impl Fn(&str) -> bool,
) -> bool {
    let beneath = manifest
        .rsplit_once('/')
        .map_or(manifest, |(folder, _)| folder);
    files_below(files, &format!("{beneath}/")).all(|(uri, _)| visible(uri))
}

/// Returns up to `limit` visible files and folders directly in the folder `uri`, starting after
/// `after`, and whether there are more. `None` if `uri` is not a folder of a skill with anything
/// visible in it.
pub(crate) fn page_of_folder(
    files: &SkillFiles,
    uri: &str,
    after: Option<&str>,
    limit: usize,
    visible: impl Fn(&str) -> bool,
) -> Option<(Vec<Arc<ListedResource>>, bool)> {
    // The path contains at least the name of the skill: anything above it is not a folder.
    uri.strip_prefix(uri::SKILL_SCHEME)?
        .strip_prefix("://")
        .filter(|path| !path.is_empty() && !path.ends_with('/'))?;
    let beneath = format!("{uri}/");
    let mut children: BTreeMap<String, Arc<ListedResource>> = BTreeMap::new();
    for (file, offer) in files_below(files, &beneath).filter(|(file, _)| visible(file)) {
        match file
            .strip_prefix(&beneath)
            .and_then(|path| path.split_once('/'))
        {
            None => drop(children.insert(file.clone(), Arc::clone(offer.resource()))),
            Some((name, _)) => {
                let uri = format!("{beneath}{name}");
                children.entry(uri).or_insert_with_key(|uri| {
                    Arc::new(listed_resource(
                        uri.clone(),
                        &percent_decode_str(name).decode_utf8_lossy(),
                        Some(FOLDER_MIME_TYPE),
                    ))
                });
            }
        }
    }
    if children.is_empty() {
        return None;
    }
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut children = children
        .range::<str, _>((start, Bound::Unbounded))
        .map(|(_, child)| Arc::clone(child));
    let page = children.by_ref().take(limit).collect();
    Some((page, children.next().is_some()))
}

/// Returns the files whose URIs begin with `beneath`.
fn files_below<'a>(
    files: &'a SkillFiles,
    beneath: &'a str,
) -> impl Iterator<Item = (&'a String, &'a Arc<ResourceOffer>)> {
    let from = (Bound::Included(beneath), Bound::Unbounded);
    files
        .range::<str, _>(from)
        .take_while(move |(uri, _)| uri.starts_with(beneath))
}

#[cfg(test)]
mod tests {
    use toolbay_model::{ComponentDescription, Digest};

    use super::*;
    use crate::plain::file_resource::FileResource;
    use crate::version::offer::tests::plugin;

    fn files(uris: &[&str]) -> SkillFiles {
        let plugin = plugin("pdf", None, ComponentDescription::default());
        let file = |uri: &&str| {
            let file = FileResource::from_skill(
                (*uri).to_owned(),
                "a.md",
                "a",
                None,
                Digest::new([0; 32]),
                Vec::new(),
            );
            let entry = Arc::clone(&file.entry);
            let plugin = Arc::clone(&plugin);
            (
                (*uri).to_owned(),
                Arc::new(ResourceOffer {
                    entry,
                    plugin,
                    file: Some(Arc::new(file)),
                }),
            )
        };
        uris.iter().map(file).collect()
    }

    fn tree() -> SkillFiles {
        files(&[
            "skill://pdf/SKILL.md",
            "skill://pdf/a%20b/c.md",
            "skill://pdf/a/b.md",
            "skill://pdf/a/c/d.md",
            "skill://pdf/a.md",
            "skill://pdf-2/SKILL.md",
        ])
    }

    fn page(
        uri: &str,
        after: Option<&str>,
        limit: usize,
        visible: fn(&str) -> bool,
    ) -> Option<(Vec<String>, bool)> {
        let (page, more) = page_of_folder(&tree(), uri, after, limit, visible)?;
        let shown = |child: &Arc<ListedResource>| match child.mime_type.as_deref() {
            Some(FOLDER_MIME_TYPE) => format!("{} ({}/)", child.uri, child.name),
            _ => child.uri.clone(),
        };
        Some((page.iter().map(shown).collect(), more))
    }

    #[test]
    fn a_folder_has_what_is_directly_in_it() {
        let (all, more) = page("skill://pdf", None, 10, |_| true).unwrap();
        assert_eq!(
            all,
            [
                "skill://pdf/SKILL.md",
                "skill://pdf/a (a/)",
                "skill://pdf/a%20b (a b/)",
                "skill://pdf/a.md",
            ]
        );
        assert!(!more);
        let deeper = |uri| page(uri, None, 10, |_| true).map(|(page, _)| page);
        assert_eq!(
            deeper("skill://pdf/a").unwrap(),
            ["skill://pdf/a/b.md", "skill://pdf/a/c (c/)"]
        );
        assert_eq!(deeper("skill://pdf/a/c").unwrap(), ["skill://pdf/a/c/d.md"]);
        for no_folder in [
            "",
            "skill",
            "skill:",
            "skill:/",
            "skill://",
            "skill:///",
            "skill://pd",
            "skill://pdf/",
            "skill://pdf/a/",
            "skill://pdf/SKILL.md",
            "skill://pdf/a.md",
            "skill://pdf//a",
            "skill://pdf/a/..",
            "skill://pdf/%61",
            "skill://pdf/nothing",
            "SKILL://pdf",
            "toolbay://pdf",
            "skill://PDF",
            "skill://pdf?",
            "skill://pdf#a",
        ] {
            assert_eq!(deeper(no_folder), None, "{no_folder:?}");
        }
    }

    #[test]
    fn pages_continue_after_a_uri() {
        let (first, more) = page("skill://pdf", None, 2, |_| true).unwrap();
        assert_eq!((first.len(), more), (2, true));
        let (second, more) = page("skill://pdf", Some("skill://pdf/a"), 2, |_| true).unwrap();
        assert_eq!(
            (second[0].as_str(), second.len(), more),
            ("skill://pdf/a%20b (a b/)", 2, false)
        );
        assert_eq!(
            page("skill://pdf", Some("skill://pdf/z"), 2, |_| true).unwrap(),
            (Vec::new(), false)
        );
    }

    #[test]
    fn what_is_not_visible_is_not_there() {
        let only = |uri: &str| uri.starts_with("skill://pdf/a/c/");
        assert_eq!(
            page("skill://pdf", None, 10, only).unwrap().0,
            ["skill://pdf/a (a/)"]
        );
        assert_eq!(page("skill://pdf-2", None, 10, only), None);
        assert!(!is_skill_visible(&tree(), "skill://pdf/SKILL.md", only));
        assert!(!is_skill_visible(
            &tree(),
            "skill://pdf/SKILL.md",
            |uri| uri != "skill://pdf/a/c/d.md"
        ));
        assert!(is_skill_visible(&tree(), "skill://pdf/SKILL.md", |uri| uri
            .starts_with("skill://pdf/")));
    }
}
