//! Converts fetched pages to text for a model.

use htmd::{HtmlToMarkdown, Node};
use std::rc::Rc;
use toolbay_plugin::prelude::*;
use url::Url;

/// Elements that contain no text, or that are repeated on every page of a site.
const SKIPPED: [&str; 9] = [
    "head", "script", "style", "noscript", "svg", "iframe", "nav", "footer", "form",
];

/// Maximum nesting of elements. The converter is recursive, and the stack is bounded.
const DEPTH: usize = 400;

/// The kind of a page, according to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A document to convert.
    Html,
    /// Text that is readable as it is.
    Text,
}

impl Kind {
    /// Returns the kind for a `Content-Type`. Without the header, the page is most likely a
    /// document.
    pub(crate) fn of(header: Option<&str>) -> Result<Self> {
        let Some(header) = header else {
            return Ok(Self::Html);
        };
        let kind = header
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match kind.as_str() {
            "text/html" | "application/xhtml+xml" => Ok(Self::Html),
            "application/json" | "application/xml" | "application/yaml" => Ok(Self::Text),
            kind if kind.starts_with("text/")
                || kind.ends_with("+json")
                || kind.ends_with("+xml") =>
            {
                Ok(Self::Text)
            }
            kind => bail!("the address leads to {kind}, which is no text"),
        }
    }

    /// Converts the page to Markdown.
    pub(crate) fn markdown(self, page: &str) -> Result<String> {
        match self {
            Self::Html => {
                let converter = HtmlToMarkdown::builder()
                    .skip_tags(SKIPPED.to_vec())
                    .build();
                let document = converter.html_to_tree(page)?;
                if !is_shallow(&document) {
                    bail!("the elements of the page are nested more than {DEPTH} deep");
                }
                Ok(converter.tree_to_markdown(&document))
            }
            Self::Text => Ok(page.to_owned()),
        }
    }
}

/// Returns whether all elements are within the maximum nesting.
fn is_shallow(document: &Rc<Node>) -> bool {
    let mut level = vec![Rc::clone(document)];
    for _ in 0..DEPTH {
        level = level
            .iter()
            .flat_map(|node| node.children.borrow().clone())
            .collect();
        if level.is_empty() {
            return true;
        }
    }
    false
}

/// Returns a part of the text, and where the next part starts.
pub(crate) fn part(
    text: &str,
    url: &Url,
    start: usize,
    length: usize,
    whole: bool,
) -> Result<String> {
    let characters = text.chars().count();
    if start > 0 && start >= characters {
        invalid!("`start` is {start}, but the page has only {characters} characters");
    }
    let part: String = text.chars().skip(start).take(length).collect();
    let end = start.saturating_add(length);
    let rest = match whole {
        _ if end < characters => format!(
            "\n\n[{} more characters: call again with start = {end}]",
            characters - end
        ),
        false => "\n\n[the page is longer than what is read of one]".to_owned(),
        true => String::new(),
    };
    Ok(format!("{url}\n\n{part}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html><head><title>T</title><style>p {}</style></head><body><nav>Menu</nav>\
        <h1>Bread</h1><p>Flour &amp; <a href='/water'>water</a>.<ul><li>knead</ul><script>alert(1)</script></body>";

    #[test]
    fn a_document_becomes_markdown_without_what_is_no_text() {
        let text = Kind::Html.markdown(PAGE).unwrap();
        assert!(
            text.starts_with("# Bread\n\nFlour & [water](/water)."),
            "{text}"
        );
        assert!(text.contains("knead"), "{text}");
        for left_out in ["Menu", "alert", "p {}"] {
            assert!(!text.contains(left_out), "{text}");
        }
    }

    #[test]
    fn the_kind_of_a_page_is_what_its_server_says() {
        assert_eq!(Kind::of(None).unwrap(), Kind::Html);
        assert_eq!(
            Kind::of(Some("Text/HTML; charset=utf-8")).unwrap(),
            Kind::Html
        );
        for text in [
            "text/plain",
            "application/json",
            "application/ld+json",
            "text/markdown;charset=utf-8",
        ] {
            assert_eq!(Kind::of(Some(text)).unwrap(), Kind::Text, "{text}");
        }
        let error = Kind::of(Some("image/png")).unwrap_err();
        assert_eq!(
            error.message(),
            "the address leads to image/png, which is no text"
        );
    }

    #[test]
    fn a_page_that_is_nested_without_end_is_refused() {
        for nested in ["<div>", "<b><div>", "<div></p></x>", "<ul><li>"] {
            let error = Kind::Html.markdown(&nested.repeat(5_000)).unwrap_err();
            assert_eq!(
                error.message(),
                "the elements of the page are nested more than 400 deep",
                "{nested}"
            );
        }
        assert!(
            Kind::Html
                .markdown(&("<DIV>".repeat(300) + "deep"))
                .unwrap()
                .contains("deep")
        );
        let flat = "<p>one<br><img src=a><div>x</div>".repeat(5_000);
        assert!(Kind::Html.markdown(&flat).unwrap().ends_with('x'));
    }

    #[test]
    fn a_long_page_comes_in_parts() {
        let url = Url::parse("https://example.com/a").unwrap();
        let part = |start, length, whole| part("äbcdef", &url, start, length, whole);
        let first = "https://example.com/a\n\näb\n\n[4 more characters: call again with start = 2]";
        assert_eq!(part(0, 2, true).unwrap(), first);
        assert_eq!(part(2, 4, true).unwrap(), "https://example.com/a\n\ncdef");
        assert!(
            part(2, 9, false)
                .unwrap()
                .ends_with("longer than what is read of one]")
        );
        assert!(part(6, 1, true).unwrap_err().is_invalid_arguments());
    }
}
