//! Text rendering.

use crate::canvas::{Canvas, Color, Place, float, index};
use noto_sans_mono_bitmap::{
    FontWeight, RasterHeight, RasterizedChar, get_raster, get_raster_width,
};

/// A monospaced font.
#[derive(Clone, Copy)]
pub(crate) struct Font {
    weight: FontWeight,
    height: RasterHeight,
}

/// The font for ticks and labels.
pub(crate) const SMALL: Font = Font {
    weight: FontWeight::Regular,
    height: RasterHeight::Size16,
};

/// The font for the title.
pub(crate) const LARGE: Font = Font {
    weight: FontWeight::Bold,
    height: RasterHeight::Size20,
};

impl Font {
    pub(crate) fn height(self) -> f64 {
        float(self.height.val())
    }

    /// Returns the width of a text.
    pub(crate) fn width(self, text: &str) -> f64 {
        self.advance() * float(text.chars().count())
    }

    /// Returns how many characters fit in `width`.
    pub(crate) fn room(self, width: f64) -> usize {
        index(width / self.advance())
    }

    fn advance(self) -> f64 {
        float(get_raster_width(self.weight, self.height))
    }

    /// Draws a text whose upper left corner is at this position.
    pub(crate) fn write(self, canvas: &mut Canvas, (left, top): Place, text: &str, color: Color) {
        let left = index(left.round());
        let top = index(top.round());
        let width = get_raster_width(self.weight, self.height);
        for (number, character) in text.chars().enumerate() {
            // A missing glyph is drawn as a question mark in a box.
            let glyph = get_raster(character, self.weight, self.height)
                .or_else(|| get_raster(char::REPLACEMENT_CHARACTER, self.weight, self.height));
            let rows = glyph.iter().flat_map(RasterizedChar::rows).enumerate();
            for (y, row) in rows {
                for (x, coverage) in row.iter().enumerate() {
                    let x = left + number * width + x;
                    canvas.blend(x, top + y, color, f64::from(*coverage) / 255.0);
                }
            }
        }
    }
}

/// Returns `text`, cut to `room` characters with an ellipsis if it is longer.
pub(crate) fn shorten(text: &str, room: usize) -> String {
    const DOTS: &str = "..";
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(DOTS.len())).collect();
    kept.trim_end().to_owned() + DOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_ends_in_dots() {
        assert_eq!(shorten("Amsterdam", 9), "Amsterdam");
        assert_eq!(shorten("Amsterdam", 8), "Amster..");
        assert_eq!(shorten("New York", 6), "New..");
    }

    #[test]
    fn room_and_width_agree() {
        assert_eq!(SMALL.room(SMALL.width("Grüße")), 5);
    }

    #[test]
    fn letters_of_european_languages_exist() {
        for character in "Aé÷ßŁőŽ".chars() {
            assert!(get_raster(character, LARGE.weight, LARGE.height).is_some());
            assert!(get_raster(character, SMALL.weight, SMALL.height).is_some());
        }
        assert!(get_raster(char::REPLACEMENT_CHARACTER, SMALL.weight, SMALL.height).is_some());
    }
}
