//! Tests of `byte_budget`.

use std::thread;

use super::*;

#[test]
fn a_reservation_that_grew_is_released_as_a_whole() {
    let budget = ByteBudget::new(10);
    let mut reservation = budget.empty_reservation();
    reservation.grow(4).unwrap();
    reservation.try_grow(6).unwrap();
    assert_eq!(reservation.grow(1), Err(BudgetExhausted));
    assert_eq!(reservation.try_grow(usize::MAX), Err(BudgetExhausted));
    assert_eq!(
        (reservation.bytes(), budget.used()),
        (10, 10),
        "growth that fails keeps what was reserved"
    );
    drop(reservation);
    budget.charge(10).unwrap();
}

#[test]
fn what_is_dropped_can_be_held_again() {
    let budget = ByteBudget::of_size(ByteSize::b(10));
    budget.charge(4).unwrap();
    let held = budget.reserve(6).unwrap();
    assert!(budget.charge(1).is_err());
    assert!(budget.is_exceeded());
    drop(held);
    budget.charge(6).unwrap();
    assert_eq!(budget.peak(), 10);
    assert!(budget.charge(usize::MAX).is_err(), "no overflow");
}

#[test]
fn there_is_room_for_what_is_kept_and_for_what_takes_its_place() {
    let budget = ByteBudget::new(10);
    let one = budget.reserve_successor(None, 6).unwrap();
    assert_eq!(
        budget.reserve_successor(None, 5).unwrap_err(),
        BudgetExhausted
    );
    let two = budget.reserve_successor(None, 4).unwrap();
    let larger = budget.reserve_successor(Some(&one), 6).unwrap();
    assert!(
        budget.reserve_successor(Some(&one), 7).is_err()
            && budget.reserve_successor(Some(&one), usize::MAX).is_err()
    );
    let other = ByteBudget::new(10).reserve(10).unwrap();
    assert!(
        budget.reserve_successor(Some(&other), 1).is_err(),
        "what another budget holds makes no room in this one"
    );
    drop(one);
    assert!(budget.reserve_successor(None, 1).is_err());
    drop((two, larger));
    assert_eq!(budget.used(), 0);
}

#[test]
fn nothing_always_fits_and_a_budget_of_nothing_has_room_for_nothing_else() {
    let budget = ByteBudget::new(0);
    let nothing = budget.reserve(0).unwrap();
    assert!(budget.try_charge(1).is_err() && !budget.is_exceeded());
    assert!(budget.reserve(1).is_err() && budget.is_exceeded());
    drop(nothing);
    assert_eq!((budget.used(), budget.peak(), budget.limit()), (0, 0, 0));
    let endless = ByteBudget::of_size(ByteSize(u64::MAX));
    let all = endless.reserve(usize::MAX).unwrap();
    assert!(endless.try_charge(1).is_err(), "no overflow");
    endless.charge(0).unwrap();
    drop(all);
    assert_eq!(endless.used(), 0);
}

#[test]
fn a_reservation_shrinks_to_nothing_at_most() {
    let budget = ByteBudget::new(10);
    let mut reservation = budget.reserve(8).unwrap();
    reservation.shrink(3);
    assert_eq!((reservation.bytes(), budget.used()), (5, 5));
    reservation.shrink(9);
    assert_eq!((reservation.bytes(), budget.used()), (0, 0));
    drop(reservation);
    assert_eq!((budget.used(), budget.peak()), (0, 8));
}

#[test]
fn reservations_are_released_in_any_order_and_outlive_the_budget() {
    let budget = ByteBudget::new(6);
    let clone = budget.clone();
    let [first, second, third] = [1, 2, 3].map(|bytes| budget.reserve(bytes).unwrap());
    drop(second);
    assert_eq!(clone.used(), 4);
    drop(budget);
    drop(first);
    assert_eq!(clone.used(), 3);
    drop(third);
    assert_eq!(clone.used(), 0);
}

#[test]
fn many_threads_never_hold_more_than_there_is() {
    let budget = ByteBudget::new(100);
    thread::scope(|scope| {
        for bytes in 1..=4 {
            let budget = budget.clone();
            scope.spawn(move || {
                for _ in 0..2_000 {
                    let mut held: Vec<_> =
                        (0..20).map_while(|_| budget.reserve(bytes).ok()).collect();
                    if let Some(last) = held.last_mut() {
                        let _ = last.try_grow(7);
                        last.shrink(1);
                    }
                    assert!(budget.used() <= 100);
                }
            });
        }
    });
    assert_eq!(budget.used(), 0);
    assert!(budget.peak() <= 100 && budget.peak() > 0);
    budget.charge(100).unwrap();
}
