//! Cache of rendered metrics, shared by concurrent requests.
//!
//! Rendering takes time, so only one task renders at once. Its result serves all requests that
//! arrived before it started. This holds for any number of concurrent requests, even if their
//! clients disconnect.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};

use crate::host::interface::MetricsForm;

/// Time that a request waits for its response. A file system can hang.
const METRICS_TIMEOUT: Duration = Duration::from_secs(10);

/// The most recently rendered metrics.
#[derive(Debug)]
pub(super) struct MetricsCache {
    last: Arc<Mutex<Option<MetricsPage>>>,
    timeout: Duration,
}

/// Metrics as text.
#[derive(Debug)]
struct MetricsPage {
    form: MetricsForm,
    /// When rendering started. The text includes everything counted before.
    began: Instant,
    text: Bytes,
}

impl Default for MetricsCache {
    fn default() -> Self {
        Self {
            last: Arc::default(),
            timeout: METRICS_TIMEOUT,
        }
    }
}

impl MetricsCache {
    /// Returns metrics rendered after this call, or `None` if they are not available in time.
    pub(super) async fn get_or_render<W>(
        &self,
        form: MetricsForm,
        write: impl FnOnce() -> W + Send + 'static,
    ) -> Option<Bytes>
    where
        W: Future<Output = Option<Bytes>> + Send + 'static,
    {
        let arrived = Instant::now();
        let deadline = arrived + self.timeout;
        let last = timeout_at(deadline, Arc::clone(&self.last).lock_owned())
            .await
            .ok()?;
        if let Some(page) = last
            .as_ref()
            .filter(|page| page.form == form && page.began > arrived)
        {
            return Some(page.text.clone());
        }
        // A separate task: the client may disconnect, and no second task may start meanwhile.
        let writing = tokio::spawn(render_and_store(last, form, async move { write().await }));
        timeout_at(deadline, writing).await.ok()?.ok()?
    }
}

/// Renders the metrics and stores them for the requests that wait.
async fn render_and_store(
    mut last: OwnedMutexGuard<Option<MetricsPage>>,
    form: MetricsForm,
    writing: impl Future<Output = Option<Bytes>>,
) -> Option<Bytes> {
    let began = Instant::now();
    let text = writing.await?;
    *last = Some(MetricsPage {
        form,
        began,
        text: text.clone(),
    });
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    const FORM: MetricsForm = MetricsForm::Prometheus;

    #[tokio::test]
    async fn all_who_ask_at_once_get_what_is_written_twice_at_most() {
        let scrapes = MetricsCache::default();
        let written = Arc::new(AtomicUsize::new(0));
        let read = |form| {
            let written = Arc::clone(&written);
            scrapes.get_or_render(form, move || async move {
                tokio::task::yield_now().await;
                Some(Bytes::from(
                    written.fetch_add(1, Ordering::Relaxed).to_string(),
                ))
            })
        };
        let all = join_all((0..1000).map(|_| read(FORM))).await;
        assert!(all.iter().all(Option::is_some));
        assert!(written.load(Ordering::Relaxed) <= 2, "{written:?}");
        // A later request gets newer counts.
        let before = written.load(Ordering::Relaxed).to_string();
        assert_eq!(read(FORM).await.unwrap(), before);
        assert_ne!(read(MetricsForm::OpenMetrics).await.unwrap(), before);
    }

    #[tokio::test]
    async fn one_that_hangs_keeps_nobody_waiting_for_ever() {
        let scrapes = MetricsCache {
            timeout: Duration::from_millis(1),
            ..MetricsCache::default()
        };
        assert_eq!(
            scrapes.get_or_render(FORM, pending::<Option<Bytes>>).await,
            None
        );
        assert_eq!(
            scrapes
                .get_or_render(FORM, || ready(Some(Bytes::new())))
                .await,
            None,
            "none begins beside it"
        );
    }

    #[tokio::test]
    async fn whoever_leaves_leaves_the_rest_to_the_next() {
        let scrapes = MetricsCache::default();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let left = scrapes.get_or_render(FORM, move || async move {
            ended.await.ok()?;
            Some(Bytes::from("left"))
        });
        timeout_at(Instant::now(), left).await.unwrap_err();
        end.send(()).unwrap();
        assert_eq!(
            scrapes
                .get_or_render(FORM, || ready(Some(Bytes::from("next"))))
                .await
                .unwrap(),
            "next"
        );
        assert_eq!(scrapes.get_or_render(FORM, || ready(None)).await, None);
        assert_eq!(
            scrapes
                .get_or_render(FORM, || ready(Some(Bytes::from("again"))))
                .await
                .unwrap(),
            "again"
        );
    }
}
