//! Runs a guest concurrently with the future that reads its output.

use std::pin::pin;
use std::task::Poll;

/// Runs `guest` until `reading` completes. If `is_last` is set, the guest is then dropped.
/// Otherwise, its instance is needed for another request, and the guest runs until it ends.
///
/// If the guest ends before `reading` completes, `missing_reply` provides the result.
pub(super) async fn run_until<T>(
    guest: impl Future<Output = wasmtime::Result<()>>,
    listening: impl Future<Output = wasmtime::Result<T>>,
    last: bool,
    silent: impl FnOnce() -> wasmtime::Result<T>,
) -> wasmtime::Result<T> {
    // Exempt `reading` from tokio's cooperative budget: after the guest has ended, nothing wakes it
    // to read the remaining data.
    let mut guest = pin!(guest);
    let mut listening = pin!(tokio::task::unconstrained(listening));
    let mut ended = None;
    let mut heard = None;
    let done = std::future::poll_fn(|context| {
        if ended.is_none()
            && let Poll::Ready(result) = guest.as_mut().poll(context)
        {
            ended = Some(result);
        }
        if heard.is_none()
            && let Poll::Ready(result) = listening.as_mut().poll(context)
        {
            heard = Some(result);
        }
        let is_done = match &heard {
            Some(Ok(_)) => last || ended.is_some(),
            Some(Err(_)) => true,
            None => ended.is_some(),
        };
        if is_done {
            Poll::Ready((ended.take(), heard.take()))
        } else {
            Poll::Pending
        }
    });
    match done.await {
        // The output is complete, so the guest's own result is irrelevant.
        (_, Some(Ok(heard))) if last => Ok(heard),
        (Some(Err(error)), _) | (_, Some(Err(error))) => Err(error),
        (_, Some(Ok(heard))) => Ok(heard),
        (_, None) => silent(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn the_last_reply_counts_however_the_guest_ends() {
        let silent = || wasmtime::bail!("silent");
        assert_eq!(
            run_until(pending(), ready(Ok(1)), true, silent)
                .await
                .unwrap(),
            1
        );
        let trap = || ready(Err(wasmtime::format_err!("trap")));
        assert_eq!(
            run_until(trap(), ready(Ok(1)), true, silent).await.unwrap(),
            1
        );
        assert_eq!(
            run_until(trap(), ready(Ok(1)), false, silent)
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
        let heard: wasmtime::Result<()> =
            run_until(ready(Ok(())), pending(), true, || wasmtime::bail!("silent")).await;
        assert_eq!(heard.unwrap_err().to_string(), "silent");
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
