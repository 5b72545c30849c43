//! The record of a budget: the usage of a day, and the reservations of running calls.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytesize::ByteSize;
use toolbay_catalog::GrantBudget;
use toolbay_model::{CallUsage, RejectionReason};
use toolbay_sandbox::PluginContext;

/// Seconds of a day.
const DAY_SECONDS: u64 = 86_400;

/// Days for which a record is kept after its day. A clock that is ahead by less renews no budget
/// when it is set back.
const KEPT_DAYS: u64 = 7;

/// The record of a budget on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UsedBudget {
    /// The day, in days since 1970.
    pub(super) day: u64,
    /// Number of calls that began.
    pub(super) calls: u64,
    /// Fuel of the calls that have ended.
    pub(super) fuel: u64,
    /// Bytes that these calls sent and received.
    pub(super) network_bytes: u64,
    /// Fuel that calls may use which have not ended, or whose end was not recorded.
    pub(super) reserved_fuel: u64,
    /// Bytes that these calls may send and receive.
    pub(super) reserved_bytes: u64,
}

/// The most that one call can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallMaximum {
    fuel: u64,
    http_bytes: u64,
    tcp_bytes: u64,
}

impl CallMaximum {
    /// Returns the maximum that the limits and permissions of a call allow.
    pub(super) fn of_context(context: &PluginContext) -> Self {
        let limits = &context.limits;
        let permissions = &context.permissions;
        let bytes = |is_permitted: bool, limit: ByteSize| {
            if is_permitted { limit.as_u64() } else { 0 }
        };
        Self {
            fuel: limits.fuel,
            http_bytes: bytes(!permissions.http.is_empty(), limits.http_bytes),
            tcp_bytes: bytes(!permissions.tcp.is_empty(), limits.tcp_bytes),
        }
    }

    /// Returns the part of this maximum that does not exceed these amounts. HTTP and TCP share the
    /// bytes in the proportion of their limits.
    fn within(self, fuel: u64, network_bytes: u64) -> Self {
        let fuel = self.fuel.min(fuel);
        let total = self.network_bytes();
        if network_bytes >= total {
            return Self { fuel, ..self };
        }
        let share = u128::from(self.http_bytes) * u128::from(network_bytes) / u128::from(total);
        let http_bytes = u64::try_from(share).unwrap_or(network_bytes);
        Self {
            fuel,
            http_bytes,
            tcp_bytes: network_bytes.saturating_sub(http_bytes),
        }
    }

    fn network_bytes(self) -> u64 {
        self.http_bytes.saturating_add(self.tcp_bytes)
    }

    /// Returns the context of a call that can use no more than this.
    pub(super) fn restrict(self, context: &PluginContext) -> PluginContext {
        let mut context = context.clone();
        context.limits.fuel = self.fuel;
        context.limits.http_bytes = ByteSize::b(self.http_bytes);
        context.limits.tcp_bytes = ByteSize::b(self.tcp_bytes);
        context
    }
}

impl UsedBudget {
    /// Parses a record. Returns `None` if it is damaged; without a record, nothing is used.
    pub(super) fn parse(value: Option<&[u8]>) -> Option<Self> {
        let Some(value) = value else {
            return Some(Self::default());
        };
        let numbers: Option<Vec<u64>> = std::str::from_utf8(value)
            .ok()?
            .split(' ')
            .map(|number| number.parse().ok())
            .collect();
        let [
            day,
            calls,
            fuel,
            network_bytes,
            reserved_fuel,
            reserved_bytes,
        ] = numbers?.try_into().ok()?;
        Some(Self {
            day,
            calls,
            fuel,
            network_bytes,
            reserved_fuel,
            reserved_bytes,
        })
    }

    /// Returns the text of the record. All records have the same size, so that a record can also be
    /// changed when the state has reached `state.size`.
    pub(super) fn to_text(self) -> String {
        let Self {
            day,
            calls,
            fuel,
            network_bytes,
            reserved_fuel,
            reserved_bytes,
        } = self;
        let numbers = [
            day,
            calls,
            fuel,
            network_bytes,
            reserved_fuel,
            reserved_bytes,
        ];
        numbers.map(|number| format!("{number:020}")).join(" ")
    }

    /// Returns the record of this day. If the clock was set back, the later day counts.
    pub(super) fn on_day(self, day: u64) -> Self {
        if self.day >= day {
            self
        } else {
            Self {
                day,
                ..Self::default()
            }
        }
    }

