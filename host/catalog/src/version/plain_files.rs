//! Prompts, resources and skills in plain files next to the plugins: `<id>.prompts`,
//! `<id>.resources` and `<id>.skill`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use bytesize::ByteSize;
use rustix::io::Errno;
use toolbay_model::ByteBudget;
use toolbay_model::text::clean_line;

use crate::folder::description_limits::DescribeLimits;
use crate::folder::load_error::LoadError;
use crate::folder::openat_beneath::{open_file, open_root};
use crate::folder::plain_tree::{PlainTree, TreeError};
use crate::folder::plugin_folder::{PluginFiles, prompts_path, resources_path, skill_path};
use crate::plain::file_resource::FileResource;
use crate::plain::plain_file_error::PlainFileError;
use crate::plain::text_prompt::TextPrompt;
use crate::skill::skill_folder::{SkillFolder, SkillSource};

/// Maximum size of a prompt file.
const MAX_PROMPT_SIZE: ByteSize = ByteSize::kib(256);

/// Maximum length of a name in a message, in bytes.
const MAX_SHOWN_NAME_BYTES: usize = 200;

/// Maximum number of warnings about the files of one plugin.
const MAX_REMARKS: usize = 50;

/// End of a message about an item that is now invalid and was valid before.
const PREVIOUS_VERSION_STAYS: &str = "its previous version stays in service";

/// The plain files of one plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainFiles {
    /// The prompts, sorted by name.
    pub prompts: Vec<Arc<TextPrompt>>,
    /// The resources, sorted by path.
    pub resources: Vec<Arc<FileResource>>,
    /// The skill, with its nested skills.
    pub skill: Option<Arc<SkillFolder>>,
    /// Warnings for the operator, for example about files that are not offered.
    pub remarks: Vec<String>,
}

impl PlainFiles {
    /// Reads the prompts and the skill of `id`, and lists its resources.
    ///
    /// A prompt file that is now invalid keeps its version from `previous`. So does a whole skill
    /// if anything in it is invalid, and a folder whose stored content exceeds the size limit.
    /// `max_file_size` is the maximum size of a resource. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read for a transient reason.
    pub(crate) fn load(
        id: &str,
        folder: &Path,
        files: &PluginFiles,
        limits: &DescribeLimits,
        max_file_size: ByteSize,
        skill_memory: &ByteBudget,
        previous: &Self,
    ) -> Result<Self, LoadError> {
        let mut loaded = Self::default();
        if let Some(tree) = &files.prompts {
            let prompts = loaded.load_prompts(id, folder, tree, limits, previous);
            loaded.prompts =
                loaded.or_keep_previous(&format!("{id}.prompts"), prompts, &previous.prompts)?;
        }
        if let Some(tree) = &files.resources {
            let resources = loaded.load_resources(id, folder, tree, limits, max_file_size);
            loaded.resources = loaded.or_keep_previous(
                &format!("{id}.resources"),
                resources,
                &previous.resources,
            )?;
        }
        if let Some(tree) = &files.skill {
            let previous_skill = previous.skill.as_deref();
            let skill = loaded
                .open_folder(&skill_path(folder, id), &format!("{id}.skill"), tree)
                .and_then(|root| match root {
                    Some(root) => {
                        let source = SkillSource {
                            id,
                            root: &root,
                            tree,
                            max_file_size,
                            max_entries_size: limits.size,
                            memory: skill_memory,
                            previous: previous_skill,
                        };
                        loaded.load_skill(&source).map(|skill| vec![skill])
                    }
                    None => Ok(Vec::new()),
                });
            loaded.skill = loaded
                .or_keep_previous(&format!("{id}.skill"), skill, previous.skill.as_slice())?
                .pop();
        }
        if loaded.remarks.len() > MAX_REMARKS {
            let more = loaded.remarks.len() - MAX_REMARKS;
            loaded.remarks.truncate(MAX_REMARKS);
            loaded
                .remarks
                .push(format!("{more} more warnings about its files"));
        }
        Ok(loaded)
    }

    /// Returns the items loaded from the folder `label`. If the folder was refused, returns the
    /// previous items and adds a warning.
    fn or_keep_previous<T: Clone>(
        &mut self,
        label: &str,
        loaded: Result<Vec<T>, PlainFileError>,
        previous: &[T],
    ) -> Result<Vec<T>, LoadError> {
        match loaded {
            Ok(loaded) => Ok(loaded),
            Err(PlainFileError::Transient(error)) => Err(error),
            Err(PlainFileError::Refused(why)) => {
                let consequence = if previous.is_empty() {
                    "nothing in it is offered"
                } else {
                    PREVIOUS_VERSION_STAYS
                };
                self.remarks.push(format!("{label}: {why}; {consequence}"));
                Ok(previous.to_vec())
            }
        }
    }

