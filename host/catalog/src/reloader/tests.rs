//! Tests of `reloader`.

use super::*;

#[test]
fn the_pause_between_retries_grows_to_a_maximum() {
    let mut retry = None;
    let pauses: Vec<u64> = (0..12)
        .map(|_| {
            let next = ScheduledRetry::after(retry);
            retry = Some(next);
            next.pause.as_secs()
        })
        .collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
}
