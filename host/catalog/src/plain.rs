//! Prompts and resources that are plain files.

pub(crate) mod file_resource;
pub(crate) mod front_matter;
pub(crate) mod media_type;
pub(crate) mod plain_file_error;
pub(crate) mod text_prompt;
