//! Cache of encoded list pages. Each page is encoded once, and shared by all callers that see the
//! same list.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};
use toolbay_model::{JsonText, SchemaForm};

use crate::lists::list_kind::ListKind;
use crate::lists::list_state::CallerView;
use crate::protocol::revision::Revision;

/// Capacity of the cache, in bytes. The server has one cache, regardless of the number of clients.
const MAX_CACHED_BYTES: usize = 32 << 20;

/// Maximum number of cached pages: enough for every revision, and for dozens of distinct rights.
const MAX_CACHED_PAGES: usize = 512;

/// Encoded pages of the current lists.
#[derive(Default)]
pub(crate) struct PageCache {
    cached: Mutex<CachedPages>,
    /// Only one page is encoded at a time: after a change, a thousand clients request the same
    /// page.
    encoding_lock: AsyncMutex<()>,
}

#[derive(Default)]
struct CachedPages {
    /// Version number of the lists. Pages of older versions are evicted.
    version: u64,
    /// The most recently used page is last.
    pages: Vec<(PageKey, Arc<CachedPage>)>,
}

/// Cache key of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageKey {
    list: ListKind,
    /// The digest of the list that the caller can see, see [`CallerView`].
    digest: u64,
    revision: Revision,
    schemas: SchemaForm,
    /// The name or URI of the last item before the page.
    after: Option<String>,
}

/// An encoded page.
#[derive(Debug)]
pub(crate) struct CachedPage {
    /// The items, as an array.
    pub(crate) items: JsonText,
    /// The name or URI of the last item, if there are more items.
    pub(crate) next: Option<String>,
}

impl PageKey {
    pub(crate) fn new(
        list: ListKind,
        view: CallerView,
        (revision, schemas): (Revision, SchemaForm),
        after: Option<&str>,
    ) -> Self {
        Self {
            list,
            digest: list.digest(view),
            revision,
            schemas,
            after: after.map(str::to_owned),
        }
    }

    /// Returns whether this page directly follows the page with `key`.
    fn follows(&self, key: &Self, page: &CachedPage) -> bool {
        let is_same_list = (self.list, self.digest, self.revision, self.schemas)
            == (key.list, key.digest, key.revision, key.schemas);
        is_same_list && self.after.is_some() && self.after == page.next
    }
}

impl PageCache {
    /// Returns the page, if it is cached.
    pub(crate) fn get(&self, key: &PageKey) -> Option<Arc<CachedPage>> {
        let mut cached = self.cached_pages();
        let index = cached
            .pages
            .iter()
            .position(|(cached_key, _)| cached_key == key)?;
        let entry = cached.pages.remove(index);
        let page = Arc::clone(&entry.1);
        cached.pages.push(entry);
        Some(page)
    }

    /// Acquires the right to encode a page. The requested page may have been cached in the
    /// meantime.
    pub(crate) async fn lock_encoding(&self) -> AsyncMutexGuard<'_, ()> {
        self.encoding_lock.lock().await
    }

    /// Caches a page of the lists with this version number. Evicts the least recently used pages if
    /// the cache is full, and all pages of older lists. Except for a first page, a page is cached
    /// only if the one before it is: a client can make up any number of cursors.
    pub(crate) fn insert(&self, version: u64, key: PageKey, page: Arc<CachedPage>) {
        let mut cached = self.cached_pages();
        if version < cached.version || page.size() > MAX_CACHED_BYTES {
            return;
        }
        if version > cached.version {
            *cached = CachedPages {
                version,
                pages: Vec::new(),
            };
        }
        if key.after.is_some()
            && !cached
                .pages
                .iter()
                .any(|(cached_key, cached_page)| key.follows(cached_key, cached_page))
        {
            return;
        }
        cached.pages.retain(|(cached_key, _)| *cached_key != key);
        cached.pages.push((key, page));
        let mut bytes: usize = cached.pages.iter().map(|(_, page)| page.size()).sum();
        let mut evicted = 0;
        while bytes > MAX_CACHED_BYTES || cached.pages.len() - evicted > MAX_CACHED_PAGES {
            bytes -= cached
                .pages
                .get(evicted)
                .map_or(bytes, |(_, page)| page.size());
            evicted += 1;
        }
        cached.pages.drain(..evicted);
    }

    // Held for a few microseconds and never across an await.
    fn cached_pages(&self) -> MutexGuard<'_, CachedPages> {
        self.cached.lock()
    }
}

