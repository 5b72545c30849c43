//! Changes one plugin file repeatedly, and checks that each change has the expected effect.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use toolbay_testkit::CallerMailbox;

use crate::caller::{judge_slot, slot_said};
use crate::counts::kind;
use crate::editions::is_odd;
use crate::files::{Files, pause};
use crate::log::Log;
use crate::slot::{Said, Slot};
use crate::soak::Soak;
use crate::source::{Source, grant};

/// Maximum time until the effect of a change, before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Polling interval for changes without a notification.
const LOOK: Duration = Duration::from_millis(5);

/// A slot's file and the state of its changes.
pub(crate) struct Churner<'a> {
    soak: &'a Soak<'a>,
    mailbox: CallerMailbox<'a>,
    random: Rng,
    slot: &'a Slot,
    source: Source<'a>,
    files: &'a Files,
    /// The edition in the folder.
    edition: u64,
    /// `config.note` in the grant.
    note: u64,
}

impl<'a> Churner<'a> {
    pub(crate) fn new(
        soak: &'a Soak<'a>,
        slot: &'a Slot,
        source: Source<'a>,
        files: &'a Files,
        seed: u64,
    ) -> Self {
        let mailbox = soak.connection.open_mailbox();
        let random = Rng::with_seed(seed);
        Self {
            soak,
            mailbox,
            random,
            slot,
            source,
            files,
            edition: 0,
            note: 0,
        }
    }

    /// Changes the file until the run ends.
    pub(crate) fn run(mut self) -> Result<()> {
        while !self.soak.is_over() {
            let changed = match (&self.source, self.random.u8(..10)) {
                (_, 0..=1) => self.remove_and_bring_back(),
                (_, 2) => self.break_and_mend(),
                (_, 3) => self.leave_half_and_mend(),
                (_, 4) => self.break_grant_and_mend(),
                (Source::Editions(_), 5) => self.change_grant(),
                (Source::Editions(_), _) => self.replace(),
                (Source::Always { .. }, _) => self.remove_and_bring_back(),
            };
            changed.with_context(|| format!("a change of {} was lost", self.slot.id))?;
        }
        self.restore()
            .with_context(|| format!("{} could not be put back as it was", self.slot.id))
    }

    /// Restores the initial files, so that the server returns to its initial resources.
    fn restore(&mut self) -> Result<()> {
        (self.edition, self.note) = (0, 0);
        self.slot.may_say(None);
        self.files.remove(&self.file(), &mut self.random)?;
        self.until_listed_tool(&self.slot.tool, false)?;
        self.slot.says(None);
        let grant = self.grant();
        let name = self.grant_file();
        self.files.put(&name, grant.as_bytes(), &mut self.random)?;
        self.slot.may_say(Some(self.says()));
        self.put_file()?;
        self.until_listed_tool(&self.slot.tool, true)?;
        self.slot.says(Some(self.says()));
        Ok(())
    }

    /// Replaces the current edition with another one.
    fn replace(&mut self) -> Result<()> {
        let Source::Editions(editions) = self.source else {
            return self.put_file();
        };
        let before = self.edition;
        self.edition = editions.other_than(before, &mut self.random);
        let said = Some(self.says());
        self.slot.may_say(said.clone());
        self.put_file()?;
        let began = Instant::now();
        self.until_answered()?;
        self.slot.says(said);
        if is_odd(before) != is_odd(self.edition) {
            self.until_listed("odd", is_odd(self.edition))?;
        }
        self.soak.counts.reload("replaced", began.elapsed());
        Ok(())
    }

    /// Restores the current file after an invalid one was rejected.
    fn mend(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let loaded = |log: &Log| log.loaded(self.slot.id);
        let before = self.soak.log.read(loaded);
        self.files.put(name, bytes, &mut self.random)?;
        let began = Instant::now();
        let mended = self
            .soak
            .log
            .wait_until(PATIENCE, |log| loaded(log) > before);
        ensure!(mended, "{name} was not loaded again");
        self.soak.counts.reload("mended", began.elapsed());
        self.still_answered()
    }

    fn remove_and_bring_back(&mut self) -> Result<()> {
        self.slot.may_say(None);
        self.files.remove(&self.file(), &mut self.random)?;
        let began = Instant::now();
        self.until_listed_tool(&self.slot.tool, false)?;
        self.slot.says(None);
        self.soak.counts.reload("removed", began.elapsed());
        let said = Some(self.says());
        self.slot.may_say(said.clone());
        self.put_file()?;
        let began = Instant::now();
        self.until_listed_tool(&self.slot.tool, true)?;
        self.slot.says(said);
        self.soak.counts.reload("returned", began.elapsed());
        Ok(())
    }

