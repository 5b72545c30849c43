//! The tally of the record of used states: the minimum that the files of the record must contain.
//! It is authenticated with the secret of the servers that share the record, so that the record and
//! this secret belong together.

use std::collections::BTreeMap;

use aws_lc_rs::hmac;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolbay_private::KEY_BYTES;

/// Size of an encoded tally, in bytes. It is constant, so that a tally is overwritten in place.
pub(super) const TALLY_BYTES: usize = 512;

/// Maximum number of periods. States of two periods are valid at a time; a clock that is set back
/// leaves more.
const MAX_PERIODS: usize = 8;

/// Size of the authentication code, in bytes.
const MAC_BYTES: usize = 32;

/// Prefix of the authenticated text. It prevents a code from another use of the secret from being
/// accepted.
const PURPOSE: &[u8] = b"toolbay record of request states 1";

/// The tally of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct RecordTally {
    /// States issued before this time, in milliseconds of Unix time, are not accepted.
    pub(super) not_before: u64,
    /// The periods by number.
    pub(super) periods: BTreeMap<u64, PeriodTally>,
}

/// The records of one period, in the order of their file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct PeriodTally {
    /// Number of records.
    pub(super) records: usize,
    /// Hash of the records and their order.
    chain: [u8; 32],
}

impl PeriodTally {
    /// Counts a record that follows the others.
    pub(super) fn add(&mut self, record: &[u8]) {
        self.records += 1;
        self.chain = Sha256::new()
            .chain_update(self.chain)
            .chain_update(record)
            .finalize()
            .into();
    }
}

impl RecordTally {
    /// Decodes a tally; `None` if it was not made with this secret, or is damaged.
    pub(super) fn decode(bytes: &[u8], secret: &[u8; KEY_BYTES]) -> Option<Self> {
        let (mac, payload) = bytes
            .split_at_checked(MAC_BYTES)
            .filter(|_| bytes.len() == TALLY_BYTES)?;
        hmac::verify(&mac_key(secret), &[PURPOSE, payload].concat(), mac).ok()?;
        postcard::take_from_bytes(payload)
            .ok()
            .map(|(tally, _)| tally)
    }

    /// Encodes and authenticates the tally; `None` if it has too many periods.
    pub(super) fn encode(&self, secret: &[u8; KEY_BYTES]) -> Option<Vec<u8>> {
        let mut payload = postcard::to_allocvec(self)
            .ok()
            .filter(|_| self.periods.len() <= MAX_PERIODS)?;
        if payload.len() > TALLY_BYTES - MAC_BYTES {
            return None;
        }
        payload.resize(TALLY_BYTES - MAC_BYTES, 0);
        let mac = hmac::sign(&mac_key(secret), &[PURPOSE, payload.as_slice()].concat());
        Some([mac.as_ref(), payload.as_slice()].concat())
    }
}

fn mac_key(secret: &[u8; KEY_BYTES]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(periods: u64) -> RecordTally {
        let mut period = PeriodTally::default();
        period.add(b"a record");
        let numbered = |number| {
            (
                u64::MAX - number,
                PeriodTally {
                    records: 1 << 16,
                    ..period
                },
            )
        };
        RecordTally {
            not_before: u64::MAX,
            periods: (0..periods).map(numbered).collect(),
        }
    }

    #[test]
    fn a_tally_survives_encoding() {
        for periods in 0..=8 {
            let encoded = tally(periods).encode(&[7; 32]).unwrap();
            assert_eq!(encoded.len(), TALLY_BYTES);
            assert_eq!(
                RecordTally::decode(&encoded, &[7; 32]),
                Some(tally(periods))
            );
        }
        assert_eq!(tally(9).encode(&[7; 32]), None);
    }

    #[test]
    fn changed_bytes_and_another_secret_are_rejected() {
        let encoded = tally(2).encode(&[7; 32]).unwrap();
        assert_eq!(RecordTally::decode(&encoded, &[8; 32]), None);
        for at in 0..encoded.len() {
            let mut changed = encoded.clone();
            changed[at] ^= 1;
            assert_eq!(RecordTally::decode(&changed, &[7; 32]), None, "{at}");
            assert_eq!(RecordTally::decode(&encoded[..at], &[7; 32]), None, "{at}");
        }
        assert_eq!(
            RecordTally::decode(&[&encoded[..], &[0]].concat(), &[7; 32]),
            None
        );
    }

    #[test]
    fn the_order_of_records_counts() {
        let of = |records: [&[u8]; 2]| {
            let mut period = PeriodTally::default();
            for record in records {
                period.add(record);
            }
            period
        };
        assert_ne!(of([b"a", b"b"]), of([b"b", b"a"]));
    }
}
