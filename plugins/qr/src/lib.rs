//! Tools that create QR codes.

mod code;

use code::{Code, Level};
use serde::Deserialize;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Picture {
    /// The content of the code, such as a URL.
    #[schemars(length(min = 1, max = 7089))]
    text: String,
    /// The width of a module (one of the small squares), in pixels.
    #[serde(default = "default_scale")]
    #[schemars(range(min = 1, max = 20))]
    scale: u32,
    /// The width of the white margin, in modules; readers expect 4.
    #[serde(default = "default_margin")]
    #[schemars(range(max = 16))]
    margin: u32,
    /// How much of the code may be unreadable.
    #[serde(default)]
    error_correction: Level,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Drawing {
    /// The content of the code, such as a URL.
    #[schemars(length(min = 1, max = 7089))]
    text: String,
    /// The width of the white margin, in modules; readers expect 4.
    #[serde(default = "default_margin")]
    #[schemars(range(max = 16))]
    margin: u32,
    /// How much of the code may be unreadable.
    #[serde(default)]
    error_correction: Level,
}

fn default_scale() -> u32 {
    8
}

fn default_margin() -> u32 {
    4
}

/// Creates a QR code from a text and returns it as a PNG image.
#[tool(title = "QR code", read_only, idempotent, open_world = false)]
fn qr_png(args: Picture) -> Result<Image> {
    let code = Code::of(&args.text, args.error_correction, args.margin)?;
    Ok(Image::png(code.png(args.scale)?))
}

/// Creates a QR code from a text and returns it as SVG text, to embed in a page or a document. The
/// image has no fixed size: it fills its container.
#[tool(title = "QR code as SVG", read_only, idempotent, open_world = false)]
fn qr_svg(args: Drawing) -> Result<String> {
    let code = Code::of(&args.text, args.error_correction, args.margin)?;
    Ok(code.svg())
}

export!(qr_png, qr_svg);

#[cfg(test)]
mod tests {
    use super::*;
    use toolbay_plugin::{serde_json::json, test};

    #[test]
    fn a_picture_is_an_image_block() {
        let arguments = json!({"text": "https://example.com", "scale": 2, "margin": 1});
        let output = test::call::<qr_png>(arguments, &Context::test()).unwrap();
        let [content] = output.contents() else {
            panic!("{output:?}");
        };
        assert_eq!(content.mime_type(), Some("image/png"));
        assert!(content.as_bytes().unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn a_drawing_is_text() {
        let output = test::call::<qr_svg>(json!({"text": "a"}), &Context::test()).unwrap();
        assert!(output.text().starts_with("<svg "));
    }

    #[test]
    fn too_much_text_is_the_callers_mistake() {
        let arguments = json!({"text": "ä".repeat(4000), "error_correction": "high"});
        let error = test::call::<qr_svg>(arguments, &Context::test()).unwrap_err();
        assert!(error.is_invalid_arguments());
        assert!(error.message().contains("does not fit"), "{error}");
    }
}