    /// Writes a file that is not a plugin. The previous plugin must continue to work.
    fn break_and_mend(&mut self) -> Result<()> {
        let refused = self.refused();
        self.files.put_wrong(&self.file(), &mut self.random)?;
        self.until_refused(refused)?;
        if self.random.bool() {
            return self.replace();
        }
        let name = self.file();
        let bytes = self.bytes();
        self.mend(&name, &bytes)
    }

    /// Writes a truncated file, and later a complete one.
    fn leave_half_and_mend(&mut self) -> Result<()> {
        let bytes = self.bytes();
        self.files
            .put_half(&self.file(), &bytes, &mut self.random)?;
        pause(Duration::from_millis(self.random.u64(..100)));
        self.still_answered()?;
        self.replace()
    }

    /// Writes an invalid grant. The previous plugin must continue to work.
    fn break_grant_and_mend(&mut self) -> Result<()> {
        let refused = self.refused();
        let grant = self.grant();
        let name = self.grant_file();
        self.files.put(
            &name,
            format!("kernel = true\n{grant}").as_bytes(),
            &mut self.random,
        )?;
        self.until_refused(refused)?;
        self.mend(&name, grant.as_bytes())
    }

    fn change_grant(&mut self) -> Result<()> {
        self.note += 1;
        let said = Some(self.says());
        self.slot.may_say(said.clone());
        let grant = self.grant();
        let name = self.grant_file();
        self.files.put(&name, grant.as_bytes(), &mut self.random)?;
        let began = Instant::now();
        self.until_answered()?;
        self.slot.says(said);
        self.soak.counts.reload("grant changed", began.elapsed());
        Ok(())
    }

    fn put_file(&mut self) -> Result<()> {
        let bytes = self.bytes();
        self.files.put(&self.file(), &bytes, &mut self.random)
    }

    fn bytes(&self) -> Vec<u8> {
        self.source.file(self.edition)
    }

    fn file(&self) -> String {
        format!("{}.wasm", self.slot.id)
    }

    fn grant_file(&self) -> String {
        format!("{}.toml", self.slot.id)
    }

    fn grant(&self) -> String {
        grant(self.slot.id, self.note)
    }

    /// Returns the expected result of the slot's tool.
    fn says(&self) -> String {
        self.source.says(self.edition, self.note)
    }

    /// Calls the tool until it returns the expected result.
    fn until_answered(&self) -> Result<()> {
        let said = Some(self.says());
        let deadline = Instant::now() + PATIENCE;
        while self.asked()? != said {
            ensure!(
                Instant::now() < deadline,
                "{} never answered {said:?}",
                self.slot.tool
            );
            pause(LOOK);
        }
        Ok(())
    }

    /// Checks that the previous plugin continues to work.
    fn still_answered(&self) -> Result<()> {
        let said = Some(self.says());
        let asked = self.asked()?;
        ensure!(
            asked == said,
            "{} answered {asked:?}, not {said:?}",
            self.slot.tool
        );
        Ok(())
    }

    /// Returns the current result of the slot's tool. An impossible result is an error.
    fn asked(&self) -> Result<Said> {
        let since = self.slot.step();
        let answer = self
            .mailbox
            .call_and_wait(&self.slot.tool, &self.slot.arguments)?
            .message;
        self.soak.counts.call(&kind(&answer));
        if let Err(fault) = judge_slot(self.slot, since, &answer) {
            bail!("{fault}");
        }
        Ok(slot_said(&answer).flatten())
    }

    /// Waits until a client was notified of a change to the list of tools and has received the new
    /// list.
    fn until_listed(&self, tool: &str, there: bool) -> Result<()> {
        self.until_listed_tool(&format!("{}.{tool}", self.slot.id), there)
    }

    fn until_listed_tool(&self, tool: &str, there: bool) -> Result<()> {
        let listed = self
            .soak
            .listed
            .wait_until(PATIENCE, |tools| tools.contains(tool) == there);
        ensure!(
            listed,
            "no list_changed led to a list {} {tool}",
            if there { "with" } else { "without" }
        );
        Ok(())
    }

    fn refused(&self) -> u64 {
        self.soak.log.read(|log| log.refused(self.slot.id))
    }

    /// Waits until the log reports the rejection of the file, and checks that the previous one
    /// continues to work.
    fn until_refused(&self, before: u64) -> Result<()> {
        let began = Instant::now();
        let refused = self
            .soak
            .log
            .wait_until(PATIENCE, |log| log.refused(self.slot.id) > before);
        ensure!(refused, "{} was not refused", self.slot.id);
        self.soak.counts.reload("refused", began.elapsed());
        self.still_answered()
    }
}
