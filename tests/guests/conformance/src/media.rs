//! A picture and a sound.

/// A red pixel.
pub(crate) const PNG: &[u8] = include_bytes!("pixel.png");

/// Eight samples of silence.
pub(crate) const WAV: &[u8] = b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x08\0\0\0\x80\x80\x80\x80\x80\x80\x80\x80";
