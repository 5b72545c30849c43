//! Processor time, which measures work the same on a quiet machine and on a busy one.

use std::time::Duration;

/// Returns the processor time that the current thread has used.
pub fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn sleeping_uses_no_cpu_time() {
        let start = thread_cpu_time();
        let worker = thread::spawn(|| {
            while thread_cpu_time() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        });
        worker.join().unwrap();
        // This thread waited for the other one.
        assert!(thread_cpu_time().checked_sub(start).unwrap() < Duration::from_millis(20));
    }
}