    /// Returns whether the stored record can be deleted on this day. A damaged one is kept, because
    /// the usage is unknown.
    pub(super) fn is_expired(value: &[u8], today: u64) -> bool {
        Self::parse(Some(value)).is_some_and(|used| used.day.saturating_add(KEPT_DAYS) < today)
    }

    /// Reserves the maximum of a call, or the rest of the budget if that is less. Returns the new
    /// record and the reserved amount. `is_new` is false if the call continues after a question.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is no rest.
    pub(super) fn reserve(
        self,
        budget: &GrantBudget,
        most: CallMaximum,
        is_new: bool,
    ) -> Result<(Self, CallMaximum), RejectionReason> {
        if let Some(amount) = budget.calls.filter(|_| is_new)
            && self.calls >= amount
        {
            let key = "budget.calls";
            return Err(RejectionReason::BudgetUsed { key, amount });
        }
        let bytes = budget.network_bytes.map(|bytes| bytes.as_u64());
        let fuel_left = left(
            "budget.fuel",
            budget.fuel,
            (self.fuel, self.reserved_fuel),
            most.fuel,
        )?;
        let bytes_left = left(
            "budget.network_bytes",
            bytes,
            (self.network_bytes, self.reserved_bytes),
            most.network_bytes(),
        )?;
        let reserved = most.within(fuel_left, bytes_left);
        let record = Self {
            calls: self.calls.saturating_add(u64::from(is_new)),
            reserved_fuel: self.reserved_fuel.saturating_add(reserved.fuel),
            reserved_bytes: self.reserved_bytes.saturating_add(reserved.network_bytes()),
            ..self
        };
        Ok((record, reserved))
    }

    /// Replaces the reservation of a call by its usage.
    pub(super) fn settle(self, reserved: CallMaximum, usage: &CallUsage) -> Self {
        let bytes = usage.http_bytes.saturating_add(usage.tcp_bytes);
        Self {
            fuel: self.fuel.saturating_add(usage.fuel),
            network_bytes: self.network_bytes.saturating_add(bytes),
            reserved_fuel: self.reserved_fuel.saturating_sub(reserved.fuel),
            reserved_bytes: self.reserved_bytes.saturating_sub(reserved.network_bytes()),
            ..self
        }
    }
}

/// Returns the rest of an amount for a call that can use `most`.
fn left(
    key: &'static str,
    amount: Option<u64>,
    (used, reserved): (u64, u64),
    most: u64,
) -> Result<u64, RejectionReason> {
    let Some(amount) = amount else {
        return Ok(u64::MAX);
    };
    let unused = amount.saturating_sub(used);
    if unused == 0 {
        return Err(RejectionReason::BudgetUsed { key, amount });
    }
    let left = unused.saturating_sub(reserved);
    if left == 0 && most > 0 {
        return Err(RejectionReason::BudgetReserved { key, amount });
    }
    Ok(left)
}

fn unix_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// Returns the current day, in days since 1970.
pub(super) fn today() -> u64 {
    unix_seconds() / DAY_SECONDS
}

