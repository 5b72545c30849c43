//! Reports of measurements: tables in Markdown, charts as SVG, and the page of the book that
//! contains them.

mod axis;
mod bars;
mod lines;
mod markdown;
mod page;
mod sample;
mod svg;

pub use self::bars::{Bars, Panel};
pub use self::lines::{Lines, Series};
pub use self::markdown::Markdown;
pub use self::page::{Machine, Page};
pub use self::sample::{Sample, Unit, number};
