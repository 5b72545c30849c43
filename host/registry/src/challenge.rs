//! The header `WWW-Authenticate`, with which a registry says how it wants to be asked.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// How a registry wants to be asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// With a name and a password in each request.
    Basic,
    /// With a token that another service gives.
    Bearer {
        /// URL of the service, not checked.
        realm: String,
        /// The name of the registry there.
        service: Option<String>,
    },
}

impl Challenge {
    /// Returns the challenge of an answer with status 401: that for a token, if there are several.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let texts = headers.get_all(WWW_AUTHENTICATE).into_iter();
        let all: Vec<Self> = texts
            .filter_map(|value| Self::parse(value.to_str().ok()?))
            .collect();
        let is_bearer = |one: &Self| matches!(one, Self::Bearer { .. });
        let chosen = all.iter().position(is_bearer).unwrap_or(0);
        all.into_iter().nth(chosen)
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        let mut rest = rest;
        while let Some((key, after)) = rest.split_once('=') {
            let (value, after) = read_value(after.trim_start())?;
            match key.trim_matches([' ', ',']).to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                _ => {}
            }
            rest = after;
        }
        Some(Self::Bearer {
            realm: realm?,
            service,
        })
    }
}

/// Reads a token or a quoted text. Returns it with what follows.
fn read_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end)?;
        return Some((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return Some((value, quoted.get(index + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>) -> Challenge {
        Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
        }
    }

    #[test]
    fn challenges_are_parsed() {
        for (text, expected) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://a.example.com/token\",service=\"a\",scope=\"repository:x:pull,push\"",
                Some(bearer("https://a.example.com/token", Some("a"))),
            ),
            (
                "bearer scope=\"a,b=c\", REALM=https://a.example.com/t",
                Some(bearer("https://a.example.com/t", None)),
            ),
            (r#"Bearer realm="a\"b""#, Some(bearer("a\"b", None))),
            ("Bearer realm=\"open", None),
            ("Bearer service=\"a\"", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_token_is_preferred() {
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, "Basic realm=\"x\"".parse().unwrap());
        headers.append(WWW_AUTHENTICATE, "Bearer realm=\"y\"".parse().unwrap());
        assert_eq!(Challenge::read(&headers), Some(bearer("y", None)));
        assert_eq!(Challenge::read(&HeaderMap::new()), None);
    }
}
