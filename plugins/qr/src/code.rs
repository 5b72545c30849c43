//! A QR code and its two output formats.

use png::{BitDepth, ColorType, Encoder};
use qrcode::types::QrError;
use qrcode::{Color, EcLevel, QrCode};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use toolbay_plugin::{Error, JsonSchema, Result, schemars};

/// How much of a code may be unreadable.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// 7 %.
    Low,
    /// 15 %.
    #[default]
    Medium,
    /// 25 %.
    Quartile,
    /// 30 %.
    High,
}

impl From<Level> for EcLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Low => Self::L,
            Level::Medium => Self::M,
            Level::Quartile => Self::Q,
            Level::High => Self::H,
        }
    }
}

/// The modules of a code, row by row, and the width of the margin around it.
pub(crate) struct Code {
    rows: Vec<Vec<Color>>,
    margin: u32,
}

impl Code {
    pub(crate) fn of(text: &str, level: Level, margin: u32) -> Result<Self> {
        let code = QrCode::with_error_correction_level(text, level.into()).map_err(|error| {
            match error {
                QrError::DataTooLong => Error::invalid_arguments(
                    "`text` does not fit into a QR code: shorten it, or lower `error_correction`",
                ),
                error => Error::from(error),
            }
        })?;
        let rows = code
            .to_colors()
            .chunks(code.width())
            .map(<[_]>::to_vec)
            .collect();
        Ok(Self { rows, margin })
    }

    /// Returns the width in modules, margins included.
    fn width(&self) -> Result<u32> {
        Ok(u32::try_from(self.rows.len())? + 2 * self.margin)
    }

    /// Returns the code as a PNG with one bit per pixel, in which 1 is white.
    pub(crate) fn png(&self, scale: u32) -> Result<Vec<u8>> {
        let side = self.width()? * scale;
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, side, side);
        encoder.set_color(ColorType::Grayscale);
        encoder.set_depth(BitDepth::One);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels(side, scale))?;
        writer.finish()?;
        Ok(file)
    }

    fn pixels(&self, side: u32, scale: u32) -> Vec<u8> {
        let mut pixels = Vec::new();
        for y in 0..side {
            for byte in 0..side.div_ceil(8) {
                pixels.push((0..8).fold(0, |bits, bit| {
                    let white = !self.is_dark((byte * 8 + bit) / scale, y / scale);
                    bits << 1 | u8::from(white)
                }));
            }
        }
        pixels
    }

    /// Returns whether the module is dark. Modules in the margin or outside are not.
    fn is_dark(&self, x: u32, y: u32) -> bool {
        let module = |x: u32, y: u32| {
            let x = usize::try_from(x.checked_sub(self.margin)?).ok()?;
            let y = usize::try_from(y.checked_sub(self.margin)?).ok()?;
            self.rows.get(y)?.get(x)
        };
        module(x, y) == Some(&Color::Dark)
    }

    /// Returns the code as an SVG with one path, which outlines each run of dark squares.
    pub(crate) fn svg(&self) -> String {
        let margin = self.margin as usize;
        let side = self.rows.len() + 2 * margin;
        let mut path = String::new();
        for (y, row) in self.rows.iter().enumerate() {
            let mut x = margin;
            let y = y + margin;
            for run in row.chunk_by(PartialEq::eq) {
                let width = run.len();
                if run.first() == Some(&Color::Dark) {
                    // Writing to a string cannot fail.
                    let _ = write!(path, "M{x} {y}h{width}v1h-{width}z");
                }
                x += width;
            }
        }
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {side} {side}' shape-rendering='crispEdges'>\
             <path fill='white' d='M0 0h{side}v{side}h-{side}z'/><path d='{path}'/></svg>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqrr::PreparedImage;

    /// Decodes a picture with a QR code reader.
    fn read(png: &[u8]) -> String {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let width = reader.next_frame(&mut pixels).unwrap().width as usize;
        let mut picture =
            PreparedImage::prepare_from_greyscale(width, width, |x, y| pixels[y * width + x]);
        let grids = picture.detect_grids();
        assert_eq!(grids.len(), 1);
        grids[0].decode().unwrap().1
    }

    #[test]
    fn a_reader_reads_what_was_written() {
        for (text, scale) in [("https://example.com/?q=1", 8), ("Grüße, 東京!", 3)] {
            let code = Code::of(text, Level::High, 4).unwrap();
            assert_eq!(read(&code.png(scale).unwrap()), text);
        }
    }

    #[test]
    fn margin_and_scale_count() {
        let code = Code::of("a", Level::Low, 2).unwrap();
        // The smallest code has 21 modules, and "a" needs no more.
        assert_eq!(code.width().unwrap(), 25);
        let png = code.png(3).unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(png))
            .read_info()
            .unwrap();
        assert_eq!((reader.info().width, reader.info().height), (75, 75));
    }

    #[test]
    fn both_forms_have_the_same_squares() {
        let code = Code::of("a", Level::Medium, 1).unwrap();
        let dark = code
            .rows
            .iter()
            .flatten()
            .filter(|color| **color == Color::Dark);
        let svg = code.svg();
        let widths = svg
            .split("v1h-")
            .skip(1)
            .map(|rest| rest.split('z').next().unwrap());
        assert_eq!(
            widths
                .map(|width| width.parse::<usize>().unwrap())
                .sum::<usize>(),
            dark.count()
        );
        assert!(svg.contains("viewBox='0 0 23 23'"), "{svg}");
        // The finder pattern starts right after the margin.
        assert!(svg.contains("M1 1h7v1h-7z"), "{svg}");
    }
}
