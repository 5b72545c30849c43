//! A picture to draw on.

use png::{BitDepth, ColorType, Encoder};
use toolbay_plugin::Result;

/// Red, green and blue.
pub(crate) type Color = [u8; 3];

/// A position on the canvas, relative to its upper left corner.
pub(crate) type Place = (f64, f64);

/// A picture. Drawing outside of it has no effect.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Color>,
}

impl Canvas {
    pub(crate) fn new((width, height): (usize, usize), background: Color) -> Self {
        Self {
            width,
            height,
            pixels: vec![background; width * height],
        }
    }

    /// Blends a colour with a pixel. With coverage 0 the pixel stays unchanged, with 1 the colour
    /// replaces it.
    pub(crate) fn blend(&mut self, x: usize, y: usize, color: Color, coverage: f64) {
        if x >= self.width {
            return;
        }
        let Some(pixel) = self.pixels.get_mut(y * self.width + x) else {
            return;
        };
        for (old, new) in pixel.iter_mut().zip(color) {
            *old = level(f64::from(*old) * (1.0 - coverage) + f64::from(new) * coverage);
        }
    }

    /// Fills the rectangle between two corners.
    pub(crate) fn fill(&mut self, (left, top): Place, (right, bottom): Place, color: Color) {
        for y in index(top)..self.height.min(index(bottom.ceil())) {
            for x in index(left)..self.width.min(index(right.ceil())) {
                let coverage = overlap(x, left, right) * overlap(y, top, bottom);
                self.blend(x, y, color, coverage);
            }
        }
    }

    /// Draws lines with round ends. A line of length zero is a dot.
    pub(crate) fn stroke(
        &mut self,
        lines: impl Iterator<Item = (Place, Place)>,
        width: f64,
        color: Color,
    ) {
        // Where lines meet, a pixel is drawn once, with the larger coverage.
        let mut mask = vec![0.0_f64; self.pixels.len()];
        for (from, to) in lines {
            self.cover(&mut mask, from, to, width / 2.0);
        }
        for (number, coverage) in mask.into_iter().enumerate() {
            if coverage > 0.0 {
                self.blend(number % self.width, number / self.width, color, coverage);
            }
        }
    }

    fn cover(&self, mask: &mut [f64], from: Place, to: Place, radius: f64) {
        let reach = radius + 1.0;
        let rows =
            index(from.1.min(to.1) - reach)..self.height.min(index(from.1.max(to.1) + reach));
        for y in rows {
            let columns =
                index(from.0.min(to.0) - reach)..self.width.min(index(from.0.max(to.0) + reach));
            for x in columns {
                let center = (float(x) + 0.5, float(y) + 0.5);
                let coverage = (radius + 0.5 - distance(center, from, to)).clamp(0.0, 1.0);
                if let Some(most) = mask.get_mut(y * self.width + x) {
                    *most = most.max(coverage);
                }
            }
        }
    }

    /// Encodes the picture as PNG.
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(
            &mut file,
            u32::try_from(self.width)?,
            u32::try_from(self.height)?,
        );
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        Ok(file)
    }
}

/// Returns the part of a pixel that lies between two edges, from 0 to 1.
fn overlap(pixel: usize, low: f64, high: f64) -> f64 {
    (high.min(float(pixel) + 1.0) - low.max(float(pixel))).clamp(0.0, 1.0)
}

/// Returns the distance of a position from the line between two others.
fn distance(place: Place, from: Place, to: Place) -> f64 {
    let dx = to.0 - from.0;
    let dy = to.1 - from.1;
    let px = place.0 - from.0;
    let py = place.1 - from.1;
    let length = dx * dx + dy * dy;
    let along = if length > 0.0 {
        ((px * dx + py * dy) / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (px - along * dx).hypot(py - along * dy)
}

#[expect(clippy::cast_precision_loss, reason = "pixels and points are few")]
pub(crate) fn float(number: usize) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place above or left of the canvas becomes its edge"
)]
pub(crate) fn index(number: f64) -> usize {
    number as usize
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of two levels is one"
)]
fn level(number: f64) -> u8 {
    number.round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Color = [255; 3];
    const BLACK: Color = [0; 3];

    fn drawn(draw: impl Fn(&mut Canvas)) -> Vec<u8> {
        let mut canvas = Canvas::new((4, 3), WHITE);
        draw(&mut canvas);
        canvas.pixels.iter().map(|pixel| pixel[0]).collect()
    }

    #[test]
    fn edges_between_pixels_are_grey() {
        let pixels = drawn(|canvas| canvas.fill((1.0, 0.5), (2.5, 2.0), BLACK));
        assert_eq!(
            pixels,
            [255, 128, 191, 255, 255, 0, 128, 255, 255, 255, 255, 255]
        );
    }

    #[test]
    fn a_line_covers_what_it_crosses() {
        let pixels =
            drawn(|canvas| canvas.stroke([((0.0, 1.5), (4.0, 1.5))].into_iter(), 1.0, BLACK));
        assert_eq!(pixels[4..8], [0; 4]);
        assert_eq!(pixels[..4], [255; 4]);
    }

    #[test]
    fn a_line_to_where_it_begins_is_a_dot() {
        let pixels =
            drawn(|canvas| canvas.stroke([((1.5, 1.5), (1.5, 1.5))].into_iter(), 1.0, BLACK));
        let mut expected = [255; 12];
        expected[5] = 0;
        assert_eq!(pixels, expected);
    }

    #[test]
    fn what_is_outside_is_left_out() {
        let pixels = drawn(|canvas| {
            canvas.fill((-5.0, -5.0), (50.0, 50.0), BLACK);
            canvas.stroke([((-9.0, -9.0), (99.0, 99.0))].into_iter(), 3.0, BLACK);
            canvas.blend(4, 0, WHITE, 1.0);
            canvas.blend(0, 3, WHITE, 1.0);
        });
        assert_eq!(pixels, [0; 12]);
    }
}
