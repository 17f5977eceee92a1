//! What an experiment computes with, and what it says meanwhile.

use std::time::{Duration, Instant};

use anyhow::Result;
use vti::device::Cpu;

/// An experiment that is going on.
pub(super) struct Session<'a> {
    pub(super) device: Cpu<f32>,
    talk: &'a dyn Fn(&str),
    start: Instant,
    fits: usize,
    done: usize,
    /// Fits that had been done before it started.
    before: usize,
}

impl<'a> Session<'a> {
    /// An experiment of `fits` fits of which `before` are done.
    pub(super) fn new(threads: usize, fits: usize, before: usize, talk: &'a dyn Fn(&str)) -> Result<Self> {
        let device = Cpu::new(self::threads(threads))?;
        if before > 0 {
            talk(&format!("{before} of {fits} fits were finished before"));
        }
        Ok(Self { device, talk, start: Instant::now(), fits, done: before, before })
    }

    /// Says something.
    pub(super) fn say(&self, text: &str) {
        (self.talk)(&format!("{}  {text}", clock(self.start.elapsed())));
    }

    /// Says that another fit is done, and what is left.
    pub(super) fn finished(&mut self, text: &str) {
        self.done += 1;
        let elapsed = self.start.elapsed();
        let left = elapsed.mul_f64((self.fits - self.done) as f64 / (self.done - self.before) as f64);
        let left = if self.done == self.fits { String::new() } else { format!("; about {} left", clock(left)) };
        self.say(&format!("[{}/{}] {text}{left}", self.done, self.fits));
    }
}

/// As many as asked for; where that is 0, as there are cores.
pub(super) fn threads(asked: usize) -> usize {
    if asked == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { asked }
}

/// Minutes and seconds, hours where there are any.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}
