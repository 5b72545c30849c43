//! What a process wrote to standard error, to wait for and to show when a test fails.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use super::DEADLINE;

/// The text so far; it grows while the process runs.
#[derive(Clone, Default)]
pub(crate) struct Log {
    shared: Arc<(Mutex<String>, Condvar)>,
    ended: Arc<AtomicBool>,
}

impl Log {
    /// Gathers everything that comes out of `stream`, on a thread of its own.
    pub(crate) fn follow(mut stream: impl Read + Send + 'static) -> Self {
        let log = Self::default();
        let Self { shared, ended } = log.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut piece) {
                shared.0.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
                shared.1.notify_all();
            }
            let text = shared.0.lock().unwrap();
            ended.store(true, Ordering::SeqCst);
            drop(text);
            shared.1.notify_all();
        });
        log
    }

    pub(crate) fn text(&self) -> String {
        self.shared.0.lock().unwrap().clone()
    }

    /// Waits until whoever writes it has ended.
    pub(crate) fn wait_for_end(&self) {
        let text = self.shared.0.lock().unwrap();
        let running = |_: &mut String| !self.ended.load(Ordering::SeqCst);
        let (text, waited) = self.shared.1.wait_timeout_while(text, DEADLINE, running).unwrap();
        assert!(!waited.timed_out(), "the process does not end; its log:\n{}", *text);
    }

    /// Waits until `words` are in the log, and returns the line that has them first.
    pub(crate) fn wait_for(&self, words: &str) -> String {
        self.wait_for_count(words, 1)
    }

    /// Waits until `count` lines have `words` in them, and returns the last of these.
    pub(crate) fn wait_for_count(&self, words: &str, count: usize) -> String {
        let text = self.shared.0.lock().unwrap();
        let missing = |text: &mut String| line_with(text, words, count).is_none();
        let (text, _) = self.shared.1.wait_timeout_while(text, DEADLINE, missing).unwrap();
        match line_with(&text, words, count) {
            Some(line) => line,
            None => panic!("{words:?} did not come up {count} times in the log:\n{}", *text),
        }
    }
}

/// The whole line with `words` in it that is the `count`-th of its kind.
fn line_with(text: &str, words: &str, count: usize) -> Option<String> {
    let whole = &text[..=text.rfind('\n')?];
    whole.lines().filter(|line| line.contains(words)).nth(count - 1).map(str::to_owned)
}