pub(super) fn time_until_midnight() -> Duration {
    Duration::from_secs(DAY_SECONDS - unix_seconds() % DAY_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: CallMaximum = CallMaximum {
        fuel: 40,
        http_bytes: 20,
        tcp_bytes: 10,
    };

    fn fuel(fuel: u64) -> GrantBudget {
        GrantBudget {
            fuel: Some(fuel),
            ..GrantBudget::default()
        }
    }

    fn bytes(bytes: u64) -> GrantBudget {
        GrantBudget {
            network_bytes: Some(ByteSize::b(bytes)),
            ..GrantBudget::default()
        }
    }

    fn reason(result: Result<(UsedBudget, CallMaximum), RejectionReason>) -> &'static str {
        match result.unwrap_err() {
            RejectionReason::BudgetUsed { .. } => "used",
            RejectionReason::BudgetReserved { .. } => "reserved",
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_damaged_one_is_not_empty() {
        let used = UsedBudget {
            day: 20_000,
            calls: 3,
            fuel: u64::MAX,
            network_bytes: 7,
            reserved_fuel: 1,
            reserved_bytes: 0,
        };
        let text = used.to_text();
        assert_eq!(UsedBudget::parse(Some(text.as_bytes())), Some(used));
        assert_eq!(text.len(), UsedBudget::default().to_text().len());
        assert_eq!(UsedBudget::parse(None), Some(UsedBudget::default()));
        for damaged in [
            "",
            "1 2 3 4 5",
            "1 2 3 4 5 6 7",
            "1 2 3 4 5 x",
            "-1 2 3 4 5 6",
            "1  2 3 4 5",
        ] {
            let value = Some(damaged.as_bytes());
            assert_eq!(UsedBudget::parse(value), None, "{damaged}");
            assert!(!UsedBudget::is_expired(damaged.as_bytes(), u64::MAX));
        }
    }

    #[test]
    fn a_new_day_renews_the_budget_and_a_clock_that_is_set_back_does_not() {
        let used = UsedBudget {
            day: 10,
            calls: 3,
            ..UsedBudget::default()
        };
        assert_eq!(used.on_day(10), used);
        assert_eq!(used.on_day(9), used);
        assert_eq!(used.on_day(11).calls, 0);
        let is_expired = |today| UsedBudget::is_expired(used.to_text().as_bytes(), today);
        assert!(!is_expired(0) && !is_expired(10) && !is_expired(10 + KEPT_DAYS));
        assert!(is_expired(11 + KEPT_DAYS));
    }

    #[test]
    fn calls_that_run_at_once_cannot_use_more_than_the_budget_together() {
        let (one, first) = UsedBudget::default()
            .reserve(&fuel(50), MOST, true)
            .unwrap();
        assert_eq!(first, MOST);
        let (two, second) = one.reserve(&fuel(50), MOST, true).unwrap();
        assert_eq!((second.fuel, two.reserved_fuel), (10, 50));
        assert_eq!(reason(two.reserve(&fuel(50), MOST, true)), "reserved");
        // The first call returns the unused part.
        let usage = CallUsage {
            fuel: 15,
            ..CallUsage::default()
        };
        let after = two.settle(first, &usage);
        assert_eq!((after.fuel, after.reserved_fuel), (15, 10));
        let (last, third) = after.reserve(&fuel(50), MOST, true).unwrap();
        assert_eq!((third.fuel, last.calls), (25, 3));
        let all = CallUsage {
            fuel: 25,
            ..CallUsage::default()
        };
        let rest = CallUsage {
            fuel: 10,
            ..CallUsage::default()
        };
        let spent = last.settle(third, &all).settle(second, &rest);
        assert_eq!((spent.fuel, spent.reserved_fuel), (50, 0));
        assert_eq!(reason(spent.reserve(&fuel(50), MOST, false)), "used");
    }

    #[test]
    fn http_and_tcp_share_what_is_left_of_the_bytes() {
        let (used, reserved) = UsedBudget::default()
            .reserve(&bytes(3), MOST, true)
            .unwrap();
        assert_eq!((reserved.http_bytes, reserved.tcp_bytes), (2, 1));
        assert_eq!(reason(used.reserve(&bytes(3), MOST, true)), "reserved");
        let usage = CallUsage {
            http_bytes: 2,
            tcp_bytes: 1,
            ..CallUsage::default()
        };
        let spent = used.settle(reserved, &usage);
        assert_eq!(reason(spent.reserve(&bytes(3), MOST, true)), "used");
        // A call without network reserves nothing of it.
        let offline = CallMaximum {
            http_bytes: 0,
            tcp_bytes: 0,
            ..MOST
        };
        assert!(used.reserve(&bytes(3), offline, true).is_ok());
        let huge = CallMaximum {
            fuel: 1,
            http_bytes: u64::MAX,
            tcp_bytes: u64::MAX,
        };
        let (_, part) = UsedBudget::default()
            .reserve(&bytes(u64::MAX - 1), huge, true)
            .unwrap();
        assert_eq!(part.network_bytes(), u64::MAX - 1);
    }

    #[test]
    fn a_call_that_continues_is_not_counted_again() {
        let budget = GrantBudget {
            calls: Some(1),
            ..GrantBudget::default()
        };
        let (one, _) = UsedBudget::default().reserve(&budget, MOST, true).unwrap();
        assert_eq!(reason(one.reserve(&budget, MOST, true)), "used");
        let (again, _) = one.reserve(&budget, MOST, false).unwrap();
        assert_eq!(again.calls, 1);
    }
}
