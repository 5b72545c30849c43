//! An address of this machine that the server does not take for the same client as 127.0.0.1.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use anyhow::{Context as _, Result};

/// The addresses of this machine. An address is in the line before the one with its type.
const ADDRESS_TABLE: &str = "/proc/net/fib_trie";

/// Returns an IPv4 address of this machine besides the loopback addresses, all of which are one
/// client. A connection from it also reaches a server on a loopback address. On a machine without a
/// network, gives the loopback interface such an address if this process may.
///
/// # Errors
///
/// There is no such address.
pub fn other_local_address() -> Result<Ipv4Addr> {
    if let Some(address) = find_address(&read_table()?) {
        return Ok(address);
    }
    // A container without a network: the superuser may give its loopback interface another address.
    // Another test may do so at the same time.
    drop(
        Command::new("ip")
            .args(["address", "add", "198.51.100.1/32", "dev", "lo"])
            .output(),
    );
    find_address(&read_table()?).context(
        "this machine has no IPv4 address besides the loopback addresses; to add one: \
         ip address add 198.51.100.1/32 dev lo",
    )
}

fn read_table() -> Result<String> {
    fs::read_to_string(ADDRESS_TABLE).context(ADDRESS_TABLE)
}

fn find_address(table: &str) -> Option<Ipv4Addr> {
    let pairs = table.lines().zip(table.lines().skip(1));
    let local = pairs.filter(|(_, kind)| kind.trim() == "/32 host LOCAL");
    let mut addresses = local.filter_map(|(address, _)| {
        address
            .trim()
            .strip_prefix("|-- ")?
            .parse::<Ipv4Addr>()
            .ok()
    });
    addresses.find(|address| !address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_machine_is_found() {
        let table = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     \
                     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 192.0.2.0\n        /24 link UNICAST\n     \
                     |-- 192.0.2.2\n        /32 host LOCAL\n     |-- 192.0.2.255\n        /32 link BROADCAST\n";
        assert_eq!(find_address(table), Some(Ipv4Addr::new(192, 0, 2, 2)));
        assert_eq!(
            find_address(&table.replace("192.0.2.2\n", "127.0.0.2\n")),
            None
        );
        assert_eq!(find_address(""), None);
    }
}
