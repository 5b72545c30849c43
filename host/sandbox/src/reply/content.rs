//! Checks a content block of a guest and converts it to the host's types.

use toolbay_model::uri::check_authority;
use toolbay_model::{
    ContentBlock, ContentBody, EmbeddedResource, MediaContent, ResourceContent, ResourceLink,
};

use crate::reply::block::{BlockKind, RawBlock};
use crate::reply::cleaner::{TextCleaner, quote};
use crate::reply::syntax::{is_mime_type, is_timestamp, is_uri};

/// Converts a block according to its kind. A missing or superfluous member is an error of the
/// plugin's author.
pub(crate) fn convert_block(
    block: RawBlock,
    cleaner: &mut TextCleaner<'_>,
) -> Result<ContentBlock, String> {
    let Some(kind) = BlockKind::parse(&block.kind) else {
        return convert_unknown(block, cleaner);
    };
    let mut members = BlockMembers { kind, block };
    let body = match kind {
        BlockKind::Text => {
            ContentBody::Text(cleaner.clean_text(members.take_required("text", |b| &mut b.text)?))
        }
        BlockKind::Image => ContentBody::Image(members.take_media("image", cleaner)?),
        BlockKind::Audio => ContentBody::Audio(members.take_media("audio", cleaner)?),
        BlockKind::ResourceLink => ContentBody::ResourceLink(ResourceLink {
            uri: members.take_uri(cleaner)?,
            name: cleaner.clean_text(members.take_required("name", |b| &mut b.name)?),
            title: members
                .block
                .title
                .take()
                .map(|text| cleaner.clean_text(text)),
            description: members
                .block
                .description
                .take()
                .map(|text| cleaner.clean_text(text)),
            mime_type: members.take_mime_type(cleaner)?,
            size: members.block.size.take(),
        }),
        BlockKind::EmbeddedResource => ContentBody::Resource(EmbeddedResource {
            uri: members.take_uri(cleaner)?,
            mime_type: members.take_mime_type(cleaner)?,
            content: match (members.block.text.take(), members.block.data.take()) {
                (Some(text), None) => ResourceContent::Text(cleaner.clean_text(text)),
                (None, Some(data)) => ResourceContent::Blob(cleaner.check_data(data)?),
                (None, None) => return Err("is a resource without `text` or `data`".into()),
                (Some(_), Some(_)) => {
                    return Err("is a resource with both `text` and `data`".into());
                }
            },
        }),
    };
    members.check_no_members_left()?;
    let block = members.block;
    with_annotations(body, block, cleaner)
}

/// Converts a block of an unknown kind to its text, which is a fallback for hosts that do not
/// support the kind.
fn convert_unknown(block: RawBlock, cleaner: &mut TextCleaner<'_>) -> Result<ContentBlock, String> {
    if let Some(text) = &block.text {
        return with_annotations(
            ContentBody::Text(cleaner.clean_text(text.clone())),
            block,
            cleaner,
        );
    }
    let kind = quote(&cleaner.clean_text(block.kind));
    Err(format!(
        "is of the kind {kind}, which this host does not support, and has no `text` instead"
    ))
}

/// Adds the members that all kinds can have.
fn with_annotations(
    body: ContentBody,
    block: RawBlock,
    cleaner: &mut TextCleaner<'_>,
) -> Result<ContentBlock, String> {
    if let Some(priority) = block.priority
        && !(0.0..=1.0).contains(&priority)
    {
        return Err(format!(
            "has the priority {priority}, which is not between 0.0 and 1.0"
        ));
    }
    let last_modified = block.last_modified.map(|text| cleaner.clean_text(text));
    if let Some(when) = last_modified.as_deref().filter(|when| !is_timestamp(when)) {
        let when = quote(when);
        return Err(format!(
            "was last modified at {when}, which is not a time such as \"2026-01-12T15:00:58Z\""
        ));
    }
    Ok(ContentBlock {
        body,
        audience: block.audience,
        priority: block.priority,
        last_modified,
    })
}

/// The members of a block that are not converted yet.
struct BlockMembers {
    kind: BlockKind,
    block: RawBlock,
}

impl BlockMembers {
    fn take_required<T>(
        &mut self,
        name: &str,
        member: impl FnOnce(&mut RawBlock) -> &mut Option<T>,
    ) -> Result<T, String> {
        let kind = self.kind.name_with_article();
        member(&mut self.block)
            .take()
            .ok_or_else(|| format!("is {kind} without `{name}`"))
    }

    fn take_media(
        &mut self,
        family: &str,
        cleaner: &mut TextCleaner<'_>,
    ) -> Result<MediaContent, String> {
        let data = cleaner.check_data(self.take_required("data", |b| &mut b.data)?)?;
        let mime_type = cleaner.clean_text(self.take_required("mime-type", |b| &mut b.mime_type)?);
        if mime_type.split('/').next() != Some(family) || !is_mime_type(&mime_type) {
            return Err(format!(
                "is {}, but its MIME type is {}, not {family}/…",
                self.kind.name_with_article(),
                quote(&mime_type)
            ));
        }
        Ok(MediaContent { data, mime_type })
    }

    fn take_mime_type(&mut self, cleaner: &mut TextCleaner<'_>) -> Result<Option<String>, String> {
        match self
            .block
            .mime_type
            .take()
            .map(|text| cleaner.clean_text(text))
        {
            Some(mime_type) if !is_mime_type(&mime_type) => {
                Err(format!("has an invalid MIME type: {}", quote(&mime_type)))
            }
            mime_type => Ok(mime_type),
        }
    }

    fn take_uri(&mut self, cleaner: &mut TextCleaner<'_>) -> Result<String, String> {
        let uri = cleaner.clean_text(self.take_required("uri", |b| &mut b.uri)?);
        if is_uri(&uri) {
            return Ok(uri);
        }
        let why = match check_authority(&uri) {
            Err(why) => format!("it {why}"),
            Ok(()) => "no scheme, or a space in it".to_owned(),
        };
        Err(format!("has an invalid URI ({why}): {}", quote(&uri)))
    }

    fn check_no_members_left(&self) -> Result<(), String> {
        let block = &self.block;
        let members = [
            ("text", block.text.is_some()),
            ("data", block.data.is_some()),
            ("mime-type", block.mime_type.is_some()),
            ("uri", block.uri.is_some()),
            ("name", block.name.is_some()),
            ("title", block.title.is_some()),
            ("description", block.description.is_some()),
            ("size", block.size.is_some()),
            ("members", block.members.is_some()),
        ];
        match members.into_iter().find(|(_, present)| *present) {
            Some((name, _)) => Err(format!(
                "is {}, which cannot have `{name}`",
                self.kind.name_with_article()
            )),
            None => Ok(()),
        }
    }
}
