//! SVG generation: shapes and text that are readable on light and dark pages.

use std::fmt::{Display, Write as _};

/// Colours that can be distinguished on white and on black, also by people with colour blindness.
/// Other items have the colour of the text.
const STYLE: &str = "\
svg{color:#24292f;background:transparent;font:13px system-ui,sans-serif}\
@media(prefers-color-scheme:dark){svg{color:#d0d7de}}\
text{fill:currentColor}.small{font-size:11px}.title{font-size:15px;font-weight:600}\
.grid{stroke:currentColor;stroke-opacity:.18}.axis{stroke:currentColor;stroke-opacity:.6}\
.c0{--c:#0072b2}.c1{--c:#d55e00}.c2{--c:#009e73}.c3{--c:#cc79a7}.c4{--c:#8a8a8a}.c5{--c:#b58900}\
@media(prefers-color-scheme:dark){.c0{--c:#56b4e9}.c1{--c:#ff8c42}.c2{--c:#2ed3a2}.c3{--c:#e8a3c9}.c4{--c:#a0a0a0}\
.c5{--c:#f0e442}}\
.fill{fill:var(--c)}.line{fill:none;stroke:var(--c);stroke-width:2}.range{stroke:var(--c);stroke-width:1.2}";

/// Number of colours.
const COLOURS: usize = 6;

/// A drawing under construction.
pub(crate) struct Svg {
    body: String,
}

/// The alignment of a text.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(crate) fn new() -> Self {
        Self {
            body: String::new(),
        }
    }

    /// Appends a piece. Writing to a string cannot fail.
    fn put(&mut self, piece: impl Display) {
        let _ = writeln!(self.body, "{piece}");
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.put(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{text}</text>"#
        ));
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.put(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{class}"/>"#
        ));
    }

    /// Draws a bar with a tooltip.
    pub(crate) fn bar(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        colour: usize,
        about: &str,
    ) {
        let class = class("fill", colour);
        let about = escaped(about);
        self.put(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2" class="{class}"><title>{about}</title></rect>"#
        ));
    }

    pub(crate) fn dot(&mut self, (x, y): (f64, f64), colour: usize, about: &str) {
        let class = class("fill", colour);
        let about = escaped(about);
        self.put(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" class="{class}"><title>{about}</title></circle>"#
        ));
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], colour: usize) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let class = class("line", colour);
        let points = points.join(" ");
        self.put(format_args!(
            r#"<polyline points="{points}" class="{class}"/>"#
        ));
    }

    /// Draws the line from the minimum to the maximum value of a point.
    pub(crate) fn range(&mut self, x: f64, (top, bottom): (f64, f64), colour: usize) {
        self.line((x, top), (x, bottom), &class("range", colour));
    }

    /// Returns the complete file. Title and description are for accessibility.
    pub(crate) fn end(self, (width, height): (f64, f64), title: &str, about: &str) -> String {
        let title = escaped(title);
        let about = escaped(about);
        let body = self.body;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-labelledby=\"title about\">\n<title id=\"title\">{title}</title>\n\
             <desc id=\"about\">{about}</desc>\n<style>{STYLE}</style>\n{body}</svg>\n"
        )
    }
}

fn class(kind: &str, colour: usize) -> String {
    format!("{kind} c{}", colour % COLOURS)
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_a_file_is_whole() {
        let mut svg = Svg::new();
        svg.text((1.0, 2.0), Anchor::Start, "small", "a < b & \"c\"");
        let file = svg.end((10.0, 20.0), "<t>", "d");
        assert!(
            file.contains("a &lt; b &amp; &quot;c&quot;</text>")
                && file.contains("&lt;t&gt;</title>"),
            "{file}"
        );
        assert!(
            file.starts_with("<svg ")
                && file.ends_with("</svg>\n")
                && file.contains("prefers-color-scheme")
        );
    }
}
