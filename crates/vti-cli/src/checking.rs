//! How a check goes, and when it has taken long enough.

use std::time::{Duration, Instant};

use vti::check::Stage;
use vti::problem::Problem;

use crate::phase::PhaseFile;
use crate::print;
use crate::progress::{REDRAW, Show, TALK, duration};
use crate::rundir::RunDir;
use crate::signals::Signals;
use crate::watch::Told;

/// Shows how far a check has come, where that takes long.
pub(crate) struct Checking<'a> {
    show: Show,
    last: Instant,
    /// Whether evidences of nodes are found, rather than the whole posterior once more.
    by_nodes: bool,
    signals: &'a Signals,
    /// What it does, and since when.
    doing: Doing,
    since: Instant,
    /// How long a look beyond q may take at least.
    least: Duration,
    /// How long each of these may take.
    limit: Option<Duration>,
    /// When all of it must have ended.
    until: Option<Instant>,
    /// What there was no time for.
    left_out: Vec<String>,
    file: PhaseFile,
}

/// What a check does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Looking,
    Learning,
    Chains,
}

impl Doing {
    fn cut(self, seconds: f64, by: &str) -> String {
        let what = match self {
            Self::Looking => "the look beyond q was",
            Self::Learning => "the lesson from what was found beyond q was",
            Self::Chains => "the chains were",
        };
        format!("{what} cut at {} {by}", duration(seconds))
    }
}

/// What became of a check.
pub(crate) struct Checked {
    /// Whether somebody wanted to stop.
    pub(crate) is_stopped: bool,
    /// What there was no time for.
    pub(crate) left_out: Vec<String>,
}

/// A look beyond q may take as long as training, and so long at least; longer where components are counted, of which particles mostly
/// are the answer.
const MIN_LOOK: Duration = Duration::from_secs(60);
const MIN_COUNT: Duration = Duration::from_secs(240);

impl<'a> Checking<'a> {
    pub(crate) fn new(quiet: bool, problem: &dyn Problem, signals: &'a Signals, dir: &RunDir) -> Self {
        let now = Instant::now();
        Self {
            show: Show::new(quiet),
            last: now,
            by_nodes: problem.blocks().is_some(),
            least: if problem.jumps().is_some() { MIN_COUNT } else { MIN_LOOK },
            signals,
            doing: Doing::Looking,
            since: now,
            limit: None,
            until: None,
            left_out: Vec::new(),
            file: PhaseFile::new(dir.phase()),
        }
    }

    /// All of it no longer than this, where there is a time limit.
    pub(crate) fn until(mut self, until: Option<Instant>) -> Self {
        // The time limit alone decides then.
        self.limit = self.limit.filter(|_| until.is_none());
        self.until = until;
        self
    }

    /// No longer than training took; evidences of nodes take as long as they take.
    pub(crate) fn no_longer_than(mut self, training: f64) -> Self {
        let enough = Duration::try_from_secs_f64(training).unwrap_or(self.least).max(self.least);
        self.limit = Some(enough).filter(|_| !self.by_nodes);
        self
    }

    fn goes_on(&mut self) -> bool {
        let seconds = self.since.elapsed();
        let cut = if self.until.is_some_and(|until| Instant::now() >= until) {
            Some("by the time limit")
        } else if self.limit.is_some_and(|limit| seconds >= limit) {
            Some("because training took no longer")
        } else {
            None
        };
        if let Some(by) = cut.filter(|_| self.left_out.is_empty()) {
            self.left_out.push(self.doing.cut(seconds.as_secs_f64(), by));
        }
        cut.is_none() && !self.signals.stopped()
    }

    /// How many iterations of chains are done. Whether to go on.
    pub(crate) fn chains(&mut self, done: usize, all: usize) -> bool {
        self.tell(Doing::Chains, done, all)
    }

    /// Of the parts that are known to be needed so far. Whether to go on.
    pub(crate) fn show(&mut self, stage: Stage) -> bool {
        match stage {
            Stage::Learning { done, all } => self.tell(Doing::Learning, done as usize, all as usize),
            Stage::Looking { done, all } => self.tell(Doing::Looking, done, all),
        }
    }

    fn tell(&mut self, doing: Doing, done: usize, all: usize) -> bool {
        if doing != self.doing {
            (self.doing, self.since) = (doing, Instant::now());
        }
        let text = self.text(done, all);
        self.file.tell(|| text.clone());
        self.signals.tell(|| Told { text: text.clone(), ..Told::default() });
        let since = self.last.elapsed();
        match self.show {
            Show::Bar if since >= REDRAW || done == all => print::redraw(&text),
            Show::Lines if since >= TALK && done < all => print::talk(&text),
            _ => return self.goes_on(),
        }
        self.last = Instant::now();
        self.goes_on()
    }

    fn text(&self, done: usize, all: usize) -> String {
        let share = done as f64 / all.max(1) as f64;
        let mut left = self.since.elapsed().as_secs_f64() * (1.0 - share) / share;
        if let Some(until) = self.until {
            left = left.min(until.saturating_duration_since(Instant::now()).as_secs_f64());
        }
        let left =
            if share > 0.0 || self.until.is_some() { format!(", {} left", duration(left)) } else { String::new() };
        match self.doing {
            Doing::Chains => format!("chains: iteration {done} of {all}{left}"),
            Doing::Learning => format!("q learns what was found beyond it: step {done} of {all}{left}"),
            Doing::Looking if self.by_nodes && all <= 1 => format!("looking for what training never tried{left}"),
            Doing::Looking if self.by_nodes && done == all => "evidences of nodes: summing over graphs".into(),
            Doing::Looking if self.by_nodes => format!("evidences of nodes: {done} of {all} runs so far{left}"),
            Doing::Looking => format!("looking beyond q: {:.0} %{left}", 100.0 * share),
        }
    }

    /// Who is asked whether to stop.
    pub(crate) fn signals(&self) -> &'a Signals {
        self.signals
    }

    /// Clears the terminal's line; what became of it. Who wants to stop later on ends the program, with this message.
    pub(crate) fn finish(self, later: &str) -> Checked {
        self.signals.end_with(later);
        if self.show == Show::Bar {
            print::redraw("");
        }
        Checked { is_stopped: self.signals.stopped(), left_out: self.left_out }
    }
}
