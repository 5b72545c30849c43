//! Filter for the resolved addresses of a name.

use std::fmt;
use std::net::IpAddr;

use crate::address::{private_ranges_for, refusal_reason};
use crate::address_range::AddressRange;

/// Returns the addresses to which a guest can connect, in their order: those that are globally
/// reachable or that `opened` contains. The result has at least one address.
///
/// # Errors
///
/// Returns an error if all addresses were refused, or if there were none.
pub fn filter_addresses(
    addresses: &[IpAddr],
    opened: &[AddressRange],
) -> Result<Vec<IpAddr>, AddressesRefused> {
    let mut allowed = Vec::new();
    let mut refused = Vec::new();
    for address in addresses {
        match refusal_reason(*address, opened) {
            None => allowed.push(*address),
            Some(why) => refused.push((*address, why)),
        }
    }
    if allowed.is_empty() {
        Err(AddressesRefused(refused))
    } else {
        Ok(allowed)
    }
}

/// The error for a name all of whose addresses were refused, or that has no addresses.
///
/// The details are only for the operator: with them, a guest could explore the operator's network
/// by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressesRefused(Vec<(IpAddr, &'static str)>);

impl AddressesRefused {
    /// Returns the addresses and the reason why each was refused, in their order. See
    /// [`refusal_reason`].
    pub fn addresses(&self) -> &[(IpAddr, &'static str)] {
        &self.0
    }

    /// Returns the line of TOML under `[permissions]` that opens these addresses and no others, or
    /// `None` if there were no addresses.
    pub fn remedy(&self) -> Option<String> {
        let mut networks: Vec<AddressRange> = Vec::new();
        for network in self
            .0
            .iter()
            .flat_map(|(address, _)| private_ranges_for(*address))
        {
            if !networks.contains(&network) {
                networks.push(network);
            }
        }
        (!networks.is_empty()).then(|| private_ranges_toml(&networks))
    }
}

/// Returns the line of TOML that opens these networks.
pub(crate) fn private_ranges_toml(networks: &[AddressRange]) -> String {
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    format!("private_networks = [\"{}\"]", networks.join("\", \""))
}

/// Formats the number of refused addresses and the reasons, without the addresses: `the 3 addresses
/// were refused: 2 are loopback, 1 is private (RFC 1918)`.
impl fmt::Display for AddressesRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => return f.write_str("the name has no addresses"),
            [(_, why)] => return write!(f, "the only address was refused: it is {why}"),
            all => write!(f, "the {} addresses were refused: ", all.len())?,
        }
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for (_, why) in &self.0 {
            match counts.iter_mut().find(|(counted, _)| counted == why) {
                Some((_, count)) => *count += 1,
                None => counts.push((why, 1)),
            }
        }
        for (index, (why, count)) in counts.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(
                f,
                "{comma}{count} {} {why}",
                if count == 1 { "is" } else { "are" }
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for AddressesRefused {}
