//! Generates plugins that differ from one another from a single guest.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};

/// The text in the guest's description that precedes its number.
const MARK: &[u8] = b"restless-edition-";

/// Number of digits.
const DIGITS: usize = 6;

/// Number of recurring editions. Their compiled code is in the cache.
const RECURRING: u64 = 16;

/// One in this many changes uses a new edition, which must be compiled.
const FRESH: u64 = 8;

/// All editions of the guest `restless`.
pub(crate) struct Editions {
    first: Vec<u8>,
    /// Offset of the number.
    number: usize,
    /// The next new edition.
    next: AtomicU64,
}

impl Editions {
    /// Reads the guest.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
        Self::of(bytes)
            .with_context(|| format!("{} is not the guest that it should be", file.display()))
    }

    fn of(first: Vec<u8>) -> Result<Self> {
        let mut places = first
            .windows(MARK.len())
            .enumerate()
            .filter(|(_, window)| *window == MARK);
        let number = places.next().context("no edition is written in it")?.0 + MARK.len();
        ensure!(
            places.next().is_none(),
            "an edition is written in it more than once"
        );
        drop(places);
        ensure!(
            first.get(number..number + DIGITS) == Some(b"000000"),
            "it is not the first edition"
        );
        Ok(Self {
            first,
            number,
            next: AtomicU64::new(RECURRING),
        })
    }

    /// Returns the file of an edition.
    pub(crate) fn file(&self, edition: u64) -> Vec<u8> {
        let mut file = self.first.clone();
        let digits = format!("{:0DIGITS$}", edition % 10_u64.pow(6));
        file.splice(self.number..self.number + DIGITS, digits.into_bytes());
        file
    }

    /// Returns the text that an edition reports.
    pub(crate) fn says(edition: u64, note: &str) -> String {
        format!("{}{edition:0DIGITS$} {note}", String::from_utf8_lossy(MARK))
    }

    /// Returns a random edition other than this one.
    pub(crate) fn other_than(&self, edition: u64, random: &mut fastrand::Rng) -> u64 {
        if random.u64(..FRESH) == 0 {
            return self.next.fetch_add(1, Ordering::Relaxed);
        }
        let other = random.u64(..RECURRING);
        if other == edition {
            (other + 1) % RECURRING
        } else {
            other
        }
    }

    /// Returns the number of editions generated so far.
    pub(crate) fn count(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

/// Returns whether an edition is odd. Odd editions have one more tool.
pub(crate) fn is_odd(edition: u64) -> bool {
    edition % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edition_differs_from_another_in_its_number() {
        let editions = Editions::of(b"..restless-edition-000000..".to_vec()).unwrap();
        assert_eq!(editions.file(37), b"..restless-edition-000037..");
        assert_eq!(Editions::says(37, "a"), "restless-edition-000037 a");
        let mut random = fastrand::Rng::with_seed(1);
        let mut edition = 0;
        for _ in 0..1000 {
            let other = editions.other_than(edition, &mut random);
            assert_ne!(other, edition);
            edition = other;
        }
        assert!(
            (50..300).contains(&editions.count()),
            "{}",
            editions.count()
        );
        assert!(Editions::of(b"restless-edition-000000 restless-edition-000000".to_vec()).is_err());
        assert!(Editions::of(b"".to_vec()).is_err());
    }
}