impl CachedPage {
    fn size(&self) -> usize {
        self.items.get().len()
    }
}

impl fmt::Debug for PageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn page(bytes: usize) -> Arc<CachedPage> {
        Arc::new(CachedPage {
            items: JsonText::new(&Value::from("x".repeat(bytes - 2))),
            next: None,
        })
    }

    fn key(digest: u64) -> PageKey {
        PageKey::new(
            ListKind::Tools,
            CallerView {
                tools: digest,
                ..CallerView::default()
            },
            (Revision::NEWEST, SchemaForm::Standard),
            None,
        )
    }

    #[test]
    fn a_page_is_cached_by_all_of_its_inputs() {
        let listings = PageCache::default();
        listings.insert(1, key(1), page(10));
        assert!(listings.get(&key(1)).is_some());
        assert!(listings.get(&key(2)).is_none());
        assert!(
            listings
                .get(&PageKey {
                    revision: Revision::NEWEST_SESSION,
                    ..key(1)
                })
                .is_none()
        );
        assert!(
            listings
                .get(&PageKey {
                    schemas: SchemaForm::Portable,
                    ..key(1)
                })
                .is_none()
        );
        assert!(
            listings
                .get(&PageKey {
                    after: Some("a".into()),
                    ..key(1)
                })
                .is_none()
        );
        assert!(
            listings
                .get(&PageKey {
                    list: ListKind::Prompts,
                    ..key(1)
                })
                .is_none()
        );
        listings.insert(2, key(3), page(10));
        assert!(listings.get(&key(1)).is_none(), "a page of an older list");
        listings.insert(1, key(1), page(10));
        assert!(listings.get(&key(1)).is_none() && listings.get(&key(3)).is_some());
    }

    #[test]
    fn only_consecutive_pages_are_cached() {
        let listings = PageCache::default();
        let page = |next: Option<&str>| {
            Arc::new(CachedPage {
                items: JsonText::new(&Value::Null),
                next: next.map(str::to_owned),
            })
        };
        let after = |digest, name: &str| PageKey {
            after: Some(name.to_owned()),
            ..key(digest)
        };
        listings.insert(1, after(1, "b"), page(None));
        assert!(listings.get(&after(1, "b")).is_none(), "made up");
        listings.insert(1, key(1), page(Some("b")));
        for wrong in [
            after(1, "a"),
            after(2, "b"),
            PageKey {
                list: ListKind::Prompts,
                ..after(1, "b")
            },
        ] {
            listings.insert(1, wrong.clone(), page(None));
            assert!(listings.get(&wrong).is_none(), "{wrong:?}");
        }
        listings.insert(1, after(1, "b"), page(Some("d")));
        listings.insert(1, after(1, "d"), page(None));
        assert!(listings.get(&after(1, "b")).is_some() && listings.get(&after(1, "d")).is_some());
    }

    #[test]
    fn the_cache_is_bounded_in_bytes_and_in_pages() {
        let listings = PageCache::default();
        for digest in 0..4 {
            listings.insert(1, key(digest), page(MAX_CACHED_BYTES / 4));
        }
        assert!(listings.get(&key(0)).is_some());
        listings.insert(1, key(4), page(MAX_CACHED_BYTES / 2));
        let kept = |digest| listings.get(&key(digest)).is_some();
        assert_eq!(
            [0, 1, 2, 3, 4].map(kept),
            [true, false, false, true, true],
            "not those that were used last"
        );
        listings.insert(1, key(5), page(MAX_CACHED_BYTES + 1));
        assert!(listings.get(&key(5)).is_none() && listings.get(&key(4)).is_some());
        for digest in 10..10 + 2 * MAX_CACHED_PAGES as u64 {
            listings.insert(1, key(digest), page(10));
        }
        assert_eq!(listings.cached_pages().pages.len(), MAX_CACHED_PAGES);
        assert!(
            listings
                .get(&key(9 + 2 * MAX_CACHED_PAGES as u64))
                .is_some()
        );
    }
}
