//! Lookup of names in `/etc/hosts`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::IpAddr;

const FILE: &str = "/etc/hosts";

/// Returns the addresses that the file lists for a name, in its order. As for `getaddrinfo`, the
/// result is empty if the file cannot be read.
pub(crate) fn lookup(name: &str) -> Vec<IpAddr> {
    File::open(FILE)
        .and_then(|file| find_addresses(BufReader::new(file), name))
        .unwrap_or_default()
}

fn find_addresses(mut file: impl BufRead, name: &str) -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line)? == 0 {
            return Ok(found);
        }
        let Some(address) = parse_line(&line, name) else {
            continue;
        };
        if !found.contains(&address) {
            found.push(address);
        }
    }
}

/// Returns the address of a line (`ADDRESS NAME… # COMMENT`) that lists the name.
fn parse_line(line: &[u8], name: &str) -> Option<IpAddr> {
    let line = std::str::from_utf8(line.split(|byte| *byte == b'#').next()?).ok()?;
    let mut words = line.split_ascii_whitespace();
    let address = words.next()?;
    words
        .any(|word| word.eq_ignore_ascii_case(name))
        .then_some(())?;
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::find_addresses;

    const FILE: &[u8] = b"127.0.0.1\tlocalhost\n\
        10.0.0.1 first.example Second.example # third.example\r\n\
        # 10.0.0.2 first.example\n\
        \xff 10.0.0.3 first.example\n\
        nonsense first.example\n\
        fd00::1 first.example\n\
        10.0.0.1 first.example\n\
        first.example\n\
        10.0.0.4";

    #[test]
    fn a_name_has_the_addresses_of_its_lines() {
        let addresses = |name| -> Vec<String> {
            find_addresses(FILE, name)
                .unwrap()
                .iter()
                .map(std::net::IpAddr::to_string)
                .collect()
        };
        assert_eq!(addresses("first.example"), ["10.0.0.1", "fd00::1"]);
        assert_eq!(addresses("second.example"), ["10.0.0.1"]);
        for none in [
            "third.example",
            "example",
            "first.example.",
            "10.0.0.4",
            "10.0.0.1",
            "",
        ] {
            assert!(addresses(none).is_empty(), "{none}");
        }
    }
}
