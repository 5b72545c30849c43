//! MIME types of files, by file name.

/// Extensions in lower case with their MIME types, in alphabetical order. An extension whose type
/// is uncertain is left out: a wrong type is worse than none.
const MIME_TYPES: [(&str, &str); 74] = [
    ("aac", "audio/aac"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("c", "text/x-c"),
    ("cc", "text/x-c"),
    ("cfg", "text/plain"),
    ("conf", "text/plain"),
    ("cpp", "text/x-c"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("diff", "text/x-diff"),
    ("doc", "application/msword"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("epub", "application/epub+zip"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("go", "text/x-go"),
    ("gz", "application/gzip"),
    ("h", "text/x-c"),
    ("hpp", "text/x-c"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/vnd.microsoft.icon"),
    ("ics", "text/calendar"),
    ("ini", "text/plain"),
    ("java", "text/x-java"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("ogg", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("patch", "text/x-diff"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("py", "text/x-python"),
    ("rb", "text/x-ruby"),
    ("rs", "text/x-rust"),
    ("rst", "text/x-rst"),
    ("rtf", "application/rtf"),
    ("sh", "text/x-shellscript"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tex", "application/x-tex"),
    ("text", "text/plain"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("tsv", "text/tab-separated-values"),
    ("tsx", "text/x-typescript"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    ("xls", "application/vnd.ms-excel"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// Returns the MIME type of a file with this name, according to its extension.
pub(crate) fn from_file_name(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    let index = MIME_TYPES
        .binary_search_by_key(&extension.as_str(), |(extension, _)| extension)
        .ok()?;
    MIME_TYPES.get(index).map(|(_, mime_type)| *mime_type)
}

/// Returns whether files of this type are text. A file of an unknown type is text if its bytes can
/// be text.
pub(crate) fn is_text(mime_type: Option<&str>) -> bool {
    let Some(mime_type) = mime_type else {
        return true;
    };
    let text_types = [
        "application/json",
        "application/jsonl",
        "application/rtf",
        "application/sql",
        "application/toml",
    ];
    let more_text_types = [
        "application/x-tex",
        "application/xml",
        "application/yaml",
        "image/svg+xml",
    ];
    mime_type.starts_with("text/")
        || text_types.contains(&mime_type)
        || more_text_types.contains(&mime_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(MIME_TYPES.is_sorted_by(|(one, _), (two, _)| one < two));
        for (extension, mime_type) in MIME_TYPES {
            assert!(
                mime_type
                    .split_once('/')
                    .is_some_and(|(kind, subtype)| !kind.is_empty() && !subtype.is_empty())
            );
            assert_eq!(from_file_name(&format!("a.{extension}")), Some(mime_type));
        }
    }

    #[test]
    fn the_extension_determines_the_type() {
        assert_eq!(
            (
                from_file_name("a.b.MD"),
                from_file_name("md"),
                from_file_name("a."),
                from_file_name("a.unknown")
            ),
            (Some("text/markdown"), None, None, None)
        );
        assert!(
            is_text(from_file_name("a.md")) && is_text(from_file_name("a.svg")) && is_text(None)
        );
        assert!(!is_text(from_file_name("a.png")) && !is_text(from_file_name("a.pdf")));
    }
}
