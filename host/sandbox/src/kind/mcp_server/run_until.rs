//! Runs a guest concurrently with the future that reads its output.

use std::pin::pin;
use std::task::Poll;

/// Runs `guest` until `reading` completes. If `is_last` is set, the guest is then dropped.
/// Otherwise, its instance is needed for another request, and the guest runs until it ends.
///
/// If the guest ends before `reading` completes, `missing_reply` provides the result.
pub(super) async fn run_until<T>(
    guest: impl Future<Output = wasmtime::Result<()>>,
    reading: impl Future<Output = wasmtime::Result<T>>,
    is_last: bool,
    missing_reply: impl FnOnce() -> wasmtime::Result<T>,
) -> wasmtime::Result<T> {
    // Exempt `reading` from tokio's cooperative budget: after the guest has ended, nothing wakes it
    // to read the remaining data.
    let mut guest = pin!(guest);
    let mut reading = pin!(tokio::task::unconstrained(reading));
    let mut guest_result = None;
    let mut reply = None;
    let completion = std::future::poll_fn(|context| {
        if guest_result.is_none()
            && let Poll::Ready(result) = guest.as_mut().poll(context)
        {
            guest_result = Some(result);
        }
        if reply.is_none()
            && let Poll::Ready(result) = reading.as_mut().poll(context)
        {
            reply = Some(result);
        }
        let is_done = match &reply {
            Some(Ok(_)) => is_last || guest_result.is_some(),
            Some(Err(_)) => true,
            None => guest_result.is_some(),
        };
        if is_done {
            Poll::Ready((guest_result.take(), reply.take()))
        } else {
            Poll::Pending
        }
    });
    match completion.await {
        // The output is complete, so the guest's own result is irrelevant.
        (_, Some(Ok(reply))) if is_last => Ok(reply),
        (Some(Err(error)), _) | (_, Some(Err(error))) => Err(error),
        (_, Some(Ok(reply))) => Ok(reply),
        (_, None) => missing_reply(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn the_last_reply_counts_however_the_guest_ends() {
        let missing_reply = || wasmtime::bail!("silent");
        assert_eq!(
            run_until(pending(), ready(Ok(1)), true, missing_reply)
                .await
                .unwrap(),
            1
        );
        let trap = || ready(Err(wasmtime::format_err!("trap")));
        assert_eq!(
            run_until(trap(), ready(Ok(1)), true, missing_reply)
                .await
                .unwrap(),
            1
        );
        assert_eq!(
            run_until(trap(), ready(Ok(1)), false, missing_reply)
                .await
                .unwrap_err()
                .to_string(),
            "trap"
        );
        assert_eq!(
            run_until(trap(), pending::<wasmtime::Result<()>>(), true, || Ok(()))
                .await
                .unwrap_err()
                .to_string(),
            "trap"
        );
    }

    #[tokio::test]
    async fn a_guest_that_is_needed_again_runs_to_its_end() {
        let (sender, receiver) = oneshot::channel();
        let guest = async {
            tokio::task::yield_now().await;
            sender.send(()).unwrap();
            Ok(())
        };
        run_until(guest, ready(Ok(())), false, || wasmtime::bail!("silent"))
            .await
            .unwrap();
        assert_eq!(receiver.await, Ok(()));
    }

    #[tokio::test]
    async fn a_guest_that_ends_without_a_reply_is_not_waited_for() {
        let reply: wasmtime::Result<()> =
            run_until(ready(Ok(())), pending(), true, || wasmtime::bail!("silent")).await;
        assert_eq!(reply.unwrap_err().to_string(), "silent");
        let limit: wasmtime::Result<()> = run_until(
            pending(),
            ready(Err(wasmtime::format_err!("limit"))),
            true,
            || Ok(()),
        )
        .await;
        assert_eq!(limit.unwrap_err().to_string(), "limit");
    }
}
