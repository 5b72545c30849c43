//! URIs of stored results: `toolbay://results/ID`, one of its parts, or some bytes of a part.

use std::fmt;

/// Prefix of every address.
const URI_PREFIX: &str = "toolbay://results/";

/// Number of random bytes of an address, so that it cannot be guessed.
const ID_BYTES: usize = 16;

/// The address of a result: `toolbay://results/` and 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultAddress {
    id: String,
}

/// The portion of a result to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResultPortion {
    /// Index of the part, from 0; `None` for all parts.
    pub(crate) part: Option<usize>,
    /// Number of bytes to skip.
    pub(crate) offset: Option<usize>,
    /// Maximum number of bytes to read.
    pub(crate) length: Option<usize>,
}

impl ResultAddress {
    /// Creates an address. Returns `None` if the system provides no random bytes.
    pub(crate) fn new() -> Option<Self> {
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).ok()?;
        Some(Self {
            id: hex::encode(random),
        })
    }

    /// Parses the address at the beginning of `uri`, and the portion that follows it. The portion
    /// is `None` if it is invalid. Returns `None` if `uri` does not start with an address.
    pub(crate) fn parse(uri: &str) -> Option<(Self, Option<ResultPortion>)> {
        let rest = uri.strip_prefix(URI_PREFIX)?;
        let (path, query) = rest
            .split_once('?')
            .map_or((rest, None), |(path, query)| (path, Some(query)));
        let (id, part) = path
            .split_once('/')
            .map_or((path, None), |(id, part)| (id, Some(part)));
        if id.len() != ID_BYTES * 2
            || !id
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return None;
        }
        Some((
            Self { id: id.to_owned() },
            ResultPortion::parse(part, query),
        ))
    }

    /// Returns the unique part of the address.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the URI of one part.
    pub(crate) fn part_uri(&self, part: usize) -> String {
        format!("{self}/{part}")
    }
}

impl ResultPortion {
    /// Parses the path after the address, and the query.
    fn parse(part: Option<&str>, query: Option<&str>) -> Option<Self> {
        let part = match part {
            Some(part) => Some(parse_digits(part)?),
            None => None,
        };
        let mut portion = ResultPortion {
            part,
            ..ResultPortion::default()
        };
        for (key, value) in query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .map(|pair| pair.split_once('='))
            .collect::<Option<Vec<_>>>()?
        {
            let place = match key {
                "offset" => &mut portion.offset,
                "length" => &mut portion.length,
                _ => return None,
            };
            if place.replace(parse_digits(value)?).is_some() {
                return None;
            }
        }
        Some(portion)
    }
}

/// Writes the URI.
impl fmt::Display for ResultAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{URI_PREFIX}{}", self.id)
    }
}

/// Parses decimal digits only. A sign or a space would be another spelling of the same number.
fn parse_digits(text: &str) -> Option<usize> {
    text.parse()
        .ok()
        .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let address = ResultAddress::new().unwrap();
        assert_eq!(
            ResultAddress::parse(&address.to_string()),
            Some((address.clone(), Some(ResultPortion::default())))
        );
        let second = ResultPortion {
            part: Some(1),
            ..ResultPortion::default()
        };
        assert_eq!(
            ResultAddress::parse(&address.part_uri(1)),
            Some((address.clone(), Some(second)))
        );
        let some = ResultPortion {
            offset: Some(7),
            length: Some(100),
            ..second
        };
        assert_eq!(
            ResultAddress::parse(&format!("{address}/1?length=100&offset=7")),
            Some((address, Some(some)))
        );
    }

    #[test]
    fn anything_else_is_no_address() {
        let id = "0123456789abcdef0123456789abcdef";
        for other in [
            String::new(),
            "toolbay://results".to_owned(),
            "toolbay://results/".to_owned(),
            format!("toolbay://result/{id}"),
            format!("toolbay://results/{}", &id[1..]),
            format!("toolbay://results/{id}0"),
            format!("toolbay://results/{}", id.to_uppercase()),
            format!("toolbay://results/{id}#x"),
        ] {
            assert_eq!(ResultAddress::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn an_invalid_portion_is_not_parsed() {
        let id = "0123456789abcdef0123456789abcdef";
        for other in [
            format!("toolbay://results/{id}/"),
            format!("toolbay://results/{id}/x"),
            format!("toolbay://results/{id}/1/2"),
            format!("toolbay://results/{id}/+1"),
            format!("toolbay://results/{id}?"),
            format!("toolbay://results/{id}?offset"),
            format!("toolbay://results/{id}?offset="),
            format!("toolbay://results/{id}?offset=-1"),
            format!("toolbay://results/{id}?offset=99999999999999999999"),
            format!("toolbay://results/{id}?offset=1&offset=2"),
            format!("toolbay://results/{id}?limit=1"),
        ] {
            assert_eq!(ResultAddress::parse(&other).unwrap().1, None, "{other}");
        }
    }
}
