//! Plugins that differ from one another, made out of one.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};

/// What the guest says of itself, up to its number.
const MARK: &[u8] = b"restless-edition-";

/// How many digits the number has.
const DIGITS: usize = 6;

/// Editions that come again and again: their compiled code is in the store.
const RECURRING: u64 = 16;

/// One change in so many brings an edition that has never been there, which must be compiled.
const FRESH: u64 = 8;

/// All editions of the guest `restless`.
pub(crate) struct Editions {
    first: Vec<u8>,
    /// Where its number is.
    number: usize,
    /// The next that has never been there.
    next: AtomicU64,
}

impl Editions {
    /// Reads the guest.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
        Self::of(bytes).with_context(|| format!("{} is not the guest that it should be", file.display()))
    }

    fn of(first: Vec<u8>) -> Result<Self> {
        let mut places = first.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
        let number = places.next().context("no edition is written in it")?.0 + MARK.len();
        ensure!(places.next().is_none(), "an edition is written in it more than once");
        drop(places);
        ensure!(first.get(number..number + DIGITS) == Some(b"000000"), "it is not the first edition");
        Ok(Self { first, number, next: AtomicU64::new(RECURRING) })
    }

    /// The file of an edition.
    pub(crate) fn file(&self, edition: u64) -> Vec<u8> {
        let mut file = self.first.clone();
        let digits = format!("{:0DIGITS$}", edition % 10_u64.pow(6));
        file.splice(self.number..self.number + DIGITS, digits.into_bytes());
        file
    }

    /// What an edition says of itself.
    pub(crate) fn says(edition: u64, note: &str) -> String {
        format!("{}{edition:0DIGITS$} {note}", String::from_utf8_lossy(MARK))
    }

    /// Any edition but this one.
    pub(crate) fn other_than(&self, edition: u64, random: &mut fastrand::Rng) -> u64 {
        if random.u64(..FRESH) == 0 {
            return self.next.fetch_add(1, Ordering::Relaxed);
        }
        let other = random.u64(..RECURRING);
        if other == edition { (other + 1) % RECURRING } else { other }
    }

    /// How many editions there have been.
    pub(crate) fn count(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

/// Odd editions have one tool more.
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
        assert!((50..300).contains(&editions.count()), "{}", editions.count());
        assert!(Editions::of(b"restless-edition-000000 restless-edition-000000".to_vec()).is_err());
        assert!(Editions::of(b"".to_vec()).is_err());
    }
}
