//! Any program that reads layers and writes data.
//!
//! The program reads one earth per line from its standard input and answers each with one line on its standard output, in the same
//! order, until its input ends:
//!
//! ```text
//! N depth_1 … depth_(N−1) value_1 … value_N
//! ```
//!
//! N layers, the depths of the interfaces between them, ascending, and the property of every layer, from the top; all on one line,
//! with spaces between. The answer has as many numbers as there are data, with spaces or commas between; `nan` instead of them where
//! the earth has no answer. It must be written out (flushed) line by line. Many lines may be waiting at once, so that a program may
//! read several and answer them together. Standard error is kept for messages.
//!
//! Several processes run side by side and stay open; one that ends is started again. What has no sense ends everything with a
//! message: an answer that is not numbers, one of another length, none for a long time, and an end without any answer. A program that
//! prints a line too many would give every later earth the answer of another, and nobody could tell by looking at the lines: it is
//! tried once, with a single earth and the end of its input, before it is believed.

mod line;
mod process;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::process::{Process, Stop};
use super::{Earth, Forward, View};
use crate::optimise::SettingError;
use crate::problem::DensityError;
use crate::workers::Workers;

/// How a program is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramSettings {
    /// The program and its arguments; there is no shell between.
    pub command: Vec<String>,
    /// How many run side by side; as many as threads where nobody says.
    pub processes: Option<usize>,
    /// How long an answer may take, in seconds.
    pub timeout: f64,
}

impl Default for ProgramSettings {
    fn default() -> Self {
        Self { command: Vec::new(), processes: None, timeout: 60.0 }
    }
}

/// Earths that a process is sent at once.
const MOST_TOGETHER: usize = 64;

/// So many ends in a row, without an answer between, end everything.
const MOST_ENDS: usize = 2;

/// The longest time that a message of an operating system can express, and more than anybody waits.
const LONGEST_TIMEOUT: f64 = 1e7;

/// How long one waits for the end of a program whose input has ended.
const LONGEST_END: Duration = Duration::from_secs(10);

/// A program that predicts data.
#[derive(Debug)]
pub struct Program {
    settings: ProgramSettings,
    len: usize,
    views: Vec<View>,
    /// Processes that wait for work.
    idle: Mutex<Vec<Process>>,
    /// Whether it has been seen to print one line for one earth.
    is_tried: AtomicBool,
}

impl Program {
    /// A program that predicts so many numbers. It is started when it is first needed.
    pub fn new(settings: &ProgramSettings, len: usize) -> Result<Self, SettingError> {
        let ProgramSettings { command, processes, timeout } = settings;
        SettingError::check("words of the command", command.len() as f64, !command.is_empty(), "at least 1")?;
        let most = processes.unwrap_or(1);
        SettingError::check("processes", most as f64, (1..=1024).contains(&most), "from 1 to 1024")?;
        let is_time = *timeout > 0.0 && *timeout <= LONGEST_TIMEOUT;
        SettingError::check("timeout", *timeout, is_time, "positive, in seconds")?;
        Ok(Self {
            settings: settings.clone(),
            len,
            views: Vec::new(),
            idle: Mutex::new(Vec::new()),
            is_tried: AtomicBool::new(false),
        })
    }

    /// With how its data are shown.
    pub fn with_view(mut self, view: View) -> Self {
        self.views.push(view);
        self
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.settings.timeout)
    }

    /// One earth and the end of the input: it must print one line. All else that can be wrong is seen by those who ask.
    fn check_once(&self, earth: &Earth) -> Result<(), DensityError> {
        let mut process = Process::start(&self.settings.command)?;
        if let Ok(()) = process.ask(std::slice::from_ref(earth), self.timeout(), &mut |_: &str| Ok(()))
            && let Err(what) = process.finish(self.timeout().min(LONGEST_END))
        {
            return Err(process.failure(&what, earth));
        }
        Ok(())
    }

    /// Answers to some earths, from one process.
    fn ask(&self, earths: &[Earth], predicted: &mut [f64]) -> Result<(), DensityError> {
        let (mut done, mut ends) = (0, 0);
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let start = || Process::start(&self.settings.command);
        let mut process = idle.map_or_else(start, Ok)?;
        let timeout = self.timeout();
        loop {
            let before = done;
            let mut answer = |text: &str| {
                line::read(text, &mut predicted[done * self.len..(done + 1) * self.len])?;
                done += 1;
                Ok(())
            };
            match process.ask(&earths[before..], timeout, &mut answer) {
                Ok(()) => break,
                Err(Stop::Ended) => {}
                Err(Stop::Failed(what)) => return Err(process.failure(&what, &earths[done])),
            }
            ends = if done > before { 1 } else { ends + 1 };
            if ends >= MOST_ENDS {
                let what = process.how_it_ended();
                return Err(process.failure(&what, &earths[done]));
            }
            process = start()?;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(process);
        Ok(())
    }
}

impl Forward for Program {
    fn len(&self) -> usize {
        self.len
    }

    fn predict(&self, earths: &[Earth], predicted: &mut [f64], workers: &Workers) -> Result<(), DensityError> {
        if let Some(first) = earths.first()
            && !self.is_tried.swap(true, Ordering::Relaxed)
        {
            self.check_once(first)?;
        }
        let processes = self.settings.processes.unwrap_or(workers.threads()).clamp(1, earths.len().max(1));
        let together = earths.len().div_ceil(4 * processes).clamp(1, MOST_TOGETHER);
        let parts = earths.chunks(together).zip(predicted.chunks_mut(together * self.len.max(1)));
        let (parts, failed) = (Mutex::new(parts), Mutex::new(None));
        let work = || loop {
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((earths, predicted)) = next else { return };
            if failed.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                return;
            }
            if let Err(error) = self.ask(earths, predicted) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        };
        // Threads that wait for processes, beside those that compute.
        std::thread::scope(|scope| {
            (1..processes).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn views(&self) -> Vec<View> {
        self.views.clone()
    }

    fn is_batched(&self) -> bool {
        true
    }
}
