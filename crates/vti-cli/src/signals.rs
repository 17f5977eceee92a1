//! Ctrl-C and SIGTERM: stop at the next step and save; a second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Ending, INTERRUPTED};
use crate::print;

/// Whether somebody wants the program to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    /// Whether the next signal ends the program at once.
    at_once: Arc<AtomicBool>,
}

impl Signals {
    /// Listens from here on.
    pub(crate) fn listen() -> Result<Self> {
        let signals = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds `at_once` unset, and sets it.
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&signals.at_once))
                .and_then(|_| flag::register(signal, Arc::clone(&signals.at_once)))
                .and_then(|_| flag::register(signal, Arc::clone(&signals.stop)))
                .context("could not listen to signals")?;
        }
        Ok(signals)
    }

    /// Listens where there is something to keep when somebody wants to stop; otherwise the first signal ends the program.
    pub(crate) fn listen_if(worthwhile: bool) -> Result<Self> {
        if worthwhile { Self::listen() } else { Ok(Self::default()) }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How a command ends that has written what it had when somebody wanted it to stop, which it then says.
    pub(crate) fn ending(&self, cut_short: &str) -> Ending {
        if self.stopped() {
            print::talk(cut_short);
            return Ending::Interrupted;
        }
        Ending::Done
    }
}