    fn load_prompts(
        &mut self,
        id: &str,
        folder: &Path,
        tree: &PlainTree,
        limits: &DescribeLimits,
        previous: &Self,
    ) -> Result<Vec<Arc<TextPrompt>>, PlainFileError> {
        let label = format!("{id}.prompts");
        let Some(root) = self.open_folder(&prompts_path(folder, id), &label, tree)? else {
            return Ok(Vec::new());
        };
        let previous: BTreeMap<&str, &Arc<TextPrompt>> = previous
            .prompts
            .iter()
            .map(|prompt| (prompt.entry.prompt.name.as_str(), prompt))
            .collect();
        let mut prompts = Vec::new();
        let mut size = 0;
        for path in tree.files.keys() {
            let name = path.strip_suffix(".md").unwrap_or(path);
            let shown_path = format!("{label}/{}", clean_line(path, MAX_SHOWN_NAME_BYTES));
            let parsed = match read_prompt_file(&root, path)
                .map_err(|error| PlainFileError::transient(&shown_path, &error))?
            {
                PromptFileContent::Missing => continue,
                PromptFileContent::Text(text) => {
                    TextPrompt::parse(name, &text).map_err(|why| format!("{shown_path}:{why}"))
                }
                PromptFileContent::Invalid(why) => Err(format!("{shown_path}: {why}")),
            };
            let prompt = match parsed {
                Ok((prompt, remarks)) => {
                    self.remarks.extend(
                        remarks
                            .into_iter()
                            .map(|remark| format!("{shown_path}: {remark}")),
                    );
                    Some(Arc::new(prompt))
                }
                Err(why) => {
                    let previous_prompt = previous.get(name).copied().cloned();
                    let consequence = if previous_prompt.is_some() {
                        PREVIOUS_VERSION_STAYS
                    } else {
                        "it is not offered"
                    };
                    self.remarks.push(format!("{why}; {consequence}"));
                    previous_prompt
                }
            };
            if let Some(prompt) = prompt {
                add_stored_size(limits.size, &mut size, prompt.size())?;
                prompts.push(prompt);
            }
        }
        prompts.sort_unstable_by(|one, two| one.entry.prompt.name.cmp(&two.entry.prompt.name));
        Ok(prompts)
    }

    fn load_resources(
        &mut self,
        id: &str,
        folder: &Path,
        tree: &PlainTree,
        limits: &DescribeLimits,
        max_file_size: ByteSize,
    ) -> Result<Vec<Arc<FileResource>>, PlainFileError> {
        let label = format!("{id}.resources");
        let Some(root) = self.open_folder(&resources_path(folder, id), &label, tree)? else {
            return Ok(Vec::new());
        };
        let root = Arc::new(root);
        let mut resources = Vec::new();
        let mut size = 0;
        for (path, stamp) in &tree.files {
            let shown_path = format!("{label}/{}", clean_line(path, MAX_SHOWN_NAME_BYTES));
            if stamp.length > max_file_size.as_u64() {
                let most = max_file_size.display().iec();
                self.remarks.push(format!(
                    "{shown_path} is not offered: it is larger than {most} (to allow more, raise limits.output in {id}.toml)"
                ));
                continue;
            }
            match FileResource::new(id, &root, path, stamp.clone()) {
                Ok(resource) => {
                    add_stored_size(limits.size, &mut size, resource.entry.resource.size())?;
                    resources.push(Arc::new(resource));
                }
                Err(why) => self
                    .remarks
                    .push(format!("{shown_path} is not offered: its URI {why}")),
            }
        }
        Ok(resources)
    }

    /// Reads a skill and its nested skills.
    fn load_skill(&mut self, source: &SkillSource<'_>) -> Result<Arc<SkillFolder>, PlainFileError> {
        let (skill, remarks) = SkillFolder::load(source)?;
        self.remarks.extend(remarks);
        Ok(Arc::new(skill))
    }

    /// Opens a folder and adds the notes of its scan to the warnings.
    fn open_folder(
        &mut self,
        path: &Path,
        label: &str,
        tree: &PlainTree,
    ) -> Result<Option<OwnedFd>, PlainFileError> {
        match &tree.error {
            Some(TreeError::Permanent(why)) => return Err(PlainFileError::Refused(why.clone())),
            Some(TreeError::Transient(why)) => {
                return Err(PlainFileError::Transient(LoadError::Transient(format!(
                    "{label}: {why}"
                ))));
            }
            None => {}
        }
        self.remarks
            .extend(tree.notes.iter().map(|note| format!("{label}/{note}")));
        match open_root(path) {
            Ok(root) => Ok(Some(root)),
            // The next scan finds it deleted.
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(PlainFileError::transient(label, &error.into())),
        }
    }
}

/// Adds `more` to `size`, the size of the stored data of the files in a folder, and checks the
/// limit `max_size`.
fn add_stored_size(
    max_size: ByteSize,
    size: &mut usize,
    more: usize,
) -> Result<(), PlainFileError> {
    *size = size.saturating_add(more);
    if *size as u64 <= max_size.as_u64() {
        return Ok(());
    }
    let most = max_size.display().iec();
    Err(PlainFileError::Refused(format!(
        "the stored data of its files is larger than {most} in total (to allow more, raise describe.size)"
    )))
}

enum PromptFileContent {
    Text(String),
    Missing,
    Invalid(String),
}

/// Reads a prompt file.
///
/// # Errors
///
/// Returns an error if reading fails for a transient reason.
fn read_prompt_file(root: &OwnedFd, path: &str) -> io::Result<PromptFileContent> {
    let file = match open_file(root.as_fd(), path) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
            return Ok(PromptFileContent::Missing);
        }
        Err(error @ (Errno::ACCESS | Errno::PERM)) => {
            return Ok(PromptFileContent::Invalid(format!(
                "it cannot be read: {}",
                io::Error::from(error).kind()
            )));
        }
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Ok(PromptFileContent::Missing);
    }
    let mut bytes = Vec::new();
    file.take(MAX_PROMPT_SIZE.as_u64() + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_PROMPT_SIZE.as_u64() {
        return Ok(PromptFileContent::Invalid(format!(
            "it is larger than {}",
            MAX_PROMPT_SIZE.display().iec()
        )));
    }
    Ok(String::from_utf8(bytes).map_or_else(
        |_| PromptFileContent::Invalid("it is not valid UTF-8".to_owned()),
        PromptFileContent::Text,
    ))
}

#[cfg(test)]
mod tests;
