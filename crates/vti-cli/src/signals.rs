//! Ctrl-C, SIGTERM and SIGHUP: stop at the next step and save; a second one ends the program at once. Work that cannot stop in
//! between ends with a message, and so does work that takes too long to ask.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Ending, INTERRUPTED};
use crate::print;
use crate::watch::{Told, Watch};

/// Whether somebody wants the program to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    /// Whether the next signal ends the program at once.
    at_once: Arc<AtomicBool>,
    /// What ends the program where nobody asks whether to stop.
    unheeded: Arc<Mutex<Unheeded>>,
    /// The program that started the run and watches it: nothing is printed then, and no signal heard.
    watch: Option<Watch>,
}

/// What ends the program where nobody asks whether to stop.
#[derive(Debug, Default)]
struct Unheeded {
    /// What is said when a signal does, and how long it waits for somebody to ask.
    signal: Option<(Arc<str>, Duration)>,
    /// When time does, and what is said then.
    end: Option<(Instant, String)>,
}

/// Time between two looks whether somebody wants to stop what cannot stop by itself.
const LOOK: Duration = Duration::from_millis(50);

/// How long a step may take to end that somebody wants to stop: with the look before and the end after it less than a second.
const PATIENCE: Duration = Duration::from_millis(800);

/// The exit code of what took too long.
const OVERDUE: i32 = 1;

impl Signals {
    /// What the program says that watches the run; signals where there is none.
    pub(crate) fn of(watch: Option<&Watch>) -> Result<Self> {
        let watched = |watch: &Watch| Self { stop: watch.flag(), watch: Some(watch.clone()), ..Self::default() };
        watch.map_or_else(Self::listen, |watch| Ok(watched(watch)))
    }

    /// Listens from here on.
    pub(crate) fn listen() -> Result<Self> {
        let signals = Self::default();
        for signal in heard() {
            // In this order: the first signal finds `at_once` unset, and sets it.
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&signals.at_once))
                .and_then(|_| flag::register(signal, Arc::clone(&signals.at_once)))
                .and_then(|_| flag::register(signal, Arc::clone(&signals.stop)))
                .context("could not listen to signals")?;
        }
        let looking = signals.clone();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || looking.look())
            .context("could not listen to signals")?;
        Ok(signals)
    }

    /// Ends the program where nobody asks whether to stop.
    fn look(&self) {
        let mut since = None;
        loop {
            std::thread::sleep(LOOK);
            let Ok(unheeded) = self.unheeded.lock() else { return };
            if self.stopped() {
                let since = *since.get_or_insert_with(Instant::now);
                if let Some((message, _)) = unheeded.signal.as_ref().filter(|signal| since.elapsed() >= signal.1) {
                    print::clear();
                    print::talk(message);
                    std::process::exit(INTERRUPTED.into());
                }
            }
            if let Some((_, message)) = unheeded.end.as_ref().filter(|end| Instant::now() >= end.0) {
                print::clear();
                print::talk(&format!("error: {message}"));
                std::process::exit(OVERDUE);
            }
        }
    }

    /// From here on the first signal ends the program, with this message: there is nothing to save, and nobody asks.
    pub(crate) fn end_with(&self, message: &str) {
        self.set_signal(message.into(), Duration::ZERO);
    }

    /// From here on the first signal ends the program, with this message, where nobody asks for most of a second: what is worth it has
    /// been saved.
    pub(crate) fn end_in_midst(&self, message: &Arc<str>) {
        self.set_signal(Arc::clone(message), PATIENCE);
    }

    /// From here on the program ends at this time, with this error, unless somebody asks before.
    pub(crate) fn end_at(&self, end: Option<Instant>, error: &str) {
        if let Ok(mut unheeded) = self.unheeded.lock() {
            unheeded.end = end.map(|end| (end, error.into()));
        }
    }

    /// From here on somebody asks whether to stop, and saves.
    pub(crate) fn heed(&self) {
        if let Ok(mut unheeded) = self.unheeded.lock() {
            *unheeded = Unheeded::default();
        }
    }

    fn set_signal(&self, message: Arc<str>, patience: Duration) {
        // Whoever has been asked to stop finishes in peace.
        if let Ok(mut unheeded) = self.unheeded.lock()
            && !self.stopped()
        {
            unheeded.signal = Some((message, patience));
        }
    }

    /// What is set when somebody wants the program to stop.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether to stop. Returns once a run that was paused goes on.
    pub(crate) fn stopped(&self) -> bool {
        self.watch.iter().for_each(Watch::wait);
        self.stop.load(Ordering::Relaxed)
    }

    /// Tells whoever watches how far the run has come.
    pub(crate) fn tell(&self, told: impl FnOnce() -> Told) {
        if let Some(watch) = &self.watch {
            watch.tell(told());
        }
    }

    /// How a command ends that has written what it had when somebody wanted it to stop, which it then says.
    pub(crate) fn ending(&self, cut_short: &str) -> Ending {
        if self.stopped() {
            if self.watch.is_none() {
                print::talk(cut_short);
            }
            return Ending::Interrupted;
        }
        Ending::Done
    }
}

/// Signals that are heard. A terminal that goes away sends one too, unless `nohup` has said to ignore it.
#[cfg(unix)]
fn heard() -> Vec<i32> {
    let hangup = (!is_ignored(signal_hook::consts::SIGHUP)).then_some(signal_hook::consts::SIGHUP);
    hangup.into_iter().chain([SIGINT, SIGTERM]).collect()
}

#[cfg(not(unix))]
fn heard() -> Vec<i32> {
    vec![SIGINT, SIGTERM]
}

/// Whether whoever started the program had it ignore a signal, as far as the system says.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}
